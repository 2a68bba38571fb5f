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
