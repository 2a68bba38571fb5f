package httpapi

import (
	"encoding/json"
	"net/http"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/mcp"
)

// wellKnown is where clients of OAuth look for what protects a server (RFC 9728). The path of what is protected may
// follow it.
const wellKnown = "/.well-known/oauth-protected-resource"

// protectedResource is the metadata of RFC 9728. It names no scopes, because the server's claims file decides what the
// claims of a token grant.
type protectedResource struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	Name                 string   `json:"resource_name"`
}

// issuer returns the identity provider whose tokens are accepted, "" for none.
func (a *api) issuer() string {
	if a.Gate == nil {
		return ""
	}
	return a.Gate.Issuer
}

// serveResource tells clients where to get a token, if there is an identity provider that gives one.
func (a *api) serveResource(mux *http.ServeMux) {
	if a.issuer() == "" {
		return
	}
	for _, path := range []string{"", mcp.Path} {
		public(mux, wellKnown+path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", cacheNothing)
			_ = json.NewEncoder(w).Encode(protectedResource{access.BaseOf(r) + path, []string{a.issuer()}, []string{"header"}, "mneme"})
		})
	}
}

// challenge says how to authenticate, and where a client can read who gives tokens.
func (a *api) challenge(r *http.Request) string {
	text := `Bearer realm="mneme"`
	if a.issuer() == "" {
		return text
	}
	path := ""
	if r.URL.Path == mcp.Path {
		path = mcp.Path
	}
	return text + `, resource_metadata="` + access.BaseOf(r) + wellKnown + path + `"`
}
