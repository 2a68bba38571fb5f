package program

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
	"mneme.dev/mneme/internal/settings"
)

func TestAGateThatCannotOpenSaysWhy(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "broken")
	require.NoError(t, os.WriteFile(broken, []byte("{"), 0o600))
	for _, c := range []struct {
		name   string
		access settings.Access
		says   string
	}{
		{"tokens", settings.Access{TokensFile: broken}, "MNEME_TOKENS_FILE: "},
		{"claims", settings.Access{OIDCIssuer: "https://id.example.com", Audience: "mneme", Algorithms: "RS256", Claims: broken}, "MNEME_OIDC_CLAIMS_FILE: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := OpenGate(t.Context(), c.access, nil, slog.New(slog.DiscardHandler))
			require.ErrorContains(t, err, c.says)
			require.True(t, errors.As(err, new(*UsageError)), "it is the user's mistake: %v", err)
		})
	}
}

func TestAProgramThatIsEndedWhileItWaitsForTheTokensHasNotFailed(t *testing.T) {
	t.Parallel()
	server, conn := natstest.Alone(t, embedded.Config{}, natsdeploy.Settings{})
	server.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := OpenGate(ctx, settings.Access{Tokens: true}, conn, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, ErrNeverAvailable)
}

func TestAProgramWaitsUntilTheTokensCanBeRead(t *testing.T) {
	t.Parallel()
	_, conn := natstest.Alone(t, embedded.Config{}, natsdeploy.Settings{})
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	const bucket = "KV_AGENT_TOKENS"
	_, err = js.CreateStream(mnemetest.Context(t), jetstream.StreamConfig{Name: bucket, Subjects: []string{"something.else"}})
	require.NoError(t, err)
	said := make(logged, 10)
	type opened struct {
		stop func()
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		_, stop, err := OpenGate(t.Context(), settings.Access{Tokens: true}, conn, slog.New(slog.NewTextHandler(said, nil)))
		done <- opened{stop, err}
	}()
	require.Contains(t, <-said, "the access tokens can't be read yet; retrying until they can")
	require.Empty(t, done, "it waits")
	require.NoError(t, js.DeleteStream(mnemetest.Context(t), bucket))
	gate := <-done
	require.NoError(t, gate.err)
	gate.stop()
}

// logged are the lines of a log.
type logged chan string

func (l logged) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}
