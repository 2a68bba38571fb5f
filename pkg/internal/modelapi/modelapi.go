// Package modelapi posts JSON to the HTTP API of a model. It is the common part of the clients for
// chat completions, messages and embeddings: one request, one answer. It takes no key from the
// environment, and follows no redirect, so that a key reaches only the host that was configured,
// and the proxy that HTTP_PROXY or HTTPS_PROXY names, if there is one. It does not retry; what a
// status means is up to the caller.
package modelapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// MaxRetryAfter is how long a server can ask us to stay away. A longer wait is likely a
// mistake of the server and is shortened to this.
const MaxRetryAfter = time.Hour

// client follows no redirect: its target was not configured.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// ErrTooLarge means that an answer of status 2xx is longer than [Endpoint.MaxBody].
var ErrTooLarge = errors.New("the answer is too large")

// Endpoint is where an API is.
type Endpoint struct {
	// URL is the base URL. Paths are appended to it; its query is kept.
	URL string
	// Header is sent with every request. It holds the key.
	Header http.Header
	// MaxBody is how many bytes of an answer are read.
	MaxBody int
}

// Answer is what a server returned, with any status. The body of a status other than 2xx may
// be cut off.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// OK reports whether the status is 2xx.
func (a Answer) OK() bool { return a.Status/100 == 2 }

// NetworkError means that the server could not be reached, or that the connection broke
// before a successful answer was complete. It wraps the cause.
type NetworkError struct {
	cause  error
	broken bool // the answer had begun
}

// Error is short and leaves out the URL, which may hold a secret.
func (e *NetworkError) Error() string {
	err := e.cause
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	text := strings.ToValidUTF8(err.Error(), "")
	const most = 120
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	if e.broken {
		return "the answer broke off: " + text
	}
	return text
}

// Unwrap returns the cause.
func (e *NetworkError) Unwrap() error { return e.cause }

// Post sends request as JSON to a path below the base URL and reads the answer, whatever its
// status. It returns the context's error if ctx has ended, a [NetworkError], [ErrTooLarge],
// or an error of the request itself. No error text contains the request or a header.
func (e Endpoint) Post(ctx context.Context, path string, request any) (Answer, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return Answer{}, fmt.Errorf("encode the request: %w", err)
	}
	target, err := url.JoinPath(e.URL, path)
	if err != nil {
		return Answer{}, errors.New("the URL of the API is not a URL")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return Answer{}, errors.New("the URL of the API is not a URL")
	}
	if e.Header != nil {
		req.Header = e.Header.Clone()
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "mneme")
	resp, err := client.Do(req)
	if err != nil {
		return Answer{}, failed(ctx, err, false)
	}
	defer resp.Body.Close()
	a := Answer{Status: resp.StatusCode, Header: resp.Header}
	a.Body, err = io.ReadAll(io.LimitReader(resp.Body, int64(e.MaxBody)+1))
	switch {
	case !a.OK():
		return a, nil // the status says enough
	case err != nil:
		return a, failed(ctx, err, true)
	case len(a.Body) > e.MaxBody:
		return a, ErrTooLarge
	}
	return a, nil
}

func failed(ctx context.Context, err error, broken bool) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &NetworkError{cause: err, broken: broken}
}

// RetryAfter returns when the server wants to be asked again, at most [MaxRetryAfter] from now. It
// is zero if the server does not say, or does not name a future time.
func (a Answer) RetryAfter() time.Time {
	value, now := strings.TrimSpace(a.Header.Get("Retry-After")), time.Now()
	at, err := http.ParseTime(value)
	if seconds, notNumber := strconv.ParseFloat(value, 64); notNumber == nil {
		at, err = now.Add(time.Duration(min(seconds, MaxRetryAfter.Seconds())*float64(time.Second))), nil
	}
	if err != nil || !at.After(now) {
		return time.Time{}
	}
	if latest := now.Add(MaxRetryAfter); at.After(latest) {
		return latest
	}
	return at
}
