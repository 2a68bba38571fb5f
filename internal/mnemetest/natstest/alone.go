package natstest

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/internal/mnemetest"
)

// Alone starts a server inside the process, makes the log on it, and connects to it, all until the end of the test. Its
// directory is a temporary one unless c names one.
func Alone(t testing.TB, c embedded.Config, s natsdeploy.Settings) (*embedded.Server, *nats.Conn) {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	server, err := embedded.Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	_, err = server.Apply(mnemetest.Context(t), s)
	require.NoError(t, err)
	conn, err := nats.Connect("", server.InProcess(), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return server, conn
}
