package worker

import (
	"log/slog"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/internal/mnemetest"
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
		require.NoError(t, makeLog(t.Context(), js, &settings.Worker{Partitions: 1, Replicas: 1}, slog.New(slog.NewTextHandler(logged, nil))))
		if warned {
			require.Contains(t, logged.String(), "MNEME_LOG_SIZE names no size")
		} else {
			require.Empty(t, logged.String())
		}
	}
}
