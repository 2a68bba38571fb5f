package program

import (
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestTheLongestDocumentedQueryIsAccepted(t *testing.T) {
	server, err := Listen("MNEME_LISTEN", "127.0.0.1:0", Serving{}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer server.Stop()
	read := 0
	server.Start(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		read = utf8.RuneCountInString(r.URL.Query().Get("query"))
	}))
	response, err := http.Get(server.URL() + "/?query=" + url.QueryEscape(strings.Repeat("🚀", 100_000)))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, 100_000, read)
}

func TestHealthyReportsWhetherTheRunningProgramIsReady(t *testing.T) {
	server, err := Listen("MNEME_LISTEN", "127.0.0.1:0", Serving{}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer server.Stop()
	ready := true
	server.Start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || !ready {
			http.Error(w, "the store does not answer", http.StatusServiceUnavailable)
		}
	}))
	_, port, err := net.SplitHostPort(server.listener.Addr().String())
	require.NoError(t, err)
	t.Setenv("MNEME_TRUST_NETWORK", "true")
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // a proxy that must not be used
	for _, address := range []string{"127.0.0.1:", "0.0.0.0:", ":"} {
		t.Setenv("MNEME_LISTEN", address+port)
		require.NoError(t, healthy(t.Context(), "ingestor"), address)
	}

	ready = false
	err = healthy(t.Context(), "context-api")
	require.ErrorIs(t, err, errNotReady)
	require.ErrorContains(t, err, "the store does not answer")

	server.Stop()
	require.ErrorIs(t, healthy(t.Context(), "file-tracker"), errNotReady)
}

func TestHealthyWithoutAFixedPortIsAUsageError(t *testing.T) {
	var usage *UsageError
	t.Setenv("MNEME_LISTEN", "127.0.0.1:0")
	require.ErrorAs(t, healthy(t.Context(), "ingestor"), &usage)
	t.Setenv("MNEME_LISTEN", "0.0.0.0:8421")
	require.ErrorAs(t, healthy(t.Context(), "ingestor"), &usage, "it would not run either")
}

func TestTheHelpListsArgumentsAndSettings(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, usage(&out, "context-api"))
	require.Contains(t, out.String(), "MNEME_LISTEN")
	require.Contains(t, out.String(), "context-api --healthy asks")
}
