package instance_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
)

// The commands that put the log right talk to a NATS server, and the one of an instance that does not start has ended.
func TestAnInstanceThatRefusesItsLogSaysHowCommandsReachIt(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	_, up := logged(t)
	r := up(data)
	conn, err := nats.Connect(r.NATSURL(), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	stream, err := js.Stream(mnemetest.Context(t), natsdeploy.Stream)
	require.NoError(t, err)
	changed := stream.CachedInfo().Config
	changed.DenyDelete = true
	_, err = js.UpdateStream(mnemetest.Context(t), changed)
	require.NoError(t, err)
	require.NoError(t, r.Close())

	_, err = instance.Start(t.Context(), instance.Config{Data: data, Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
	require.ErrorIs(t, err, natsdeploy.ErrIncompatible)
	require.ErrorContains(t, err, "nats-server -js -a 127.0.0.1 -sd "+filepath.Join(data, "nats"))
}
