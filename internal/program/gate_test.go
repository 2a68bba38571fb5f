package program

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
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
