package telemetry_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
)

// away is a client that has left.
type away struct{ http.ResponseWriter }

func (away) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestACollectorThatLeavesIsNoError(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	observed, err := telemetry.Setup(t.Context(), "test", settings.Telemetry{}, slog.New(slog.NewTextHandler(&out, nil)))
	require.NoError(t, err)
	metrics := observed.Metrics.Handler()
	metrics.ServeHTTP(away{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Empty(t, out.String())
	stays := httptest.NewRecorder()
	metrics.ServeHTTP(stays, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Contains(t, stays.Body.String(), "go_goroutines")
}
