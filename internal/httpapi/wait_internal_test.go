package httpapi

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

// slowReader is a read model in which every read is slow, as on a busy server.
type slowReader struct {
	graph.Reader
	takes time.Duration
}

func (s slowReader) pause(ctx context.Context) error {
	select {
	case <-time.After(s.takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s slowReader) Checkpoints(ctx context.Context) ([]projection.Checkpoint, error) {
	if err := s.pause(ctx); err != nil {
		return nil, err
	}
	return s.Reader.Checkpoints(ctx)
}

func (s slowReader) Conversation(ctx context.Context, id events.ConversationID, asOf uint64) (graph.Conversation, error) {
	if err := s.pause(ctx); err != nil {
		return graph.Conversation{}, err
	}
	return s.Reader.Conversation(ctx, id, asOf)
}

// wait_ms bounds the wait for events that are not applied yet. If there is nothing to wait
// for, a read may take longer.
func TestAShortWaitMSBoundsOnlyTheWait(t *testing.T) {
	t.Parallel()
	server, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), MaxBytes: 64 << 20})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	_, err = server.Apply(t.Context(), natsdeploy.Settings{})
	require.NoError(t, err)
	conn, err := nats.Connect("", server.InProcess())
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	log, err := eventlog.Open(t.Context(), conn)
	require.NoError(t, err)
	publish := func(id string) uint64 {
		t.Helper()
		e, err := events.New("c", "test", id, &events.MessageCreated{MessageID: id, Role: "user", Content: "hello"})
		require.NoError(t, err)
		ack, err := log.Publish(t.Context(), "default", e)
		require.NoError(t, err)
		return ack.Seq
	}
	applied := publish("1")
	message, err := log.Get(t.Context(), applied)
	require.NoError(t, err)
	store, err := sqlitestore.OpenGraph(t.Context(), filepath.Join(t.TempDir(), "graph.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	graphs := graph.Projection()
	id := events.ConversationID{Tenant: "default", ID: "c"}
	cp, err := store.Acquire(t.Context(), log.PartitionOf(id.Tenant, id.ID), graphs.Fingerprint())
	require.NoError(t, err)
	_, err = graphs.Apply(t.Context(), store, cp, []eventlog.Message{message})
	require.NoError(t, err)

	slow := slowReader{store, 60 * time.Millisecond}
	tell, err := telemetry.Setup(t.Context(), "test", settings.Telemetry{Disabled: "true"}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	a := &api{Config: Config{Log: log, Telemetry: tell}}
	inGraph := model{name: "graph", store: slow}
	wait := WaitParams{AtLeast: applied, WaitMS: 20}
	_, err = a.appliedLineage(t.Context(), slow, id, wait, AsOfParam{}, []model{inGraph})
	require.NoError(t, err)
	require.NoError(t, a.awaitAll(t.Context(), WaitAllParams(wait), inGraph))

	began := time.Now()
	wait.AtLeast = publish("2")
	_, err = a.appliedLineage(t.Context(), slow, id, wait, AsOfParam{}, []model{inGraph})
	var refused huma.StatusError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 504, refused.GetStatus())
	require.Less(t, time.Since(began), 10*time.Second)
}
