package telemetry_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
	"mneme.dev/mneme/pkg/eventlog"
)

func TestALogThatStoresNothingIsToldUntilItStoresAgain(t *testing.T) {
	t.Parallel()
	tell, err := telemetry.Setup(t.Context(), "test", settings.Telemetry{}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(tell.Stop)
	m := tell.Metrics
	require.NoError(t, m.WriteError())
	m.Published(eventlog.Publication{Events: 1, Err: events.ErrInvalid})
	require.NoError(t, m.WriteError(), "the event is to blame")
	m.Published(eventlog.Publication{Events: 1, Err: context.DeadlineExceeded})
	require.ErrorContains(t, m.WriteError(), "(timeout)")
	m.Published(eventlog.Publication{Events: 1, Err: events.ErrInvalid})
	require.Error(t, m.WriteError(), "it says nothing about the server")
	m.Published(eventlog.Publication{Events: 1, Stored: 1})
	require.NoError(t, m.WriteError())
}
