package telemetry

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// away is a client that has left.
type away struct{ http.ResponseWriter }

func (away) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestACollectorThatLeavesIsNoError(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	m := newMetrics(slog.New(slog.NewTextHandler(&out, nil)))
	m.Handler().ServeHTTP(away{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Empty(t, out.String())
	stays := httptest.NewRecorder()
	m.Handler().ServeHTTP(stays, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Contains(t, stays.Body.String(), "go_goroutines")
}
