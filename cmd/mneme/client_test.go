package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
)

func TestTheTenantIsThatOfTheFlag(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	session(s, "c")
	begin := started("Another session")
	begin["project"] = "shop"
	s.publish("d", begin, userMessage("m1", "Where is the checkpoint written?"))
	list := func(tenant string) []httpapi.Project {
		return read[[]httpapi.Project](s, "projects", "list", "--tenant", tenant, "--at-least", "9")
	}
	require.Len(t, list("default"), 1)
	require.Empty(t, list("other"))
	require.Equal(t, 2, read[httpapi.Insights](s, "insights", "--tenant", "default", "--at-least", "9").Total.Conversations)
	require.Zero(t, read[httpapi.Insights](s, "insights", "--tenant", "other").Total.Conversations)
	_, stderr, code := s.mneme("context", "--project", "shop", "--tenant", "other")
	require.Equal(t, exitFailed, code, stderr)

	var described struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name string }
		}
	}
	response, err := http.Get(s.ready.HTTP + "/openapi.json")
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.NoError(t, json.NewDecoder(response.Body).Decode(&described))
	// A request for one of these is about all tenants if it names none, or no command sends it.
	others := []string{"/v1/audit", "/v1/failed", "/v1/hooks", "/v1/hooks/{agent}", "/v1/quotas"}
	for path, methods := range described.Paths {
		for method, operation := range methods {
			takes := slices.ContainsFunc(operation.Parameters, func(p struct{ Name string }) bool { return p.Name == "tenant" })
			require.Equal(t, takes && !slices.Contains(others, path), isOfTenant(path), "%s %s", method, path)
		}
	}
}

func TestAWebPageIsNoAnswer(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusOK, http.StatusNotFound} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(status)
			_, _ = w.Write([]byte("<!doctype html>"))
		}))
		defer server.Close()
		_, stderr, code := mneme(t, "status", "--url", server.URL)
		require.Equal(t, exitFailed, code)
		require.Equal(t, "mneme: "+server.URL+" does not serve mneme's API: it answered with a web page; name the server with --url\n", stderr)
	}
}

func TestAnInterruptedCommandSaysSo(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		interrupt()
		<-r.Context().Done()
	}))
	defer server.Close()
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitFailed, run(ctx, []string{"verify", "--url", server.URL}, &stdout, &stderr))
	require.Equal(t, "mneme: interrupted\n", stderr.String())
}

func TestALargeBodyIsSentCompressed(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			unpacked, err := gzip.NewReader(r.Body)
			if err != nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			in = unpacked
		}
		got, err := io.ReadAll(in)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode([]int64{r.ContentLength, int64(len(got))})
	}))
	t.Cleanup(server.Close)
	for size, compressed := range map[int]bool{0: false, 100: false, minPacked: true, 1 << 20: true} {
		var answer []int
		require.NoError(t, newClient(server.URL, "").post(t.Context(), "/v1/events", "text/plain", bytes.Repeat([]byte("a"), size), &answer))
		require.Equal(t, size, answer[1])
		require.Equal(t, compressed, answer[0] < size, answer)
	}
}

// A client sends a request again when it is redirected, or when a connection that it kept turns out to be closed.
func TestALargeBodyIsSentWholeAgain(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		got, err := io.ReadAll(unpacked)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if r.URL.Path != "/new" {
			http.Redirect(w, r, "/new", http.StatusTemporaryRedirect)
			return
		}
		_ = json.NewEncoder(w).Encode(len(got))
	}))
	t.Cleanup(server.Close)
	var size int
	require.NoError(t, newClient(server.URL, "").post(t.Context(), "/v1/events", "text/plain", bytes.Repeat([]byte("a"), minPacked), &size))
	require.Equal(t, minPacked, size)
}
