package program

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
)

func TestAProgramWarnsOfAVariableThatNobodyKnows(t *testing.T) {
	t.Setenv("MNEME_QUOTA_FILE", "quotas.yaml")
	t.Setenv("MNEME_PARTITIONS", "8") // of other programs
	var out bytes.Buffer
	warnOfUnknown(slog.New(slog.NewTextHandler(&out, nil)))
	require.Contains(t, out.String(), "MNEME_QUOTA_FILE: no program knows this name; did you mean MNEME_QUOTAS_FILE?")
	require.NotContains(t, out.String(), "MNEME_PARTITIONS")
}

func TestAProgramThatIsEndedWhileItWaitsForAServerHasNotFailed(t *testing.T) {
	args := os.Args
	t.Cleanup(func() { os.Args = args })
	os.Args = args[:1]
	var err error
	code := Main("tester", func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		_, _, err = OpenLog(ctx, "nats://127.0.0.1:1", settings.NATSTLS{}, "tester", &telemetry.Telemetry{}, slog.New(slog.DiscardHandler), nil)
		return err
	})
	require.ErrorIs(t, err, ErrNeverAvailable)
	require.Zero(t, code)
}
