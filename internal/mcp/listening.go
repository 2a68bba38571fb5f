package mcp

import (
	"io"
	"net/http"
	"sync"
)

// listening returns a copy of a client that calls ended when the answer to a subscription ends, or is none. The SDK does not
// tell: to it, a subscription is a request that is never answered.
func listening(c *http.Client, ended func()) *http.Client {
	heard := http.Client{}
	if c != nil {
		heard = *c
	}
	if heard.Transport == nil {
		heard.Transport = http.DefaultTransport
	}
	heard.Transport = &listeningRoad{heard.Transport, ended}
	return &heard
}

type listeningRoad struct {
	http.RoundTripper
	ended func()
}

// RoundTrip implements http.RoundTripper.
func (l *listeningRoad) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(r)
	if r.Header.Get("Mcp-Method") != methodListen {
		return response, err
	}
	if err != nil || response.StatusCode != http.StatusOK {
		l.ended()
		return response, err
	}
	response.Body = &heardBody{ReadCloser: response.Body, ended: l.ended}
	return response, nil
}

// heardBody tells when it has been read to its end, or is closed.
type heardBody struct {
	io.ReadCloser
	once  sync.Once
	ended func()
}

func (b *heardBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.once.Do(b.ended)
	}
	return n, err
}

func (b *heardBody) Close() error {
	b.once.Do(b.ended)
	return b.ReadCloser.Close()
}
