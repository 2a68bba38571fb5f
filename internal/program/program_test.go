package program

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
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

func TestAPasswordThatNATSRefusesEndsAProgramThatSaysWhatToCorrect(t *testing.T) {
	t.Parallel()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, Username: "ingestor", Password: "right"})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(s.Shutdown)
	require.True(t, s.ReadyForConnections(mnemetest.Patience))
	url := strings.Replace(s.ClientURL(), "nats://", "nats://ingestor:wrong@", 1)
	_, err = OpenLog(t.Context(), LogConfig{URL: url, Program: "tester", Telemetry: &telemetry.Telemetry{}, Logger: slog.New(slog.DiscardHandler)})
	require.ErrorIs(t, err, nats.ErrAuthorization)
	require.ErrorContains(t, err, "nats://ingestor:xxxxx@")
	require.ErrorContains(t, err, "name a user of the server in MNEME_NATS_URL")
}

func TestAProgramThatIsEndedWhileItWaitsForAServerHasNotFailed(t *testing.T) {
	args := os.Args
	t.Cleanup(func() { os.Args = args })
	os.Args = args[:1]
	var err error
	code := Main("tester", func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		_, err = OpenLog(ctx, LogConfig{URL: "nats://127.0.0.1:1", Program: "tester", Telemetry: &telemetry.Telemetry{}, Logger: slog.New(slog.DiscardHandler)})
		return err
	})
	require.ErrorIs(t, err, ErrNeverAvailable)
	require.Zero(t, code)
}
