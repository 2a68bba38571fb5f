package httpapi_test

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/settings"
)

func TestClientsWithoutATokenLearnWhichProviderGivesOne(t *testing.T) {
	t.Parallel()
	claims := filepath.Join(t.TempDir(), "claims.yaml")
	require.NoError(t, os.WriteFile(claims, []byte("rules:\n  - claims: {team: a}\n    tenant: team-a\n    role: read\n"), 0o600))
	const issuer = "http://127.0.0.1:1" // a provider that is down
	i, err := instance.Start(t.Context(), instance.Config{
		Data: t.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler),
		Access: settings.Access{OIDCIssuer: issuer, Audience: "mneme", Claims: claims, Algorithms: "RS256"},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close()) })
	b := &bundle{t, i}

	for path, resource := range map[string]string{"/mcp": "/mcp", "/v1/status": ""} {
		response, _ := b.send(http.MethodPost, path, nil, nil)
		require.Equal(t, http.StatusUnauthorized, response.StatusCode)
		metadata := b.HTTPURL() + "/.well-known/oauth-protected-resource" + resource
		require.Equal(t, `Bearer realm="mneme", resource_metadata="`+metadata+`"`, response.Header.Get("WWW-Authenticate"))
		var got struct {
			Resource string
			Servers  []string `json:"authorization_servers"`
			Methods  []string `json:"bearer_methods_supported"`
		}
		b.get("/.well-known/oauth-protected-resource"+resource, &got)
		require.Equal(t, b.HTTPURL()+resource, got.Resource, "the URL that the client used")
		require.Equal(t, []string{issuer}, got.Servers)
		require.Equal(t, []string{"header"}, got.Methods)
	}
	response, body := b.send(http.MethodGet, "/.well-known/oauth-protected-resource/mcp", map[string]string{"X-Forwarded-Proto": "https"}, nil)
	require.Equal(t, "no-store", response.Header.Get("Cache-Control"))
	require.Contains(t, string(body), `"resource":"https://127.0.0.1:`, "behind a proxy that speaks TLS")
}

func TestWithoutAProviderThereIsNoMetadataOfIt(t *testing.T) {
	g := setupGuarded(t)
	response, _ := g.send(http.MethodGet, "/.well-known/oauth-protected-resource", nil, nil)
	require.Equal(t, http.StatusNotFound, response.StatusCode)
	response, _ = g.send(http.MethodGet, "/v1/status", nil, nil)
	require.Equal(t, `Bearer realm="mneme"`, response.Header.Get("WWW-Authenticate"))
}
