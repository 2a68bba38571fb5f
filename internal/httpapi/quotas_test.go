package httpapi_test

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/settings"
)

// limited starts a server with these quotas.
func limited(t *testing.T, quotas string) *bundle {
	t.Helper()
	t.Parallel()
	b, _ := limitedBy(t, quotas)
	return b
}

// limitedBy does the same, and returns the file of the quotas.
func limitedBy(t *testing.T, quotas string) (b *bundle, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "quotas.yaml")
	require.NoError(t, os.WriteFile(path, []byte(quotas), 0o600))
	i, err := instance.Start(t.Context(), instance.Config{
		Data: t.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler), Access: settings.Access{Quotas: path},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close()) })
	return &bundle{t, i}, path
}

func TestATenantOverItsQuotaGets429AndStoresNothing(t *testing.T) {
	b := limited(t, "tenants:\n  small: {events_per_second: 0.2, requests: 1}\n")
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
	state, err := b.Log.State(mnemetest.Context(t))
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

func TestATenantThatStoresAllItMayIsRefusedUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	b, path := limitedBy(t, "tenants:\n  small: {max_events: 4}\n")
	post := func(tenant, id string) (*http.Response, []byte) {
		return b.send(http.MethodPost, "/v1/events?tenant="+tenant, map[string]string{"Content-Type": events.ContentTypeEvent}, structured("c", id, message(id, "user", "hello")))
	}
	for n := range 3 {
		response, raw := post("small", strconv.Itoa(n))
		require.Equal(t, http.StatusCreated, response.StatusCode, "%s", raw)
	}
	lines := ""
	for n := range 3 {
		lines += string(structured("d", "line"+strconv.Itoa(n), message("line"+strconv.Itoa(n), "user", "hello"))) + "\n"
	}
	var response *http.Response
	var raw []byte
	// What is stored while the log is counted counts twice until the next count, a second later.
	refused := func(says string, send func() (*http.Response, []byte)) {
		t.Helper()
		require.Eventually(t, func() bool {
			response, raw = send()
			require.Equal(t, http.StatusInsufficientStorage, response.StatusCode, "%s", raw)
			require.Empty(t, response.Header.Get("Retry-After"))
			return strings.Contains(string(raw), says)
		}, mnemetest.Patience, 50*time.Millisecond, says)
	}
	refused(`the tenant \"small\" is over its quota max_events: it stores 3 of 4 events, which leaves no room for 3 more. Waiting does not help`, func() (*http.Response, []byte) {
		return b.send(http.MethodPost, "/v1/import?tenant=small", map[string]string{"Content-Type": "application/x-ndjson"}, []byte(lines))
	})

	require.Eventually(t, func() bool {
		response, raw = post("small", "last")
		return response.StatusCode == http.StatusCreated
	}, mnemetest.Patience, 50*time.Millisecond, "there is room for one")
	for range 3 {
		refused(`it stores 4 of 4 events, which leaves no room for 1 more`, func() (*http.Response, []byte) { return post("small", "over") })
	}
	state, err := b.Log.State(mnemetest.Context(t))
	require.NoError(t, err)
	require.EqualValues(t, 4, state.Head)
	response, raw = post("other", "over")
	require.Equal(t, http.StatusCreated, response.StatusCode, "%s", raw)

	response, raw = b.send(http.MethodDelete, "/v1/conversations/c?tenant=small", nil, nil)
	require.Less(t, response.StatusCode, 300, "to delete makes room: %s", raw)
	require.NoError(t, os.WriteFile(path, []byte("tenants:\n  small: {max_events: 100}\n"), 0o600))
	require.Eventually(t, func() bool {
		response, _ := post("small", "more")
		return response.StatusCode == http.StatusCreated
	}, mnemetest.Patience, 50*time.Millisecond, "a larger quota")

	var metrics string
	b.get("/metrics", &metrics)
	require.Contains(t, metrics, `mneme_publish_refused_events_total{error_type="quota"}`)
}

func TestSlowReadsOfATenantLeavePlacesForItsWrites(t *testing.T) {
	b := limited(t, "default: {requests: 3, reads: 2}\n")
	for range 2 { // whose bodies do not come
		conn, err := net.Dial("tcp", strings.TrimPrefix(b.HTTPURL(), "http://"))
		require.NoError(t, err)
		defer func() { require.NoError(t, conn.Close()) }()
		_, err = fmt.Fprintf(conn, "POST /v1/events/lookup HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n")
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { // asking takes no place: a read of ours could take that of a slow one, which is then refused
		_, raw := b.send(http.MethodGet, "/v1/quotas?tenant=default", nil, nil)
		return strings.Contains(string(raw), `{"name":"reads","used":2,"limit":2}`)
	}, mnemetest.Patience, 20*time.Millisecond)
	response, raw := b.send(http.MethodGet, "/v1/conversations", nil, nil)
	require.Equal(t, http.StatusTooManyRequests, response.StatusCode)
	require.Contains(t, string(raw), "2 reads at the same time")
	response, raw = b.send(http.MethodPost, "/v1/events", map[string]string{"Content-Type": events.ContentTypeEvent}, structured("c", "one", message("one", "user", "hello")))
	require.Equal(t, http.StatusCreated, response.StatusCode, "%s", raw)
	response, raw = b.send(http.MethodGet, "/v1/conversations?tenant=other", nil, nil)
	require.Equal(t, http.StatusOK, response.StatusCode, "another tenant reads: %s", raw)
	response, raw = b.send(http.MethodGet, "/v1/quotas?tenant=default", nil, nil)
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Contains(t, string(raw), `{"name":"requests","used":2,"limit":3},{"name":"reads","used":2,"limit":2}`)
}
