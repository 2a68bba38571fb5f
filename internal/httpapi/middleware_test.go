package httpapi_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/service"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// front is a second HTTP server over the log and the read models of a bundle. Tests can
// give it short timeouts or failing read models.
type front struct {
	*bundle
	logged *mnemetest.Log
	server *program.HTTP
}

func (f *front) HTTPURL() string { return f.server.URL() }

// up starts mneme in one process and opens its read models as another process would.
func up(t *testing.T) (*bundle, *service.Models) {
	t.Helper()
	dir := t.TempDir()
	i, err := instance.Start(t.Context(), instance.Config{
		Data: dir, Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close()) })
	models := service.NewModels(dir, worker.NewStores(dir, settings.Models{}))
	t.Cleanup(func() { require.NoError(t, models.Close()) })
	return &bundle{t, i}, models
}

func setupFront(t *testing.T, change func(*httpapi.Config)) *front {
	t.Helper()
	t.Parallel()
	b, models := up(t)
	f := &front{bundle: b, logged: &mnemetest.Log{}}
	config := httpapi.Config{Log: b.Log, Models: models, Logger: slog.New(slog.NewTextHandler(f.logged, nil)), Store: "sqlite", NotReady: worker.ErrNotThere}
	var err error
	config.Telemetry, err = telemetry.Setup(t.Context(), "test", settings.Telemetry{}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	trail, err := service.OpenAudit(t.Context(), b.Log.Conn(), settings.Auditing{}, config.Telemetry, config.Logger)
	require.NoError(t, err)
	t.Cleanup(trail.Close)
	config.Audit = trail
	change(&config)
	f.server, err = program.Listen("test", "127.0.0.1:0", program.Serving{}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	f.server.Start(httpapi.New(config))
	t.Cleanup(f.server.Stop)
	return f
}

// dial opens a connection to a server and writes the beginning of a request.
func dial(t *testing.T, url, request string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(mnemetest.Patience)))
	_, err = io.WriteString(conn, request)
	require.NoError(t, err)
	return conn.(*net.TCPConn)
}

// answer reads a raw answer, without a client that would alter it.
func answer(t *testing.T, conn net.Conn, method string) (*http.Response, string) {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, string(body)
}

func raw(t *testing.T, url, request string) (*http.Response, string) {
	t.Helper()
	method, _, _ := strings.Cut(request, " ")
	return answer(t, dial(t, url, request), method)
}

func TestAnswersAreCompressedOnRequest(t *testing.T) {
	b := setup(t)
	seq := b.publish(structured("c1", "1", message("m1", "user", strings.Repeat("hello ", 2000)))).Seq
	path := fmt.Sprintf("/v1/conversations/c1/context?at_least=%d", seq)
	var plain string
	b.get(path, &plain)
	response, body := raw(t, b.HTTPURL(), "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n")
	require.Equal(t, "gzip", response.Header.Get("Content-Encoding"))
	require.Contains(t, response.Header.Values("Vary"), "Accept-Encoding")
	require.Less(t, len(body), len(plain)/10)
	unpacked, err := gzip.NewReader(strings.NewReader(body))
	require.NoError(t, err)
	text, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	require.Equal(t, plain, string(text))

	response, body = raw(t, b.HTTPURL(), "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	require.Empty(t, response.Header.Get("Content-Encoding"))
	require.Equal(t, plain, body)
}

func packed(body []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(body)
	_ = w.Close()
	return out.Bytes()
}

func TestRequestBodiesMayBeCompressed(t *testing.T) {
	b := setup(t)
	header := map[string]string{"Content-Type": events.ContentTypeEvent, "Content-Encoding": "gzip"}
	var published publishAnswer
	b.do(http.StatusCreated, http.MethodPost, "/v1/events", header, packed(structured("c1", "1", message("m1", "user", "hello"))), &published)
	require.EqualValues(t, 1, published.Seq)

	bomb := packed(make([]byte, 20<<20))
	p := b.refused(http.StatusRequestEntityTooLarge, http.MethodPost, "/v1/events/lookup", header, string(bomb))
	require.Contains(t, p.Detail, "limit")
	whole := packed(structured("c1", "2", message("m2", "user", "hello")))
	for name, body := range map[string][]byte{"cut off": whole[:len(whole)-6], "not gzip": []byte("hello"), "damaged": append(whole[:len(whole)-8:len(whole)-8], make([]byte, 8)...)} {
		p := (&bundle{t, b.Instance}).refused(http.StatusBadRequest, http.MethodPost, "/v1/events", header, string(body))
		require.Contains(t, p.Detail, "ended early or is damaged", name)
	}
	header["Content-Encoding"] = "zstd"
	b.refused(http.StatusUnsupportedMediaType, http.MethodPost, "/v1/events", header, "x")
	require.EqualValues(t, 1, b.head(), "no event of a refused body is published")
}

func TestSmallBodiesDoNotWaitForLargeOnes(t *testing.T) {
	f := setupFront(t, func(*httpapi.Config) {})
	var part bytes.Buffer
	w := gzip.NewWriter(&part)
	_, err := w.Write(append([]byte("["), bytes.Repeat([]byte(" "), 60<<20)...))
	require.NoError(t, err)
	require.NoError(t, w.Flush()) // without closing the stream
	var held []net.Conn
	var since time.Time
	hold := func() {
		since = time.Now()
		for range 5 { // of 60 MiB each when decompressed, in total more than the limit
			held = append(held, dial(t, f.HTTPURL(), fmt.Sprintf("POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Encoding: gzip\r\nContent-Length: 70000000\r\n\r\n%s", events.ContentTypeBatch, &part)))
		}
	}
	letGo := func() {
		for _, conn := range held {
			require.NoError(t, conn.Close())
		}
		held = nil
	}
	hold()
	n := 0
	send := func(padding int) net.Conn {
		n++
		body := string(structured("c1", fmt.Sprint(n), message(fmt.Sprint("m", n), "user", "hello"))) + strings.Repeat(" ", padding)
		return dial(t, f.HTTPURL(), fmt.Sprintf("POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", events.ContentTypeEvent, len(body), body))
	}
	var large net.Conn
	require.Eventually(t, func() bool { // once the other bodies have arrived
		if time.Since(since) > 15*time.Second { // a busy server may have given up some of them before it had the others
			letGo()
			hold()
		}
		large = send(2 << 20)
		require.NoError(t, large.SetReadDeadline(time.Now().Add(time.Second)))
		_, err := large.Read(make([]byte, 1))
		return errors.Is(err, os.ErrDeadlineExceeded)
	}, 3*time.Minute, time.Millisecond, "there is no room for it")
	response, text := answer(t, send(0), http.MethodPost)
	require.Equal(t, http.StatusCreated, response.StatusCode, text)
	letGo()
	require.NoError(t, large.SetReadDeadline(time.Now().Add(mnemetest.Patience)))
	response, text = answer(t, large, http.MethodPost)
	require.Equal(t, http.StatusCreated, response.StatusCode, text)
}

func TestLargeBodiesThatArriveTogetherDoNotBlockEachOther(t *testing.T) {
	f := setupFront(t, func(*httpapi.Config) {})
	var all sync.WaitGroup
	var stored, refused atomic.Int64
	for n := range 6 { // more than there is room for
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, err := fmt.Fprintf(w, "[%s%s]", structured("c1", fmt.Sprint(n), message(fmt.Sprint("m", n), "user", "hello")), strings.Repeat(" ", 60<<20))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		all.Go(func() {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.HTTPURL()+"/v1/events", &packed)
			if !assert.NoError(t, err) {
				return
			}
			request.Header.Set("Content-Type", events.ContentTypeBatch)
			request.Header.Set("Content-Encoding", "gzip")
			response, err := http.DefaultClient.Do(request)
			if !assert.NoError(t, err) {
				return
			}
			_ = response.Body.Close()
			switch response.StatusCode {
			case http.StatusCreated:
				stored.Add(1)
			case http.StatusServiceUnavailable:
				refused.Add(1)
			}
		})
	}
	all.Wait()
	require.Positive(t, stored.Load())
	require.EqualValues(t, 6, stored.Load()+refused.Load())
}

func TestABodyThatIsCutOffPublishesNothing(t *testing.T) {
	b := setup(t)
	body := string(structured("c1", "1", message("m1", "user", "hello")))
	for _, path := range []string{"/v1/events", "/v1/events/lookup"} {
		conn := dial(t, b.HTTPURL(), fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", path, events.ContentTypeEvent, len(body)+1, body))
		require.NoError(t, conn.CloseWrite())
		response, text := answer(t, conn, http.MethodPost)
		require.Equal(t, http.StatusBadRequest, response.StatusCode, text)
		require.Equal(t, "application/problem+json", response.Header.Get("Content-Type"))
	}
	require.Zero(t, b.head())
}

func TestAStalledBodyIsCutOff(t *testing.T) {
	f := setupFront(t, func(c *httpapi.Config) { c.Stall = 300 * time.Millisecond })
	for _, path := range []string{"/v1/events", "/v1/events/lookup", "/v1/import"} {
		conn := dial(t, f.HTTPURL(), fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: 100\r\n\r\n{", path, events.ContentTypeEvent))
		response, text := answer(t, conn, http.MethodPost)
		require.Equal(t, http.StatusRequestTimeout, response.StatusCode, text)
		_, err := conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF, "the connection is closed")
	}
	require.Zero(t, f.head())
}

// held holds back the read models from a request until it is released.
type held struct {
	httpapi.Models
	asked, letGo chan struct{}
}

func (h held) Graph(ctx context.Context) (view.Pinned[graph.Reader], error) {
	h.asked <- struct{}{}
	<-h.letGo
	return h.Models.Graph(ctx)
}

func TestHandlingMayTakeLongerThanTheBodyTimeout(t *testing.T) {
	mnemetest.Long(t)
	const stall = 2 * time.Second // a busy machine begins the handling within it
	h := held{asked: make(chan struct{}, 1), letGo: make(chan struct{})}
	f := setupFront(t, func(c *httpapi.Config) { c.Stall, h.Models, c.Models = stall, c.Models, &h })
	f.publish(structured("c1", "1", message("m1", "user", "hello")))
	body := `{"events":[{"conversation":"c1","source":"test","id":"1"}]}`
	conn := dial(t, f.HTTPURL(), fmt.Sprintf("POST /v1/events/lookup HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	<-h.asked
	time.Sleep(stall + stall/2) // not a wait for something: the test is that this time passes during the handling
	close(h.letGo)
	response, text := answer(t, conn, http.MethodPost)
	require.Equal(t, http.StatusOK, response.StatusCode, text)
}

func TestHeadersHaveALimit(t *testing.T) {
	b := setup(t)
	response, _ := raw(t, b.HTTPURL(), "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", 1400<<10)+"\r\n\r\n")
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, response.StatusCode)
}

// breaking is a source of read models that panics.
type breaking struct{ httpapi.Models }

func (breaking) Graph(context.Context) (view.Pinned[graph.Reader], error) { panic("out of order") }

func TestAPanicIsLoggedAndAnswers500(t *testing.T) {
	f := setupFront(t, func(c *httpapi.Config) { c.Models = breaking{c.Models} })
	for range 2 {
		response, text := raw(t, f.HTTPURL(), "GET /v1/conversations/c1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		require.Equal(t, http.StatusInternalServerError, response.StatusCode)
		require.Equal(t, "application/problem+json", response.Header.Get("Content-Type"))
		require.NotContains(t, text, "out of order", "what broke is for the log")
	}
	require.Contains(t, f.logged.String(), "out of order")
	require.Contains(t, f.logged.String(), "middleware_test.go", "where it broke")
}

// failing are read models that can't be opened.
type failing struct {
	httpapi.Models
	err error
}

func (f failing) Graph(context.Context) (view.Pinned[graph.Reader], error) {
	return view.Pinned[graph.Reader]{}, f.err
}

func TestAnAnswerThatCameTooLateSaysWhoseItWas(t *testing.T) {
	late := &failing{}
	f := setupFront(t, func(c *httpapi.Config) { late.Models, c.Models = c.Models, late })
	for says, err := range map[string]error{
		"the log's server did not confirm in time":      fmt.Errorf("publish: %w: %w", eventlog.ErrUnconfirmed, context.DeadlineExceeded),
		"the server of the read models does not answer": fmt.Errorf("%w within 30s: %w", projection.ErrUnavailable, context.DeadlineExceeded),
		"the log's server (NATS) did not answer":        fmt.Errorf("get sequence 7: %w: %w", eventlog.ErrSilent, context.DeadlineExceeded),
		"another process of mneme did not answer":       fmt.Errorf("repair: %w: %w", eventlog.ErrLate, context.DeadlineExceeded),
		"server (NATS) did not answer in time":          fmt.Errorf("bucket AGENT_CONTROL: %w", context.DeadlineExceeded),
	} {
		late.err = err
		response, text := raw(t, f.HTTPURL(), "GET /v1/conversations/c1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		require.GreaterOrEqual(t, response.StatusCode, http.StatusServiceUnavailable)
		require.Contains(t, text, says)
		if !errors.Is(err, eventlog.ErrUnconfirmed) {
			require.Equal(t, "5", response.Header.Get("Retry-After"))
			require.Contains(t, f.logged.String(), err.Error())
		}
	}
}

// What fails before an operation begins, such as finding out what a short name means, is told as every other failure.
func TestAFailureBeforeTheOperationIsLoggedToo(t *testing.T) {
	away := &failing{err: errors.New("a disk error")}
	f := setupFront(t, func(c *httpapi.Config) { away.Models, c.Models = c.Models, away })
	response, text := raw(t, f.HTTPURL(), "GET /v1/conversations/d91ec3b9 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode, text)
	require.NotContains(t, text, "a disk error")
	require.Equal(t, "5", response.Header.Get("Retry-After"))
	require.Equal(t, 1, strings.Count(f.logged.String(), "a disk error"))
	require.Contains(t, f.logged.String(), "/v1/conversations/{id}")
}

// While Neo4j is down, every read fails.
func TestAnOutageOfTheStoreDoesNotFillTheLog(t *testing.T) {
	away := &failing{}
	f := setupFront(t, func(c *httpapi.Config) { away.Models, c.Models = c.Models, away })
	for _, away.err = range []error{
		fmt.Errorf("%w: connection refused", projection.ErrUnavailable), fmt.Errorf("%w: connection refused", projection.ErrUnavailable),
		errors.New("a disk error"), errors.New("a disk error"),
	} {
		response, _ := raw(t, f.HTTPURL(), "GET /v1/conversations/c1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	}
	require.Equal(t, 1, strings.Count(f.logged.String(), "connection refused"))
	require.Equal(t, 2, strings.Count(f.logged.String(), "a disk error"))
}

func TestAnAnswerDoesNotSayThatNothingWasStoredUnlessItIsKnown(t *testing.T) {
	f := setupFront(t, func(c *httpapi.Config) {
		conn, err := nats.Connect("", nats.InProcessServer(c.Log.Conn().Opts.InProcessServer), nats.Timeout(mnemetest.Handshake))
		require.NoError(t, err)
		c.Log, err = eventlog.Open(mnemetest.Context(t), conn)
		require.NoError(t, err)
		conn.Close()
	})
	body := structured("c1", "1", message("m1", "user", "hello"))
	response, text := raw(t, f.HTTPURL(), fmt.Sprintf("POST /v1/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", events.ContentTypeEvent, len(body), body))
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	require.Contains(t, text, "it is not known whether events were stored; publishing them again is harmless: ")
}

func TestUnknownRoutesAnswerAProblem(t *testing.T) {
	b := setup(t)
	for request, want := range map[string]struct {
		status int
		allow  string
		detail string
	}{
		"GET /nothing":                        {404, "", "/openapi.json"},
		"GET /v1":                             {404, "", "/openapi.json"},
		"GET /v1/conversations/":              {404, "", "did you mean /v1/conversations?"},
		"DELETE /v1/conversations//context":   {404, "", "An id is"},
		"GET /v1/conversations/../status":     {404, "", "did you mean /v1/status?"},
		"GET //v1/status":                     {404, "", "did you mean /v1/status?"},
		"GET /v1/nothing/":                    {404, "", "there is nothing at /v1/nothing/; an id is percent-encoded"},
		"GET /v1/conversations/c/none":        {404, "", "/openapi.json"},
		"PUT /v1/status":                      {405, "GET, HEAD, OPTIONS", "PUT is not possible"},
		"GET /v1/import":                      {405, "POST, OPTIONS", "GET is not possible"},
		"GET /v1/events/lookup":               {405, "POST, OPTIONS", "GET is not possible"},
		"PUT /v1/events/lookup":               {405, "POST, OPTIONS", "PUT is not possible"},
		"BREW /v1/conversations/c/export":     {405, "GET, HEAD, OPTIONS", "BREW is not possible"},
		"OPTIONS /v1/conversations/c/context": {204, "GET, HEAD, OPTIONS", ""},
		"OPTIONS /v1/none":                    {404, "", "/openapi.json"},
		"GET /v1/conversations/none":          {404, "", "not found"},
	} {
		response, body := raw(t, b.HTTPURL(), request+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		require.Equal(t, want.status, response.StatusCode, "%s: %s", request, body)
		require.Equal(t, want.allow, response.Header.Get("Allow"), request)
		if want.status >= 400 {
			require.Equal(t, "application/problem+json", response.Header.Get("Content-Type"), request)
			require.Contains(t, body, want.detail, request)
		}
	}
}

func TestAPageOfAnotherSiteMayNotWrite(t *testing.T) {
	b := setup(t)
	for name, c := range map[string]struct {
		status         int
		method, header string
		value          string
	}{
		"a page of another site":  {403, "POST", "Sec-Fetch-Site", "cross-site"},
		"the same of old":         {403, "POST", "Origin", "https://elsewhere.example"},
		"the page about the API":  {200, "POST", "Origin", b.HTTPURL()},
		"no browser":              {200, "POST", "User-Agent", "curl"},
		"an address typed":        {200, "GET", "Sec-Fetch-Site", "none"},
		"a link on another site":  {200, "GET", "Sec-Fetch-Site", "cross-site"},
		"a deletion from another": {403, "DELETE", "Sec-Fetch-Site", "same-site"},
	} {
		path := map[string]string{"POST": "/v1/import?tenant=a", "GET": "/v1/conversations?tenant=a", "DELETE": "/v1/conversations/c"}[c.method]
		t.Run(name, func(t *testing.T) {
			(&bundle{t, b.Instance}).do(c.status, c.method, path, map[string]string{c.header: c.value}, []byte("\n"), nil)
		})
	}
}

func TestAPageOfAnotherSiteMayNotEmbedAnAnswer(t *testing.T) {
	b := setup(t)
	for name, c := range map[string]struct {
		status           int
		site, mode, dest string
		path             string
	}{
		"fetch without CORS":         {403, "cross-site", "no-cors", "empty", "/v1/search?query=x"},
		"an image":                   {403, "cross-site", "no-cors", "image", "/v1/conversations"},
		"a frame":                    {403, "cross-site", "navigate", "iframe", "/v1/conversations"},
		"of another port":            {403, "same-site", "cors", "empty", "/v1/conversations"},
		"an unknown path":            {403, "cross-site", "no-cors", "empty", "/v1/none"},
		"a link that is followed":    {200, "cross-site", "navigate", "document", "/v1/conversations"},
		"the page itself":            {200, "same-origin", "cors", "empty", "/v1/conversations"},
		"an address typed":           {200, "none", "navigate", "document", "/v1/conversations"},
		"what holds nothing, framed": {200, "cross-site", "no-cors", "image", "/healthz"},
	} {
		t.Run(name, func(t *testing.T) {
			response, body := (&bundle{t, b.Instance}).send("GET", c.path, map[string]string{"Sec-Fetch-Site": c.site, "Sec-Fetch-Mode": c.mode, "Sec-Fetch-Dest": c.dest}, nil)
			require.Equal(t, c.status, response.StatusCode, "%s", body)
			require.Equal(t, "nosniff", response.Header.Get("X-Content-Type-Options"))
		})
	}
}

func TestHEADIsGETWithoutTheBody(t *testing.T) {
	b := setup(t)
	seq := b.publish(structured("c1", "1", message("m1", "user", "hello"))).Seq
	for _, path := range []string{"/v1/conversations/c1", "/v1/conversations/c1/context", "/v1/conversations/c1/export", "/v1/conversations"} {
		b.get(fmt.Sprintf("/v1/conversations/c1/context?at_least=%d", seq), nil)
		got, _ := raw(t, b.HTTPURL(), "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		response, body := raw(t, b.HTTPURL(), "HEAD "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.Equal(t, got.Header.Get("ETag"), response.Header.Get("ETag"))
		require.Equal(t, got.Header.Get("Content-Type"), response.Header.Get("Content-Type"))
		require.Empty(t, body)
	}
}

func TestAnyConversationIDCanBeReached(t *testing.T) {
	b := setup(t)
	for id, path := range map[string]string{
		"a/b": "a%2Fb", "a//b/": "a%2F%2Fb%2F", ".": "%2E", "..": "%2e%2e", "%": "%25", "%2F": "%252F", "é 😀": "%C3%A9%20%F0%9F%98%80",
		"?": "%3F", "#": "%23", "*": "*", "context": "context", "\n": "%0A", "a;b=c": "a;b=c", "{id}": "%7Bid%7D", "+": "+",
	} {
		seq := b.publish(structured(id, "1", message("m1", "user", "I am "+id))).Seq
		for _, below := range []string{"", "/context?format=markdown", "/files", "/export"} {
			target, query, _ := strings.Cut("/v1/conversations/"+path+below, "?")
			request := fmt.Sprintf("GET %s?%s&at_least=%d HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", target, query, seq)
			if below == "/files" {
				request = fmt.Sprintf("GET %s?at_least=%d HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", target, seq)
			}
			response, body := raw(t, b.HTTPURL(), request)
			require.Equal(t, http.StatusOK, response.StatusCode, "%q%s: %s", id, below, body)
		}
	}
	for _, path := range []string{"%00", "%FF", strings.Repeat("x", 5000), "%F0%9F"} {
		response, body := raw(t, b.HTTPURL(), "GET /v1/conversations/"+path+"?at_least=1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		require.Contains(t, []int{404, 422}, response.StatusCode, body)
		require.Equal(t, "application/problem+json", response.Header.Get("Content-Type"))
	}
}

func TestTheDocsPageLoadsNothingFromElsewhere(t *testing.T) {
	b := setup(t)
	var page string
	b.get("/docs", &page)
	require.NotContains(t, page, "//", "no address of another host")
	for _, file := range []string{"/docs/swagger-ui.css", "/docs/swagger-ui-bundle.js", "/docs/start.js"} {
		require.Contains(t, page, `"`+file+`"`)
		response, body := raw(t, b.HTTPURL(), "GET "+file+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.Contains(t, response.Header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'")
		require.NotEmpty(t, body)
	}
}

func TestEveryOperationDeclaresItsStatuses(t *testing.T) {
	b := setup(t)
	var doc struct {
		Paths map[string]map[string]struct {
			Description, Summary string
			Responses            map[string]struct{ Description string }
			RequestBody          any
		}
	}
	b.get("/openapi.json", &doc)
	for path, operations := range doc.Paths {
		for method, op := range operations {
			want := []string{"499", "500", "503", "422"}
			if op.RequestBody != nil {
				want = append(want, "400", "408", "413", "415")
			}
			for _, status := range want {
				require.NotEmpty(t, op.Responses[status].Description, "%s %s: %s", method, path, status)
			}
		}
	}
}
