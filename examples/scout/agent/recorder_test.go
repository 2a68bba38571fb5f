package agent

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
)

func TestRecorderReturnsSequences(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t), t.Context()
	last, err := b.rec.Last(ctx)
	require.NoError(t, err)
	require.Zero(t, last)
	for want, publish := range []func() (uint64, error){
		func() (uint64, error) { return b.rec.Started(ctx, events.ConversationStarted{Title: "t"}) },
		func() (uint64, error) { return b.rec.User(ctx, "q") },
		func() (uint64, error) { return b.rec.Assistant(ctx, "a", "why", events.Reference{File: "x.go"}) },
		func() (uint64, error) { return b.rec.Call(ctx, "c1", "read_file", map[string]string{"path": "x.go"}) },
		func() (uint64, error) { return b.rec.Return(ctx, "c1", nil, errors.New("gone"), 1500*time.Microsecond) },
		func() (uint64, error) { return b.rec.Call(ctx, "c2", "grep_files", nil) },
		func() (uint64, error) { return b.rec.Return(ctx, "c2", []hit{}, nil, 0) },
	} {
		seq, err := publish()
		require.NoError(t, err)
		require.EqualValues(t, want+1, seq)
	}
	last, err = b.rec.Last(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 7, last)

	list := b.recorded()
	requirePaired(t, list)
	failed := list[4].Payload.(*events.ToolReturned)
	require.Equal(t, "gone", failed.Text())
	require.Equal(t, "gone", failed.Error)
	require.InDelta(t, 1.5, *failed.DurationMS, 0)
	require.Equal(t, "[]", list[6].Payload.(*events.ToolReturned).Text())
	for _, e := range list {
		require.WithinDuration(t, time.Now(), e.Time, time.Minute)
		require.Equal(t, "example/scout", e.Source)
	}
}

func TestRecorderRefuses(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t), t.Context()
	_, err := b.rec.Call(ctx, "c1", "read_file", func() {})
	require.ErrorContains(t, err, "arguments of read_file")
	_, err = b.rec.Return(ctx, "c1", func() {}, nil, 0)
	require.ErrorContains(t, err, "result of call c1")
	_, err = b.rec.Call(ctx, "", "read_file", nil)
	require.ErrorIs(t, err, events.ErrInvalid)
	_, err = b.rec.Return(ctx, "c1", strings.Repeat("x", events.MaxEventBytes), nil, 0)
	require.ErrorIs(t, err, events.ErrInvalid)
	require.Empty(t, b.recorded())
}

func TestConnectSaysHowToStartAServer(t *testing.T) {
	t.Parallel()
	server, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	defer server.Stop()

	_, err = Connect(t.Context(), server.ClientURL())
	require.ErrorIs(t, err, natsdeploy.ErrNoStream)
	require.ErrorContains(t, err, "mneme up")

	_, err = server.Apply(t.Context(), natsdeploy.Settings{})
	require.NoError(t, err)
	log, err := Connect(t.Context(), server.ClientURL())
	require.NoError(t, err)
	log.Conn().Close()

	server.Stop()
	_, err = Connect(t.Context(), server.ClientURL())
	require.ErrorContains(t, err, "cannot reach NATS at nats://127.0.0.1:")
	require.ErrorContains(t, err, "make run")
}
