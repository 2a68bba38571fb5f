package modelapi_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/pkg/internal/modelapi"
)

const key = "sk-a-very-secret-key"

func serve(t *testing.T, handler http.HandlerFunc) modelapi.Endpoint {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return modelapi.Endpoint{URL: server.URL + "/v1/?version=3", Header: http.Header{"Authorization": {"Bearer " + key}}, MaxBody: 1 << 10}
}

func TestPostAppendsThePathAndKeepsTheQuery(t *testing.T) {
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Method+" "+r.URL.String()+" "+r.Header.Get("Authorization")+" "+r.Header.Get("Content-Type")+" "+string(body))
	})
	got, err := e.Post(t.Context(), "chat/completions", map[string]int{"n": 1})
	require.NoError(t, err)
	require.True(t, got.OK())
	require.Equal(t, "POST /v1/chat/completions?version=3 Bearer "+key+` application/json {"n":1}`, string(got.Body))
	require.Len(t, e.Header, 1, "the headers of the endpoint are not changed")
}

func TestARedirectIsNotFollowed(t *testing.T) {
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	t.Cleanup(other.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		e := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, status) })
		got, err := e.Post(t.Context(), "x", nil)
		require.NoError(t, err)
		require.Equal(t, status, got.Status)
	}
	require.Zero(t, elsewhere, "only the configured host sees the key")
}

func TestTheSizeOfAnAnswerIsBounded(t *testing.T) {
	for size, want := range map[int]error{1 << 10: nil, 1<<10 + 1: modelapi.ErrTooLarge, 1 << 24: modelapi.ErrTooLarge} {
		e := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat(" ", size)) })
		got, err := e.Post(t.Context(), "x", nil)
		require.ErrorIs(t, err, want, size)
		require.LessOrEqual(t, len(got.Body), 1<<10+1)
	}
	e := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, strings.Repeat(" ", 1<<20))
	})
	got, err := e.Post(t.Context(), "x", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadGateway, got.Status, "the status reports a failure, however long its page is")
}

func TestErrorsNameNeitherTheURLNorTheKey(t *testing.T) {
	for name, e := range map[string]modelapi.Endpoint{
		"nobody listens":     {URL: "http://user:password@127.0.0.1:1/v1"},
		"a key of two lines": {URL: "http://127.0.0.1:1", Header: http.Header{"Authorization": {key + "\n" + key}}},
		"not a URL":          {URL: "http://user:password@127.0.0.1:port"},
		"answer breaks off": serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
		}),
	} {
		_, err := e.Post(t.Context(), "x", nil)
		require.Error(t, err, name)
		for _, secret := range []string{"127.0.0.1:1/", "password", "secret"} {
			require.NotContains(t, err.Error(), secret, name)
		}
		require.Equal(t, name == "answer breaks off", strings.HasPrefix(err.Error(), "the answer broke off"), "%s: %v", name, err)
	}
}

func TestPostEndsWithItsContext(t *testing.T) {
	e := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := e.Post(ctx, "x", nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
