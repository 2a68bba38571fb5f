package service_test

import (
	"log/slog"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/testdata"
	"mneme.dev/mneme/pkg/eventlog"
)

// aLogIsSplitTwiceAtOnce gives a log more partitions, and more again before the program has begun those
// of the first time. It is run by [TestOnNeo4j], where conversations name their partition.
func aLogIsSplitTwiceAtOnce(t *testing.T, uri string) {
	recording := testdata.Recording(t, "codex", 300) // it skips the test if there is none, and then nothing may run
	config := instance.Config{
		Retention: retention, Data: t.TempDir(), Models: settings.Models{Store: "neo4j", Neo4j: settings.Neo4j{URI: uri}},
		Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler),
	}
	first, err := instance.Start(t.Context(), config)
	require.NoError(t, err)
	before := running{t, first}
	before.applied(before.bring([]string{recording}))
	want := before.hashes()
	conn, err := nats.Connect(first.NATSURL(), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	defer conn.Close()
	for _, partitions := range []int{4, 8} {
		require.NoError(t, eventlog.Split(mnemetest.Context(t), conn, partitions, nil))
	}
	require.ErrorIs(t, first.Serve(t.Context()), eventlog.ErrPartitions)
	require.NoError(t, first.Close())

	second, err := instance.Start(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, second.Close()) })
	after := running{t, second}
	require.Equal(t, 8, second.Log.Partitions())
	require.Equal(t, want, after.hashes(), "nothing changes for readers")
	after.applied(after.bring([]string{testdata.Recording(t, "codex", 600)}))
	after.hashes()
}
