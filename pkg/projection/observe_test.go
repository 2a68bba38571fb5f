package projection

import (
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

type unit struct{}

func (unit) Tombstone(events.ConversationID) uint64 { return 0 }

func TestObservingDoesNotSlowDownDecoding(t *testing.T) {
	e, err := events.New("c", "test", "1", &events.MessageCreated{MessageID: "1", Role: "user", Content: "hello"})
	require.NoError(t, err)
	e.Extensions["traceparent"] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	msg, err := eventlog.NewMsg("t", e)
	require.NoError(t, err)
	m := eventlog.Message{Seq: 1, Subject: "ev.0.t.c.message_created", Header: msg.Header, Data: msg.Data}
	p := &Projector[unit]{projection: Projection[unit]{Reducers: map[string]Reducer[unit]{e.Type: func(unit, *events.Recorded) error { return nil }}}}
	require.NoError(t, p.decode(m).invalid)
	fewest := func() float64 { // the minimum, because a pool may be empty at times
		n := testing.AllocsPerRun(1, func() { p.decode(m) })
		for range 200 {
			n = min(n, testing.AllocsPerRun(1, func() { p.decode(m) }))
		}
		return n
	}
	alone := fewest()
	OnBatch(func(Batch) {})(&p.options)
	WithTracer(nil)(&p.options)
	require.Equal(t, alone, fewest())
	require.Positive(t, p.decode(m).decoding)
	require.Nil(t, p.decode(m).origin)
}
