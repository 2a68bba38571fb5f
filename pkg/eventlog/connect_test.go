package eventlog

import (
	"bytes"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
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

// A program can't be stopped while it dials, nor try the next server of a cluster.
func TestAMachineThatIsAwayIsGivenUpBeforeABusyServer(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	conn, err := Connect(b.server.ClientURL(), "test", nil)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	require.IsType(t, &net.Dialer{}, conn.Opts.CustomDialer)
	require.Less(t, conn.Opts.CustomDialer.(*net.Dialer).Timeout, conn.Opts.Timeout)
}

// forgetful is a connection to a server that dies with the first question about the stream.
type forgetful struct {
	net.Conn
	forgot atomic.Bool
}

func (f *forgetful) Write(p []byte) (int, error) {
	if i := bytes.Index(p, []byte("PUB $JS.API.STREAM.INFO")); i >= 0 && f.forgot.CompareAndSwap(false, true) {
		_, err := f.Conn.Write(p[:i]) // the subscription for the answers
		return len(p), err
	}
	return f.Conn.Write(p)
}

func (f *forgetful) Dial(network, address string) (_ net.Conn, err error) {
	f.Conn, err = net.Dial(network, address)
	return f, err
}

func TestALogIsOpenedAlthoughTheServerThatWasAskedDied(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	dialer := &forgetful{}
	conn, err := Connect(b.server.ClientURL(), "test", nil, nats.SetCustomDialer(dialer))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	_, err = Open(mnemetest.Context(t), conn)
	require.NoError(t, err)
	require.True(t, dialer.forgot.Load())
}

// Only the ingestor may create the log. A program that starts before it has the right role, and only waits.
func TestAProgramThatMayNotCreateTheLogIsNotToldToChangeItsRole(t *testing.T) {
	server := natstest.Guard(t, "acme")
	lines := make(chan string, 10)
	conn, err := Connect(server.As("file-tracker"), "file-tracker", slog.New(slog.NewTextHandler(lineWriter(lines), nil)))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	require.NoError(t, conn.Publish("$JS.API.STREAM.CREATE."+natsdeploy.Stream, nil))
	require.Contains(t, <-lines, "the user of this program may not create it: ingestor does")
	require.NoError(t, conn.Publish("$JS.API.STREAM.PURGE."+natsdeploy.Stream, nil))
	require.Contains(t, <-lines, "give its user the role")
}

func TestTheUserOfAURLIsKnownWithoutItsScheme(t *testing.T) {
	t.Parallel()
	for servers, user := range map[string]string{
		"nats://ingestor:secret@localhost:4222":                "ingestor",
		"ingestor:secret@localhost:4222":                       "ingestor",
		"ingestor:secret@127.0.0.1":                            "ingestor",
		"localhost:4222, tls://ingestor:secret@127.0.0.1:4223": "ingestor",
		"token@localhost":                                      "",
		"127.0.0.1:4222":                                       "",
		"nats://[::1]:4222,":                                   "",
	} {
		require.Equal(t, user, userOf(servers), servers)
	}
}

type lineWriter chan<- string

func (w lineWriter) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}
