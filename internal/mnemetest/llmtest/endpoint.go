// Package llmtest gives tests an endpoint of a language model that can be told to fail,
// and a real model behind it.
//
//	MNEME_TEST_LLM_DIR         where the model was fetched to, .cache/llm of the repository if unset
//	MNEME_TEST_REQUIRE_LLM=1   a test that does not get the model fails; otherwise it is skipped
//
// make llm fetches the model, and make test does. It needs Python.
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

// Endpoint is a server of a model's API. What reaches it is answered by the replies it is
// told, and passed on to a model when it is told none. The link to it can be spoiled as
// well.
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

// InFrontOf makes an endpoint that passes on what it is not told to answer to another,
// by its base URL.
func InFrontOf(t testing.TB, base string) *Endpoint {
	t.Helper()
	target, err := url.Parse(base)
	require.NoError(t, err)
	target.Path = "" // that of the request is the same
	return start(t, &Endpoint{t: t, pass: &httputil.ReverseProxy{
		Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorLog: log.New(io.Discard, "", 0), // clients that go away are what is tested
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
		server.CloseClientConnections() // ends what hangs
		server.Close()
	})
	return e
}

// URL is the base URL for clients of OpenAI; Host is the one for those of Anthropic.
func (e *Endpoint) URL() string  { return e.Host() + "/v1" }
func (e *Endpoint) Host() string { return "http://" + e.Address() }

// Reply answers the next requests, one each; the last reply also those after it.
func (e *Endpoint) Reply(replies ...Reply) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.replies = replies
}

// Pass forwards the request to the model and returns its reply.
func (e *Endpoint) Pass() Reply { return e.pass.ServeHTTP }

// Calls is how many requests have arrived.
func (e *Endpoint) Calls() int { return len(e.Requests()) }

// Requests are those that have arrived.
func (e *Endpoint) Requests() []Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.requests[:len(e.requests):len(e.requests)]
}

// ServeHTTP implements [http.Handler].
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body) // to its end: otherwise nobody notices when the client goes away
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
