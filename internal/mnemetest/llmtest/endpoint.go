// Package llmtest gives tests the endpoint of a language model, which can be told to fail,
// and a real model to put behind it.
//
//	MNEME_TEST_LLM_DIR         folder of the fetched model; default .cache/llm of the repository
//	MNEME_TEST_REQUIRE_LLM=1   a test that does not get the model fails; otherwise it is skipped
//
// make llm and make test fetch the model, which needs Python.
package llmtest

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest/netlink"
)

// Endpoint is a server of a model's API. It answers requests with the configured replies,
// and forwards them to a model if there are none. Tests can also disturb the link to it.
type Endpoint struct {
	*netlink.Link

	t    testing.TB
	pass http.Handler // nil: the endpoint has no model

	mu       sync.Mutex
	replies  []Reply
	requests []Request
}

// Request is a request that has reached an [Endpoint].
type Request struct {
	Path   string
	Header http.Header
	Body   map[string]any
	Text   string // the body
}

// New makes an endpoint without a model, which ends with the test.
func New(t testing.TB) *Endpoint {
	t.Helper()
	return start(t, &Endpoint{t: t})
}

// InFrontOf makes an endpoint that forwards requests without a configured reply to the
// server at this base URL.
func InFrontOf(t testing.TB, base string) *Endpoint {
	t.Helper()
	target, err := url.Parse(base)
	require.NoError(t, err)
	target.Path = "" // requests have the same path already
	return start(t, &Endpoint{t: t, pass: &httputil.ReverseProxy{
		Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorLog: log.New(io.Discard, "", 0), // the tests make clients go away
	}})
}

func start(t testing.TB, e *Endpoint) *Endpoint {
	t.Helper()
	server := httptest.NewServer(e)
	link, err := netlink.New(server.Listener.Addr().String())
	require.NoError(t, err)
	e.Link = link
	t.Cleanup(func() {
		link.Close()
		server.CloseClientConnections() // ends hanging requests
		server.Close()
	})
	return e
}

// URL returns the base URL for OpenAI's clients, and Host the one for Anthropic's.
func (e *Endpoint) URL() string  { return e.Host() + "/v1" }
func (e *Endpoint) Host() string { return "http://" + e.Address() }

// Reply sets the replies to the next requests, one each. The last reply also answers all
// later requests.
func (e *Endpoint) Reply(replies ...Reply) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.replies = replies
}

// Pass forwards the request to the model and returns its reply.
func (e *Endpoint) Pass() Reply { return e.pass.ServeHTTP }

// Calls returns how many requests have arrived.
func (e *Endpoint) Calls() int { return len(e.Requests()) }

// Requests returns the requests that have arrived.
func (e *Endpoint) Requests() []Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.requests[:len(e.requests):len(e.requests)]
}

// ServeHTTP implements [http.Handler].
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body) // to its end; otherwise the server does not notice when the client goes away
	if err != nil {
		return
	}
	request := Request{Path: r.URL.Path, Header: r.Header.Clone(), Text: string(body)}
	if err := json.Unmarshal(body, &request.Body); err != nil {
		e.t.Errorf("%s %s is not JSON: %v", r.Method, r.URL, err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	e.next(request)(w, r)
}

func (e *Endpoint) next(request Request) Reply {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests = append(e.requests, request)
	if len(e.replies) == 0 {
		if e.pass != nil {
			return e.pass.ServeHTTP
		}
		e.t.Error("a request has no reply, and there is no model")
		return Failure(http.StatusNotImplemented, "", "")
	}
	reply := e.replies[0]
	if len(e.replies) > 1 {
		e.replies = e.replies[1:]
	}
	return reply
}
