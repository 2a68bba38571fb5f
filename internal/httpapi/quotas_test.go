package httpapi_test

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/settings"
)

func TestATenantOverItsQuotaGets429AndStoresNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "quotas.yaml")
	require.NoError(t, os.WriteFile(path, []byte("tenants:\n  small: {events_per_second: 0.2, requests: 1}\n"), 0o600))
	i, err := instance.Start(t.Context(), instance.Config{
		Data: t.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler), Access: settings.Access{Quotas: path},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close()) })
	b := &bundle{t, i}
	post := func(tenant, id string) (*http.Response, []byte) {
		return b.send(http.MethodPost, "/v1/events?tenant="+tenant, map[string]string{"Content-Type": events.ContentTypeEvent}, structured("c", id, message(id, "user", "hello")))
	}
	for _, id := range []string{"one", "two"} { // ten seconds of the quota
		response, raw := post("small", id)
		require.Equal(t, http.StatusCreated, response.StatusCode, "%s", raw)
	}
	response, raw := post("small", "three")
	require.Equal(t, http.StatusTooManyRequests, response.StatusCode, "%s", raw)
	require.Contains(t, string(raw), `over its quota of 0.2 events per second: nothing was stored`)
	after, err := strconv.Atoi(response.Header.Get("Retry-After"))
	require.NoError(t, err)
	require.Positive(t, after)
	require.LessOrEqual(t, after, 5)
	state, err := i.Log.State(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, state.Head)

	response, _ = b.send(http.MethodPost, "/v1/conversations?tenant=small", map[string]string{"Content-Type": "application/json"}, []byte(`{"title":"one more"}`))
	require.Equal(t, http.StatusTooManyRequests, response.StatusCode, "other writes count too")
	response, raw = post("other", "three")
	require.Equal(t, http.StatusCreated, response.StatusCode, "%s", raw)

	var metrics string
	b.get("/metrics", &metrics)
	require.True(t, strings.Contains(metrics, `mneme_publish_refused_events_total{error_type="quota"} 2`))
}
