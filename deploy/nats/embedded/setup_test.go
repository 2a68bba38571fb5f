package embedded

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
)

// start runs an embedded server until the end of the test.
func start(t testing.TB, cfg Config) *Server {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	e, err := Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(e.Stop)
	return e
}

// connect gives a client of the server, over its port if it has one.
func connect(t testing.TB, e *Server) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(e.ClientURL(), nats.Option(func(o *nats.Options) error {
		if e.ClientURL() == "" {
			return e.InProcess()(o)
		}
		return nil
	}), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(mnemetest.Patience))
	require.NoError(t, err)
	return js
}

func subject(t testing.TB, tenant, conversation string) string {
	t.Helper()
	s, err := events.Address{Tenant: tenant, Conversation: conversation, Kind: "message_created"}.Subject()
	require.NoError(t, err)
	return s
}

// resize is what an operator does to a full stream: nats stream edit --max-bytes.
func resize(t *testing.T, js jetstream.JetStream, maxBytes int64) natsdeploy.Info {
	t.Helper()
	stream, err := js.Stream(t.Context(), natsdeploy.Stream)
	require.NoError(t, err)
	cfg := stream.CachedInfo().Config
	cfg.MaxBytes = maxBytes
	_, err = js.UpdateStream(t.Context(), cfg)
	require.NoError(t, err)
	info, err := natsdeploy.Inspect(t.Context(), js)
	require.NoError(t, err)
	return info
}
