package program

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/settings"
)

func TestATokenDoesNotFollowARedirectToAnotherServer(t *testing.T) {
	var elsewhere, here []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		elsewhere = append(elsewhere, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		here = append(here, r.Header.Get("Authorization"))
		to := other.URL
		if r.URL.Path == "/" {
			to = "/again"
		}
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	client, err := HTTPClient(server.URL, settings.Token{Token: "secret"})
	require.NoError(t, err)
	response, err := client.Get(server.URL)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, []string{"Bearer secret", "Bearer secret"}, here)
	require.Equal(t, []string{""}, elsewhere)
}

// recording is a server that notes whether requests have a token.
type recording struct{ tokens []string }

func (r *recording) RoundTrip(q *http.Request) (*http.Response, error) {
	r.tokens = append(r.tokens, q.URL.Scheme+" "+q.Header.Get("Authorization"))
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: q}, nil
}

func TestATokenIsNotSentInTheClearAfterAnEncryptedRequest(t *testing.T) {
	t.Parallel()
	for base, want := range map[string][]string{
		"https://mneme": {"https Bearer secret", "http "},
		"http://mneme":  {"https Bearer secret", "http Bearer secret"}, // a server may lead to its encrypted address
	} {
		client, err := HTTPClient(base, settings.Token{Token: "secret"})
		require.NoError(t, err)
		var sent recording
		client.Transport.(*transport).next = &sent
		for _, to := range []string{"https://mneme/x", "http://mneme/x"} {
			response, err := client.Get(to)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
		}
		require.Equal(t, want, sent.tokens, base)
	}
}

func TestATokenThatIsReplacedInItsFileIsSentOnceTheOldOneIsRefused(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer new" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("old\n"), 0o600))
	client, err := HTTPClient(server.URL, settings.Token{TokenFile: file})
	require.NoError(t, err)
	status := func() int {
		response, err := client.Get(server.URL)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	require.Equal(t, http.StatusUnauthorized, status())
	require.NoError(t, os.WriteFile(file, nil, 0o600)) // it is just being written
	require.Equal(t, http.StatusUnauthorized, status())
	require.NoError(t, os.WriteFile(file, []byte("new\n"), 0o600))
	require.Equal(t, http.StatusUnauthorized, status())
	require.Equal(t, http.StatusOK, status())
}
