package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
)

// How long a client may neither send nor take anything (the default of [Config.Stall]),
// and how long a request body that is read as a whole may take to arrive.
const (
	defaultStall = 30 * time.Second
	bodyTimeout  = time.Minute
)

// around wraps every request: it finds out who sends it, compresses, enforces time limits,
// and turns each error into a problem document. A page of another site may neither write nor, see [embedded], read.
func (a *api) around(mux *http.ServeMux) http.Handler {
	packed, err := gzhttp.NewWrapper(gzhttp.EnableZstd(false), gzhttp.AllowCompressedRequests(true), gzhttp.ContentTypeFilter(packs),
		gzhttp.CompressionLevel(gzip.BestSpeed)) // better compression would double the time for a context
	if err != nil {
		panic(err) // the options contradict each other
	}
	sites := http.NewCrossOriginProtection()
	return packed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		answer := &response{ResponseWriter: w, control: control, stall: a.Stall}
		defer a.recover(answer, r)
		if sites.Check(r) != nil {
			writeProblem(answer, http.StatusForbidden, "a browser sent this for a page of another site, and such pages may not write here")
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if embedded(r) && !isOpen(r.URL.Path) {
			writeProblem(answer, http.StatusForbidden, "a browser sent this for a page of another site, which may not read here; open the address itself, or by a link")
			return
		}
		body := &requestBody{ReadCloser: r.Body, answer: answer, control: control, stall: a.Stall, until: time.Now().Add(bodyTimeout)}
		if a.Gate != nil && !isOpen(r.URL.Path) {
			grant, err := a.Gate.Check(r)
			if err != nil {
				a.refuse(answer, r, err)
				return
			}
			ctx, end := grant.During(r.Context(), func() { answer.cutOff(); body.cutOff() })
			defer end()
			r = r.WithContext(ctx)
		}
		if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
			writeProblem(answer, http.StatusUnsupportedMediaType, fmt.Sprintf("Content-Encoding %q is not supported, send gzip", coding))
			return
		}
		r.Body = body
		route(mux, answer, r)
		if answer.looksComplete() {
			panic(http.ErrAbortHandler)
		}
	}))
}

// embedded reports whether a page of another site asks for an answer that it embeds, or fetches. The browser withholds
// the answer from the page, but not how long it took, which tells whether a search finds something; and the server
// does the work. A link that a person follows is not meant.
func embedded(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		mode, dest := r.Header.Get("Sec-Fetch-Mode"), r.Header.Get("Sec-Fetch-Dest")
		return mode != "" && (mode != "navigate" || dest != "document")
	}
	return false
}

// packs reports whether answers of a type are compressed. Events are not: each must leave at once.
func packs(contentType string) bool {
	return gzhttp.DefaultContentTypeFilter(contentType) && !strings.HasPrefix(contentType, "text/event-stream")
}

// recover answers 500 for a panic. If the answer has begun it cuts the connection, because
// the answer must not look complete.
func (a *api) recover(w *response, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause != http.ErrAbortHandler { //nolint:errorlint // net/http compares it the same way
		a.Logger.Error("panic", "method", r.Method, "path", r.URL.Path, "cause", cause, "stack", string(debug.Stack()))
	}
	if w.status != 0 || cause == http.ErrAbortHandler { //nolint:errorlint // as above
		panic(http.ErrAbortHandler)
	}
	writeProblem(w, http.StatusInternalServerError, "this is a mistake in mneme; its log has the details")
}

// route calls the handler of a path. It refuses a path that is not in its shortest form,
// which the mux would redirect: "/v1/conversations//context", where an id is missing,
// would become the conversation "context".
func route(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	asked := r.URL.EscapedPath()
	if asked == lookupPath && r.Method != http.MethodPost { // the mux would take the last part for an event's sequence
		methodNotAllowed(w, r, http.MethodPost)
		return
	}
	short := path.Clean("/" + asked)
	handler, pattern := mux.Handler(r)
	if pattern != "" && (asked == short || strings.HasSuffix(pattern, "/")) {
		mux.ServeHTTP(w, r)
		return
	}
	if asked != short {
		detail := fmt.Sprintf("there is nothing at %s; an id is percent-encoded, and never empty", asked)
		if serves(mux, r, short) {
			detail = fmt.Sprintf("there is nothing at %s; did you mean %s? An id is percent-encoded, and never empty", asked, short)
		}
		writeProblem(w, http.StatusNotFound, detail)
		return
	}
	refusal := refusal{header: http.Header{}}
	handler.ServeHTTP(&refusal, r)
	allowed := refusal.header.Get("Allow")
	if allowed == "" {
		writeProblem(w, http.StatusNotFound, fmt.Sprintf("there is nothing at %s; /docs and /openapi.json list every path", asked))
		return
	}
	methodNotAllowed(w, r, allowed)
}

// serves reports whether a request with another path would have a handler.
func serves(mux *http.ServeMux, r *http.Request, escaped string) bool {
	other, err := url.Parse(escaped)
	if err != nil {
		return false
	}
	_, pattern := mux.Handler(&http.Request{Method: r.Method, Host: r.Host, URL: other})
	return pattern != ""
}

// methodNotAllowed answers OPTIONS, and methods that a path does not have.
func methodNotAllowed(w http.ResponseWriter, r *http.Request, allowed string) {
	w.Header().Set("Allow", allowed+", OPTIONS")
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	writeProblem(w, http.StatusMethodNotAllowed, fmt.Sprintf("%s is not possible here; possible: %s", r.Method, allowed))
}

// refusal captures the headers with which the mux answers a path or method without a
// handler: they list the allowed methods.
type refusal struct{ header http.Header }

func (r *refusal) Header() http.Header         { return r.header }
func (r *refusal) Write(p []byte) (int, error) { return len(p), nil }
func (r *refusal) WriteHeader(int)             {}

// writeProblem writes a problem document for a request that no operation answers.
func writeProblem(w http.ResponseWriter, status int, detail string) {
	body, err := json.Marshal(huma.ErrorModel{Status: status, Title: http.StatusText(status), Detail: detail})
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", cacheNothing)
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
