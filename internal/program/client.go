package program

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"

	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
)

// HTTPClient returns a client of the server at base. It sends the settings' token to that server and to no other that a
// redirect leads to, and not in the clear if base is encrypted. It trusts the certificate authorities of the settings' file
// instead of the system's, and puts each request into the trace of its context.
func HTTPClient(base string, s settings.Token) (*http.Client, error) {
	server, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("MNEME_URL=%q: %w", settings.Redacted(base), err)
	}
	t := &transport{server: server, next: http.DefaultTransport}
	if t.token, err = s.Read(); err != nil {
		return nil, err
	}
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
	server *url.URL
	token  string
	next   http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context()) // it belongs to the caller
	if t.token != "" && r.URL.Host == t.server.Host && (r.URL.Scheme == t.server.Scheme || r.URL.Scheme == "https") {
		r.Header.Set("Authorization", "Bearer "+t.token)
	}
	telemetry.Inject(r.Context(), r.Header)
	return t.next.RoundTrip(r)
}

// CloseIdleConnections is what [http.Client.CloseIdleConnections] looks for.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
