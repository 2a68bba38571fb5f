package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/frame"
	"mneme.dev/mneme/internal/version"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/window"
)

// Path is where the API serves MCP.
const Path = "/mcp"

// maxBody bounds a request: far more than the longest useful query.
const maxBody = 1 << 20

// Config is what the tools need.
type Config struct {
	Log   *eventlog.Log
	Views *view.Views
	Cache *view.Cache // nil disables searches
	// Build builds the context of a conversation. Nil means window.Build.
	Build func(context.Context, window.Source, window.Request) (*window.Context, error)
	// Earlier returns what a context of a view with a budget shows of the earlier sessions of its project, nil for nothing.
	// Nil shows none.
	Earlier func(ctx context.Context, pins *view.Pins, v *view.View, maxChars int) (window.Earlier, error)
	// Condense says how contexts of conversations with a profile show large tool results. Nil means
	// extractive.
	Condense func(profile string) string
	// Explain returns what a caller may know about an error, and logs the rest.
	Explain func(context.Context, error) string
	// Refuse answers a request that never becomes a tool call.
	Refuse func(w http.ResponseWriter, status int, detail string)
	// Admit is called before a tenant stores events, with the size of their data; settle is called when they are
	// stored, or can't be. Nil admits all.
	Admit func(tenant string, count, size int) (settle func(), err error)
	// Enter waits for one of the places for calls, for a call of a tenant; leave gives it back. If the error has a
	// status of HTTP, it is the answer's, else 503.
	Enter func(ctx context.Context, tenant string) (leave func(), err error)
	// Subscribe takes one of the tenant's places for requests that wait for changes; leave gives it back.
	Subscribe func(tenant string) (leave func(), ok bool)
	// Stopping returns a channel that closes when the server of a request begins to stop.
	Stopping func(context.Context) <-chan struct{}
	// Called is called for each call; outcome is ok, refused or failed.
	Called func(tool, outcome string, took time.Duration)
	// Audit is called for each call of an audited tool; outcome is as above.
	Audit  func(ctx context.Context, call, tenant, outcome string)
	Logger *slog.Logger
}

// Server serves the tools over streamable HTTP.
type Server struct {
	Config
	all, readOnly *sdk.Server
	http          http.Handler
}

// New returns a handler for [Path]. It keeps no state between requests. The sender of each request must have been
// identified before: see [access.Of].
func New(c Config) *Server {
	if c.Build == nil {
		c.Build = window.Build
	}
	s := &Server{Config: c}
	s.all, s.readOnly = s.with(true), s.with(false)
	s.http = Handler(func(r *http.Request) *sdk.Server {
		if l, ok := r.Context().Value(listenerKey{}).(*listener); ok {
			return l.server
		}
		if grant := access.Of(r.Context()); grant != nil && !access.Tools[ToolRemember].Allows(grant.Rights) || r.URL.Query().Get("read_only") == "true" {
			return s.readOnly
		}
		return s.all
	}, c.Logger)
	return s
}

// Handler serves MCP servers statelessly, which the protocol demands since 2026-07-28. The caller must refuse
// cross-origin requests.
func Handler(server func(*http.Request) *sdk.Server, logger *slog.Logger) http.Handler {
	return sdk.NewStreamableHTTPHandler(server, &sdk.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: maxBody, Logger: slog.New(warnings{logger.Handler()}),
		DisableLocalhostProtection: true, // the server checks the host itself, with the hosts that its settings allow
	})
}

// warnings drops what is no warning: of each request, the SDK logs three times that a session begins or ends.
type warnings struct{ slog.Handler }

func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}
func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }

// options are the options of every server of mneme.
func options(logger *slog.Logger) *sdk.ServerOptions {
	return &sdk.ServerOptions{
		Instructions: instructions, Logger: slog.New(warnings{logger.Handler()}),
		Capabilities: &sdk.ServerCapabilities{Resources: &sdk.ResourceCapabilities{Subscribe: true}, Prompts: &sdk.PromptCapabilities{}}, // clients are not notified when lists change
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.CacheScope = "private" },
	}
}

func implementation() *sdk.Implementation {
	return &sdk.Implementation{Name: "mneme", Title: "mneme", Version: version.Get().Version}
}

// with returns a server with the tools that read and, if write is true, the one that writes.
func (s *Server) with(write bool) *sdk.Server {
	server := newServer(s, plainly(s.Logger))
	server.AddReceivingMiddleware(withoutSubscriptions, checked(Definitions(write)))
	for _, tool := range Definitions(write) {
		switch tool.Name {
		case ToolContext:
			add(s, server, tool, (*call).context)
		case ToolSearch:
			add(s, server, tool, (*call).search)
		case ToolRead:
			add(s, server, tool, (*call).read)
		case ToolFileHistory:
			add(s, server, tool, (*call).history)
		case ToolRemember:
			add(s, server, tool, (*call).remember)
		}
	}
	return server
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	about, status, err := scopeOf(r)
	if err != nil {
		s.Refuse(w, status, err.Error())
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // proxies must not hold events back
	r = r.WithContext(context.WithValue(r.Context(), scopeKey{}, about))
	if r.Header.Get("Mcp-Method") == methodListen { // the SDK refuses a request whose body says otherwise
		s.listen(w, r)
		return
	}
	s.answer(w, r)
}

// answer serves one request. Preparing a request for the protocol takes far more memory than the request itself. So a
// request waits for its place before that, but only once it has arrived: a client that sends slowly occupies no place.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		s.Refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the request has more than %d bytes", large.Limit))
		return
	case err != nil:
		s.Refuse(w, http.StatusBadRequest, "the request did not arrive as a whole")
		return
	}
	about, _ := r.Context().Value(scopeKey{}).(scope)
	leave, err := s.Enter(r.Context(), about.tenant)
	if err != nil {
		status := http.StatusServiceUnavailable
		var refused interface{ GetStatus() int }
		if errors.As(err, &refused) {
			status = refused.GetStatus()
		}
		w.Header().Set("Retry-After", "5")
		s.Refuse(w, status, s.Explain(r.Context(), err))
		return
	}
	leave = sync.OnceFunc(leave)
	defer leave()
	r = r.WithContext(context.WithValue(r.Context(), placeKey{}, leave))
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.http.ServeHTTP(w, r)
}

// placeKey is the context key for the function that gives back the place of a request once its work is done: a client
// that takes its answer slowly occupies none.
type placeKey struct{}

// answer is what a tool returns: a text, or a value that is shown as JSON. Recorded text is put into a frame, see
// package frame, with this id and sequence.
type answer struct {
	text  string
	value any
	id    string // "" means a hash of the text
	seq   uint64 // 0 if the answer is not of one sequence
	bare  bool   // nothing recorded is in it, so it needs no frame
}

// frameRoom is the room for the frame of an answer, whose id has 16 characters.
const frameRoom = frame.Room - 64 + 16

// refusal is an error whose text is for the caller, who can correct the request.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// call is one tool call, or another request that is answered in the same way.
type call struct {
	*Server
	scope
	grant  *access.Grant // nil if the server asks for no tokens
	pins   *view.Pins
	client string // its name, "" if it does not say
}

func add[In any](s *Server, server *sdk.Server, tool *sdk.Tool, do func(*call, context.Context, In) (answer, error)) {
	sdk.AddTool(server, tool, func(ctx context.Context, r *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
		var a answer
		err := s.perform(ctx, request{"tools/call " + tool.Name, tool.Name, tool.Name, r.Params.Meta, r.Session}, func(ctx context.Context, c *call) (err error) {
			a, err = do(c, ctx, in)
			return err
		})
		if err != nil {
			return nil, nil, err
		}
		return a.result()
	})
}

// request is what the protocol says about a request.
type request struct {
	span    string // its name
	counted string // the name that metrics have for it
	tool    string // the request needs the rights of this tool
	meta    sdk.Meta
	session *sdk.ServerSession
}

// failure is an error whose cause the caller must not see.
type failure string

func (f failure) Error() string { return string(f) }

// perform carries out a request if the caller has the rights, and counts it. The error is a refusal or a failure.
func (s *Server) perform(ctx context.Context, r request, do func(context.Context, *call) error) error {
	began := time.Now()
	ctx, span := begin(ctx, r.span, r.meta)
	defer span.End()
	c := &call{Server: s, grant: access.Of(ctx), pins: s.Views.Pin(), client: clientOf(r.meta, r.session)}
	c.scope, _ = ctx.Value(scopeKey{}).(scope)
	defer c.pins.Release()
	var err error
	if need := access.Tools[r.tool]; c.grant != nil && !need.Allows(c.grant.Rights) {
		err = refuse("%s needs the role %s, and the token has %s", r.counted, need.Role, c.grant.Role)
	} else {
		err = do(ctx, c)
	}
	outcome := "ok"
	var mine refusal
	switch {
	case errors.As(err, &mine):
		outcome = "refused"
		err = refusal(plain.Clip(err.Error(), maxError))
	case err != nil:
		outcome = "failed"
		err = failure(plain.Clip(s.Explain(ctx, err), maxError))
	}
	if err != nil {
		span.SetAttributes(semconv.ErrorTypeKey.String(outcome))
		span.SetStatus(codes.Error, "")
	}
	s.Called(r.counted, outcome, time.Since(began))
	if access.Tools[r.tool].Audit == access.AuditRead {
		s.Audit(ctx, r.counted, c.tenant, outcome)
	}
	if leave, ok := ctx.Value(placeKey{}).(func()); ok {
		leave()
	}
	return err
}

// result returns the answer in the protocol's form: one text, never structuredContent. Of an answer with both, some clients
// show a model only the structured half, in which a frame has no place, and others show it both, so it reads all twice.
func (a answer) result() (*sdk.CallToolResult, any, error) {
	if a.value != nil {
		raw, err := encode(a.value)
		if err != nil {
			return nil, nil, err
		}
		a.text = string(raw)
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: a.framed()}}}, nil, nil
}

// framed returns the text of an answer in its frame.
func (a answer) framed() string {
	if a.bare {
		return a.text
	}
	hash := sha256.Sum256([]byte(a.text))
	return frame.Wrap(cmp.Or(a.id, hex.EncodeToString(hash[:8])), a.seq, strings.TrimSuffix(a.text, "\n"))
}

// encode writes JSON for a model: it does not escape <.
func encode(value any) ([]byte, error) {
	var w bytes.Buffer
	e := json.NewEncoder(&w)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimSpace(w.Bytes()), err
}

// Guard returns the layer between the protocol and the tools. It cuts the texts of errors, which can quote an argument.
// It turns a panic into an error of its request: the SDK handles requests in goroutines of its own, where a panic would
// end the program. It replaces arguments that are null with an empty object, because the SDK can't handle null.
func Guard(logger *slog.Logger) sdk.Middleware {
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (result sdk.Result, err error) {
			defer func() {
				if cause := recover(); cause != nil {
					logger.ErrorContext(ctx, "panic", "method", method, "cause", cause, "stack", string(debug.Stack()))
					result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "this is a mistake in mneme; its log has the details"}
				}
			}()
			if p, ok := r.GetParams().(*sdk.CallToolParamsRaw); ok && p != nil && string(bytes.TrimSpace(p.Arguments)) == "null" {
				p.Arguments = nil
			}
			result, err = next(ctx, method, r)
			called, ok := result.(*sdk.CallToolResult)
			if !ok || called == nil || !called.IsError {
				return result, err
			}
			for _, content := range called.Content {
				if t, ok := content.(*sdk.TextContent); ok {
					t.Text = plain.Clip(t.Text, maxError)
				}
			}
			return called, err
		}
	}
}

// begin begins the span of a call, in the trace that the caller names in _meta, or else in that of the HTTP request.
func begin(ctx context.Context, name string, meta sdk.Meta) (context.Context, trace.Span) {
	tracer := trace.SpanFromContext(ctx).TracerProvider().Tracer("mneme.dev/mneme/internal/mcp")
	carrier := propagation.MapCarrier{}
	for _, name := range []string{"traceparent", "tracestate"} {
		if value, ok := meta[name].(string); ok {
			carrier[name] = value
		}
	}
	var links []trace.Link
	if of := trace.LinkFromContext(ctx); len(carrier) > 0 && of.SpanContext.IsValid() {
		links = append(links, of)
	}
	ctx = propagation.TraceContext{}.Extract(ctx, carrier)
	return tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithLinks(links...))
}

// clientOf returns the name of the program that calls.
func clientOf(meta sdk.Meta, session *sdk.ServerSession) string {
	if info, ok := meta["io.modelcontextprotocol/clientInfo"].(map[string]any); ok {
		name, _ := info["name"].(string)
		return name
	}
	if session != nil {
		if p := session.InitializeParams(); p != nil && p.ClientInfo != nil {
			return p.ClientInfo.Name
		}
	}
	return ""
}

// known are the parameters of the URL.
var known = []string{"tenant", "project", "conversation", "read_only"}

// unknown returns the first parameter that is not known, "" if all are.
func unknown(r *http.Request) string {
	for _, name := range slices.Sorted(maps.Keys(r.URL.Query())) {
		if !slices.Contains(known, name) {
			return name + "; known are " + strings.Join(known, ", ")
		}
	}
	return ""
}
