package instance_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/settings"
)

func TestExportersOfATenantThatMayStoreNoMoreAreToldNotToSendAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "quotas.yaml")
	require.NoError(t, os.WriteFile(path, []byte("tenants: {default: {max_events: 5}}\n"), 0o600))
	r := startExporting(t, instance.Config{Access: settings.Access{Quotas: path}})
	status, text := r.post("/v1/traces", "application/json", request(t, span(chat("s", "hello", "hi there"))))
	require.Equal(t, http.StatusOK, status, text)
	before, err := r.Log.State(mnemetest.Context(t))
	require.NoError(t, err)
	require.Positive(t, before.Head)
	status, text = r.post("/v1/traces", "application/json", request(t, span(chat("other", "one", "two", "three", "four", "five", "six"))))
	require.Equal(t, http.StatusInsufficientStorage, status, text)
	require.Contains(t, text, "over its quota max_events")
	after, err := r.Log.State(mnemetest.Context(t))
	require.NoError(t, err)
	require.Equal(t, before.Head, after.Head)
	status, text = r.post("/v1/traces", "application/json", request(t, span(chat("other", "one", "two", "three", "four", "five", "six"))), "mneme-tenant", "roomy")
	require.Equal(t, http.StatusOK, status, text)
}
