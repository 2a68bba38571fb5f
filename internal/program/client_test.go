package program

import (
	"net/http"
	"net/http/httptest"
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
