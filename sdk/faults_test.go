package sdk

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

// faults are what can happen to a request on its way. The others pass.
var faults = map[string]func(w http.ResponseWriter, r *http.Request, pass http.Handler){
	"":                  func(w http.ResponseWriter, r *http.Request, pass http.Handler) { pass.ServeHTTP(w, r) },
	"busy":              refuse(http.StatusServiceUnavailable, "0"),
	"too many":          refuse(http.StatusTooManyRequests, "0"),
	"busy for an hour":  refuse(http.StatusServiceUnavailable, "3600"),
	"busy until a date": refuse(http.StatusServiceUnavailable, time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)),
	"too slow":          refuse(http.StatusGatewayTimeout, ""),
	"bad gateway":       refuse(http.StatusBadGateway, "0"),
	"behind": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusGatewayTimeout)
		_, _ = io.WriteString(w, `{"title": "Gateway Timeout", "status": 504, "detail": "sequence 9 is not applied yet"}`)
	},
	"moved":                       move(http.StatusMovedPermanently),
	"moved, and keeps the method": move(http.StatusPermanentRedirect),
	"a page":                      answer("text/html; charset=utf-8", "<html>Sign in"),
	"no JSON":                     answer("application/json", "<html>Sign in"),
	"broken":                      refuse(http.StatusInternalServerError, ""),
	"full":                        refuse(http.StatusInsufficientStorage, ""),
	"refuse":                      func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) },
	"lose the answer": func(_ http.ResponseWriter, r *http.Request, pass http.Handler) {
		pass.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	},
	"after an event of somebody else": func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		recordLate(r, pass)
		pass.ServeHTTP(w, r)
	},
	"cut after an event": func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		pass.ServeHTTP(&cutter{ResponseWriter: w}, r)
	},
}

// refuse answers as a proxy does.
func refuse(status int, retryAfter string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		http.Error(w, "<html>"+http.StatusText(status), status)
	}
}

// move answers as a proxy that wants TLS. It names the server itself, where a client that follows would get an answer.
func move(status int) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		http.Redirect(w, r, "http://"+r.Host+r.URL.RequestURI(), status)
	}
}

// answer answers as something else does that is not mneme.
func answer(media, text string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", media)
		_, _ = io.WriteString(w, text)
	}
}

// recordLate records the message "late" in the conversation that a request asks about.
func recordLate(r *http.Request, pass http.Handler) {
	event, err := json.Marshal(map[string]any{
		"specversion": "1.0", "type": events.TypeMessageCreated, "source": "somebody else", "id": "message/late", "subject": r.URL.Query().Get("conversation"),
		"data": map[string]any{"message_id": "late", "role": "user", "content": "Me too."},
	})
	if err != nil {
		panic(err)
	}
	publish := httptest.NewRequestWithContext(r.Context(), http.MethodPost, "/v1/events?tenant="+url.QueryEscape(r.URL.Query().Get("tenant")), bytes.NewReader(event))
	publish.Header.Set("Content-Type", events.ContentTypeEvent)
	publish.Header.Set("Authorization", r.Header.Get("Authorization"))
	published := httptest.NewRecorder()
	pass.ServeHTTP(published, publish)
	if published.Code != http.StatusCreated {
		panic(published.Body.String())
	}
}

// A cutter cuts the connection after the first event of a stream.
type cutter struct {
	http.ResponseWriter
	sent bytes.Buffer
}

func (c *cutter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cutter) Write(p []byte) (int, error) {
	before := c.sent.Len()
	c.sent.Write(p)
	const event = "event: event\n"
	all := c.sent.String()
	begin := strings.Index(all, event)
	if begin < 0 {
		return c.ResponseWriter.Write(p)
	}
	end := strings.Index(all[begin:], "\n\n")
	if end < 0 {
		return c.ResponseWriter.Write(p)
	}
	_, _ = c.ResponseWriter.Write([]byte(all[before : begin+end+2]))
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

// between returns the address of a proxy before the server, on which the requests of each
// contract meet its faults.
func between(t *testing.T, server string, all []contract) string {
	t.Helper()
	target, err := url.Parse(server)
	require.NoError(t, err)
	pass := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // clients go away from streams
	}
	var lock sync.Mutex
	left := map[string][]string{}
	for _, c := range all {
		for _, f := range c.Faults {
			require.Contains(t, faults, f)
		}
		left[c.Conversation] = c.Faults
	}
	next := func(about string) string {
		lock.Lock()
		defer lock.Unlock()
		for conversation, list := range left {
			if len(list) > 0 && strings.Contains(about, conversation) {
				left[conversation] = list[1:]
				return list[0]
			}
		}
		return ""
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		faults[next(r.URL.Path+r.URL.Query().Get("conversation")+string(body))](w, r, pass)
	}))
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
		for conversation, list := range left {
			assert.Empty(t, list, "%s: requests that were not made", conversation)
		}
	})
	return proxy.URL
}
