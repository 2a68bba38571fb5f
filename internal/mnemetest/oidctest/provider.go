// Package oidctest is an OpenID Connect provider for tests, on loopback. It signs people in by asking only for their name,
// and otherwise does what the specifications demand: a code works once, for the client, the address and the PKCE
// challenge for which it was made.
package oidctest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
)

// Client is a program that may sign people in.
type Client struct{ ID, Secret string }

// Provider is an identity provider. Its first key has the id "one" and signs with RS256.
type Provider struct {
	*httptest.Server
	Client Client
	Key    *rsa.PrivateKey
	t      testing.TB

	mu      sync.Mutex
	keys    map[string]crypto.Signer // published, by id
	claims  map[string]any           // further claims of ID tokens
	away    bool
	fetches int
	codes   map[string]url.Values // the requests for which unused codes were made
}

// New starts a provider that ends with the test.
func New(t testing.TB) *Provider {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	p := &Provider{Client: Client{"page", "client-secret"}, Key: key, t: t, keys: map[string]crypto.Signer{"one": key}, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		p.answer(w, map[string]any{
			"issuer": p.URL, "jwks_uri": p.URL + "/keys", "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
			"token_endpoint_auth_methods_supported": []string{"client_secret_post"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		p.fetches++
		var set jose.JSONWebKeySet
		for id, key := range p.keys {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: id, Use: "sig"})
		}
		p.mu.Unlock()
		p.answer(w, set)
	})
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("GET /agree", p.agree)
	mux.HandleFunc("POST /token", p.token)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *Provider) answer(w http.ResponseWriter, body any) {
	p.mu.Lock()
	away := p.away
	p.mu.Unlock()
	if away {
		http.Error(w, "away", http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

// Publish adds a key.
func (p *Provider) Publish(id string, key crypto.Signer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys[id] = key
}

// Withdraw removes a key.
func (p *Provider) Withdraw(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.keys, id)
}

// SetAway makes the provider unavailable, or available again.
func (p *Provider) SetAway(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = away
}

// SetClaims sets further claims of the next ID tokens; nil removes a claim.
func (p *Provider) SetClaims(claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims = claims
}

// Fetched returns how often the keys were fetched.
func (p *Provider) Fetched() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fetches
}

// Claims returns the claims of a valid token, with changes; nil removes a claim.
func (p *Provider) Claims(audience string, changes map[string]any) map[string]any {
	now := time.Now()
	claims := map[string]any{"iss": p.URL, "aud": audience, "sub": "u1", "org": "a", "iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	return claims
}

// Sign returns a JWT.
func Sign(t testing.TB, algorithm jose.SignatureAlgorithm, id string, key any, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	require.NoError(t, err)
	body, err := json.Marshal(claims)
	require.NoError(t, err)
	signed, err := signer.Sign(body)
	require.NoError(t, err)
	text, err := signed.CompactSerialize()
	require.NoError(t, err)
	return text
}

// authorize shows the page on which a person says who they are.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query()
	if asked.Get("client_id") != p.Client.ID || asked.Get("response_type") != "code" || asked.Get("code_challenge_method") != "S256" || asked.Get("nonce") == "" {
		http.Error(w, "this is not how the client was registered", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(`<!doctype html><html lang="en"><title>Provider</title><h1>Who are you?</h1>` +
		`<a href="/agree?` + html.EscapeString(r.URL.RawQuery) + `">Continue as Ada</a>`))
}

// agree sends the browser back.
func (p *Provider) agree(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query()
	back, err := url.Parse(asked.Get("redirect_uri"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = asked
	p.mu.Unlock()
	back.RawQuery = url.Values{"code": {code}, "state": {asked.Get("state")}}.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// token changes a code into tokens.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	asked, claims := p.codes[r.FormValue("code")], maps.Clone(p.claims)
	delete(p.codes, r.FormValue("code"))
	p.mu.Unlock()
	proof := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if asked == nil || base64.RawURLEncoding.EncodeToString(proof[:]) != asked.Get("code_challenge") || r.FormValue("redirect_uri") != asked.Get("redirect_uri") ||
		r.FormValue("client_id") != p.Client.ID || r.FormValue("client_secret") != p.Client.Secret {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error": "invalid_grant"}`))
		return
	}
	if claims == nil {
		claims = map[string]any{}
	}
	if _, given := claims["nonce"]; !given {
		claims["nonce"] = asked.Get("nonce")
	}
	p.answer(w, map[string]any{
		"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 3600,
		"id_token": Sign(p.t, jose.RS256, "one", p.Key, p.Claims(p.Client.ID, claims)),
	})
}
