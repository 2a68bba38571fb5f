package projection_test

import (
	"bytes"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

const foreignType = "com.example.build.finished"

func TestForeignEventsAreSkippedAndCountedByProjectionsWithoutAReducer(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.message("c")
	b.publish("c", &events.Foreign{Type: foreignType, Data: bytes.Repeat([]byte(" "), events.MaxEventBytes)})
	last := b.publish("c", &events.Foreign{Type: foreignType, Data: []byte(`{"ok":true}`)})
	var foreign atomic.Int64
	pr := b.start(graph.Projection(), projection.OnBatch(func(batch projection.Batch) { foreign.Add(int64(batch.Foreign)) }))
	b.awaitAll(pr)
	pr.Stop()
	require.EqualValues(t, 2, foreign.Load())
	require.Empty(t, b.failed())
	require.Equal(t, last, b.checkpoint().Seq)
	require.EqualValues(t, 1, b.checkpoint().Applied)
	require.True(t, new(b.verify(graph.Projection())).Equal())
}

func TestAProjectionMayReduceForeignEvents(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.message("c")
	b.publish("c", &events.Foreign{Type: foreignType, Data: []byte(`{"title":"built"}`)})
	b.publish("c", &events.Foreign{Type: "com.example.build.started"})
	p := graph.Projection()
	var seen []string
	p.Reducers[foreignType] = func(_ *graph.Unit, e *events.Recorded) error {
		seen = append(seen, string(e.Payload.(*events.Foreign).Data))
		return nil
	}
	require.NoError(t, p.Validate())
	pr := b.start(p)
	b.awaitAll(pr)
	pr.Stop()
	require.Equal(t, []string{`{"title":"built"}`}, seen)
	require.EqualValues(t, 2, b.checkpoint().Applied)
	require.Empty(t, b.failed())

	p.Reducers["dev.mneme.build.finished.v1"] = p.Reducers[foreignType]
	require.ErrorContains(t, p.Validate(), "dev.mneme.build.finished.v1")
}
