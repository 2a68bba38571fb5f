package eventlog

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
)

// bench is a log on a real server that listens on a port.
type bench struct {
	t      *testing.T
	config embedded.Config
	server *embedded.Server
	log    *Log
	n      int
}

func setup(t *testing.T, settings natsdeploy.Settings) *bench {
	t.Helper()
	if settings.MaxBytes == 0 {
		settings.MaxBytes = 256 << 20
	}
	b := &bench{t: t, config: embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:" + mnemetest.FreePort(t)}}
	b.startServer()
	_, err := b.server.Apply(mnemetest.Context(t), settings)
	require.NoError(t, err)
	conn, err := nats.Connect(b.server.ClientURL(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	b.log, err = Open(mnemetest.Context(t), conn)
	require.NoError(t, err)
	return b
}

func (b *bench) startServer() {
	b.t.Helper()
	var err error
	b.server, err = embedded.Start(b.t.Context(), b.config)
	require.NoError(b.t, err)
	b.t.Cleanup(b.server.Stop)
}

// restartServer stops the server and starts it on the same directory and port.
func (b *bench) restartServer() {
	b.t.Helper()
	b.server.Stop()
	b.startServer()
}

// events makes n events of a conversation.
func (b *bench) events(conversation string, n int, content string) []events.Event {
	b.t.Helper()
	list := make([]events.Event, n)
	for i := range list {
		b.n++
		var err error
		list[i], err = events.New(conversation, "test", fmt.Sprint(b.n), &events.MessageCreated{MessageID: fmt.Sprint(b.n), Role: "user", Content: content})
		require.NoError(b.t, err)
	}
	return list
}

func (b *bench) publish(conversation string, n int) {
	b.t.Helper()
	_, err := b.log.PublishAll(mnemetest.Context(b.t), "t", b.events(conversation, n, "hello"))
	require.NoError(b.t, err)
}

// next returns the next message of a follower.
func (b *bench) next(f *Follower) Message {
	b.t.Helper()
	select {
	case m := <-f.C():
		return m
	case <-time.After(mnemetest.Patience):
		require.Fail(b.t, "no message came")
	}
	return Message{}
}
