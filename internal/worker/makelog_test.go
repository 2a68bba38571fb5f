package worker

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
	"mneme.dev/mneme/internal/settings"
)

// Nobody but an operator knows whether the disk of a NATS server is large enough.
func TestALogOfTheDefaultSizeIsMadeWithAWarning(t *testing.T) {
	t.Parallel()
	o := embedded.ServerOptions(embedded.ServerSettings{StoreDir: t.TempDir(), Port: server.RANDOM_PORT})
	o.NoSigs, o.NoLog = true, true
	own, err := server.NewServer(o)
	require.NoError(t, err)
	own.Start()
	t.Cleanup(func() { own.Shutdown(); own.WaitForShutdown() })
	require.True(t, own.ReadyForConnections(mnemetest.Patience))
	conn, err := nats.Connect(own.ClientURL(), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	for _, warned := range []bool{true, false} { // the second start finds the log
		logged := &mnemetest.Log{}
		require.NoError(t, makeLog(mnemetest.Context(t), js, &settings.Worker{Partitions: 1, Replicas: 1}, slog.New(slog.NewTextHandler(logged, nil))))
		if warned {
			require.Contains(t, logged.String(), "MNEME_LOG_SIZE names no size")
		} else {
			require.Empty(t, logged.String())
		}
	}
}

// A number of copies that an operator has changed, as for more partitions, stops no program that starts meanwhile.
func TestALogKeepsItsCopiesAndTheProgramSaysSo(t *testing.T) {
	t.Parallel()
	_, conn := natstest.Alone(t, embedded.Config{}, natsdeploy.Settings{})
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	logged := &mnemetest.Log{}
	require.NoError(t, makeLog(mnemetest.Context(t), js, &settings.Worker{Partitions: 1, Replicas: 3}, slog.New(slog.NewTextHandler(logged, nil))))
	require.Contains(t, logged.String(), "the existing log keeps its copies")
	require.Contains(t, logged.String(), "asked=3 replicas=1")
	logged = &mnemetest.Log{}
	require.NoError(t, makeLog(mnemetest.Context(t), js, &settings.Worker{Partitions: 1}, slog.New(slog.NewTextHandler(logged, nil))))
	require.Empty(t, logged.String())
}

func TestADataDirectoryThatCannotBeMadeIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	t.Setenv("MNEME_DATA", filepath.Join(file, "data"))
	t.Setenv("MNEME_LISTEN", "127.0.0.1:0")
	require.ErrorContains(t, RunIngestor(t.Context()), "MNEME_DATA=")
}
