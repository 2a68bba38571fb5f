package eventlog

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

func TestAConnectionWithoutALoggerSurvivesTheServer(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	reported := make(chan struct{})
	conn, err := Connect(b.server.ClientURL(), "test", nil, nats.ClosedHandler(func(*nats.Conn) { close(reported) }))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	reconnected := conn.StatusChanged(nats.RECONNECTING, nats.CONNECTED)
	b.restartServer()
	require.Equal(t, nats.RECONNECTING, <-reconnected)
	require.Equal(t, nats.CONNECTED, <-reconnected)
	require.NoError(t, conn.Flush())
	conn.Close()
	<-reported // the client reports one event after the other, so the loss of the connection too
}
