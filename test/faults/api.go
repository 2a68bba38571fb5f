package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// answerWithin is how long an API may take to answer at all: longer than its wait for at_least, its
// queue, and the time-out for a store that does not answer.
const answerWithin = 75 * time.Second

// api is a context-api.
type api struct {
	name   string
	base   string
	client *http.Client

	mu   sync.Mutex
	down int // faults from which its process has not recovered
	hits int // all faults so far
}

// hit records that a fault hits the process; the returned function records its end.
func (a *api) hit() (over func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down++
	a.hits++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.down--
	}
}

// calm returns a function that reports whether no fault has hit the process since. A request that
// fails nevertheless is a violation.
func (a *api) calm() (still func() bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, calm := a.hits, a.down == 0
	return func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return calm && a.hits == before
	}
}

func newAPI(name, address string) *api {
	return &api{name: name, base: "http://" + address, client: &http.Client{
		Timeout: answerWithin,
		Transport: &http.Transport{
			MaxIdleConnsPerHost: 32, IdleConnTimeout: 10 * time.Second,
			DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		},
	}}
}

// answerError is an answer with a status other than success.
type answerError struct {
	status int
	body   string
}

func (e *answerError) Error() string { return fmt.Sprintf("HTTP %d: %.500s", e.status, e.body) }

// call sends a request and decodes the answer. An answer with status 300 or more is an
// [*answerError].
func (a *api) call(ctx context.Context, method, path string, query url.Values, contentType string, body []byte, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, a.base+path+"?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := a.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return &answerError{response.StatusCode, strings.TrimSpace(string(text))}
	}
	return json.Unmarshal(text, into)
}

func (a *api) get(ctx context.Context, path string, query url.Values, into any) error {
	return a.call(ctx, http.MethodGet, path, query, "", nil, into)
}

// conversationPath returns the path of a conversation, or of something below it.
func conversationPath(id, below string) string {
	return "/v1/conversations/" + url.PathEscape(id) + below
}
