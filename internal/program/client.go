package program

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"

	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
)

// HTTPClient returns a client of the server at base. It sends the settings' token to that server and to no other that a
// redirect leads to, and not in the clear if base is encrypted. It trusts the certificate authorities of the settings' file
// instead of the system's, and puts each request into the trace of its context. If the server refuses a token that came from
// a file, the next request sends the one that the file then holds.
func HTTPClient(base string, s settings.Token) (*http.Client, error) {
	server, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("MNEME_URL=%q: %w", settings.Redacted(base), err)
	}
	t := &transport{server: server, settings: s, next: http.DefaultTransport}
	token, err := s.Read()
	if err != nil {
		return nil, err
	}
	t.token.Store(token)
	if s.CAFile != "" {
		roots, err := settings.Roots(s.CAFile)
		if err != nil {
			return nil, fmt.Errorf("MNEME_CA_FILE=%q: %w", s.CAFile, err)
		}
		trusting := http.DefaultTransport.(*http.Transport).Clone()
		trusting.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
		t.next = trusting
	}
	return &http.Client{Transport: t}, nil
}

// transport is how the client of one server sends requests.
type transport struct {
	server   *url.URL
	settings settings.Token
	token    atomic.Value // string
	next     http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context()) // it belongs to the caller
	token := t.token.Load().(string)
	if own := r.URL.Host == t.server.Host && (r.URL.Scheme == t.server.Scheme || r.URL.Scheme == "https"); !own {
		token = ""
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	telemetry.Inject(r.Context(), r.Header)
	response, err := t.next.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusUnauthorized && token != "" {
		if token, err := t.settings.Read(); err == nil { // while the file is being replaced, the old one stays
			t.token.Store(token)
		}
	}
	return response, err
}

// CloseIdleConnections is what [http.Client.CloseIdleConnections] looks for.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
