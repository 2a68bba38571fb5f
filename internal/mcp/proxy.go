package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/mcp/stdio"
	"mneme.dev/mneme/internal/version"
	"mneme.dev/mneme/pkg/plain"
)

// Remote says where the server is and what the agent works on.
type Remote struct {
	URL          string // of the API, without a path
	Tenant       string // "" leaves it to the server
	Project      string // a name or a folder; "" if it is unknown
	Conversation string // of the agent's session; "" if it is unknown
	ReadOnly     bool
	HTTP         *http.Client
	Explain      func(error) string // why the server does not answer, and what to do
}

// endpoint returns the URL that carries the scope.
func (r Remote) endpoint() string {
	query := url.Values{}
	for name, value := range map[string]string{"tenant": r.Tenant, "project": r.Project, "conversation": r.Conversation} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if r.ReadOnly {
		query.Set("read_only", "true")
	}
	return strings.TrimRight(r.URL, "/") + Path + "?" + query.Encode()
}

// dial connects to the server in the name of a client, "" if it has none. updated is called when a resource changes
// that the session subscribes to, and ended when the server or the network ends a subscription.
func (r Remote) dial(ctx context.Context, client string, updated func(address string), ended func()) (*sdk.ClientSession, error) {
	c := sdk.NewClient(&sdk.Implementation{Name: cmp.Or(client, "mneme"), Version: version.Get().Version}, &sdk.ClientOptions{
		Capabilities:           &sdk.ClientCapabilities{},
		ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { updated(r.Params.URI) },
	})
	return c.Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint: r.endpoint(), HTTPClient: listening(r.HTTP, ended), MaxRetries: -1, DisableStandaloneSSE: true,
	}, nil)
}

// Tools returns the names of the tools that the server lists.
func (r Remote) Tools(ctx context.Context) (names []string, err error) {
	session, err := r.dial(ctx, "", func(string) {}, func() {})
	if err != nil {
		return nil, err
	}
	defer func() { _ = session.Close() }()
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		names = append(names, tool.Name)
	}
	return names, nil
}

// listWithin is how long the server may take to list its tools. Hosts wait for the list before they start.
const listWithin = 5 * time.Second

// Proxy serves the tools on two streams, for agents that start their MCP servers as programs. It lists prompts itself,
// and has the server list the tools, which depend on the token, and answer each call. It also runs while there is no
// server: it then lists all tools, and calls say what is missing, because a host shows nothing of a program that ended.
func Proxy(ctx context.Context, remote Remote, in io.ReadCloser, out io.WriteCloser, logger *slog.Logger) error {
	p := &proxy{Remote: remote, dialing: make(chan struct{}, 1), watched: map[string]int{}}
	defer p.drop(nil)
	o := options(logger)
	o.SubscribeHandler, o.UnsubscribeHandler = p.subscribe, p.unsubscribe
	server := newServer(p, o)
	server.AddReceivingMiddleware(p.offered)
	p.updated = func(address string) {
		_ = server.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: address}) // it never fails
	}
	for _, tool := range Definitions(!remote.ReadOnly) {
		server.AddTool(tool, p.call)
	}
	err := server.Run(ctx, stdio.New(in, out))
	if ctx.Err() != nil {
		return nil // it was told to end
	}
	return err
}

// proxy passes calls on to the server.
type proxy struct {
	Remote
	updated func(address string)
	dialing chan struct{} // has room for who makes a connection: others wait no longer than they have time

	mu      sync.Mutex
	session *sdk.ClientSession // nil until the first call
	deaf    *atomic.Bool       // of the session: one of its subscriptions has ended
	watched map[string]int     // how often each resource is subscribed to

	// When a new connection may be made because of a subscription that has ended, and how long after the last one: a server
	// that refuses it, because the conversation was deleted, ends it again at once.
	again time.Time
	pause time.Duration
}

const maxAgain = time.Minute

// call forwards a tool call.
func (p *proxy) call(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	params := &sdk.CallToolParams{Name: r.Params.Name, Arguments: r.Params.Arguments, Meta: traceOf(r.Params.Meta)}
	if len(r.Params.Arguments) == 0 {
		params.Arguments = struct{}{}
	}
	result, err := hand(ctx, p, clientOf(r.Params.Meta, r.Session), func(s *sdk.ClientSession) (*sdk.CallToolResult, error) { return s.CallTool(ctx, params) })
	if err != nil {
		result = &sdk.CallToolResult{}
		result.SetError(refusal(plain.Clip(p.whyNot(params.Name, err), maxError)))
	}
	return result, nil
}

// whyNot says why a call of a tool got no answer. The server does not know a tool that it does not list.
func (p *proxy) whyNot(tool string, err error) string {
	var answered *jsonrpc.Error
	switch {
	case !isRefused(err) || !errors.As(err, &answered):
		return p.Explain(err)
	case access.Tools[tool].Role > access.Read && strings.HasPrefix(answered.Message, "unknown tool"):
		return fmt.Sprintf("%s needs a token with the role %s, and the token of this MCP server has a lower one", tool, access.Tools[tool].Role)
	}
	return answered.Message
}

// offered leaves out of the list of tools what the server does not list.
func (p *proxy) offered(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		result, err := next(ctx, method, r)
		list, ok := result.(*sdk.ListToolsResult)
		asked, known := r.(*sdk.ListToolsRequest)
		if err != nil || !ok || !known {
			return result, err
		}
		var meta sdk.Meta
		if asked.Params != nil {
			meta = asked.Params.Meta
		}
		ctx, cancel := context.WithTimeout(ctx, listWithin)
		defer cancel()
		theirs, err := hand(ctx, p, clientOf(meta, asked.Session), func(s *sdk.ClientSession) (*sdk.ListToolsResult, error) {
			return s.ListTools(ctx, &sdk.ListToolsParams{Meta: traceOf(meta)})
		})
		if err != nil {
			return list, nil
		}
		list.Tools = slices.DeleteFunc(list.Tools, func(mine *sdk.Tool) bool {
			return !slices.ContainsFunc(theirs.Tools, func(t *sdk.Tool) bool { return t.Name == mine.Name })
		})
		return list, nil
	}
}

func (p *proxy) resources(ctx context.Context, r *sdk.ListResourcesRequest) ([]*sdk.Resource, error) {
	result, err := hand(ctx, p, clientOf(r.Params.Meta, r.Session), func(s *sdk.ClientSession) (*sdk.ListResourcesResult, error) {
		return s.ListResources(ctx, &sdk.ListResourcesParams{Meta: traceOf(r.Params.Meta)})
	})
	if err != nil {
		return nil, p.problem(err)
	}
	return result.Resources, nil
}

func (p *proxy) resource(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	result, err := hand(ctx, p, clientOf(r.Params.Meta, r.Session), func(s *sdk.ClientSession) (*sdk.ReadResourceResult, error) {
		return s.ReadResource(ctx, &sdk.ReadResourceParams{Meta: traceOf(r.Params.Meta), URI: r.Params.URI})
	})
	return result, p.problem(err)
}

func (p *proxy) prompt(ctx context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
	result, err := hand(ctx, p, clientOf(r.Params.Meta, r.Session), func(s *sdk.ClientSession) (*sdk.GetPromptResult, error) {
		return s.GetPrompt(ctx, &sdk.GetPromptParams{Meta: traceOf(r.Params.Meta), Name: r.Params.Name, Arguments: r.Params.Arguments})
	})
	return result, p.problem(err)
}

func (p *proxy) complete(ctx context.Context, r *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	result, err := hand(ctx, p, clientOf(r.Params.Meta, r.Session), func(s *sdk.ClientSession) (*sdk.CompleteResult, error) {
		return s.Complete(ctx, &sdk.CompleteParams{Meta: traceOf(r.Params.Meta), Argument: r.Params.Argument, Context: r.Params.Context, Ref: r.Params.Ref})
	})
	return result, p.problem(err)
}

// subscribe has the server report changes of a resource. Because a server answers a subscription only when it ends,
// subscribe asks first whether the resource can be read.
func (p *proxy) subscribe(ctx context.Context, r *sdk.SubscribeRequest) error {
	if _, err := conversationAt(r.Params.URI); err != nil {
		return problem(err)
	}
	if _, err := p.resource(ctx, &sdk.ReadResourceRequest{Session: r.Session, Params: &sdk.ReadResourceParams{Meta: r.Params.Meta, URI: r.Params.URI}}); err != nil {
		return err
	}
	p.mu.Lock()
	p.watched[r.Params.URI]++
	session := p.session
	p.mu.Unlock()
	if session == nil {
		return nil // the connection has broken since; the next one subscribes
	}
	return p.problem(session.Subscribe(ctx, &sdk.SubscribeParams{URI: r.Params.URI}))
}

func (p *proxy) unsubscribe(ctx context.Context, r *sdk.UnsubscribeRequest) error {
	p.mu.Lock()
	session := p.session
	p.watched[r.Params.URI]--
	last := p.watched[r.Params.URI] <= 0
	if last {
		delete(p.watched, r.Params.URI)
	}
	p.mu.Unlock()
	if !last || session == nil {
		return nil
	}
	return p.problem(session.Unsubscribe(ctx, &sdk.UnsubscribeParams{URI: r.Params.URI}))
}

// problem returns why a request got no answer: the server's refusal, without how it came here, or why it does not answer.
func (p *proxy) problem(err error) error {
	var answered *jsonrpc.Error
	if err == nil {
		return nil
	}
	if isRefused(err) && errors.As(err, &answered) {
		return answered
	}
	return problem(failure(plain.Clip(p.Explain(err), maxError)))
}

// isRefused reports whether the server answered, and refused.
func isRefused(err error) bool {
	var answered *jsonrpc.Error
	return errors.As(err, &answered) && answered.Code == jsonrpc.CodeInvalidParams
}

// hand passes a request on. If the connection is from an earlier request, the server may have closed it since. Then it
// tries once more, which is safe because requests only read, or change nothing when they are repeated. A request that the
// agent cancels says nothing about the connection, on which other requests and the subscriptions still wait.
func hand[R any](ctx context.Context, p *proxy, client string, do func(*sdk.ClientSession) (R, error)) (result R, err error) {
	for {
		session, fresh, err := p.connected(ctx, client)
		if err == nil {
			if result, err = do(session); err == nil || isRefused(err) || ctx.Err() != nil {
				return result, err
			}
			p.drop(session)
		}
		if fresh || ctx.Err() != nil {
			return result, err
		}
	}
}

// traceOf keeps the trace that a call belongs to. The rest of _meta concerns the connection to the agent.
func traceOf(meta sdk.Meta) sdk.Meta {
	kept := sdk.Meta{}
	for _, name := range []string{"traceparent", "tracestate"} {
		if value, ok := meta[name]; ok {
			kept[name] = value
		}
	}
	return kept
}

// connected returns the connection to the server, and whether it was just made. If a subscription has ended, it makes a
// new one, which subscribes again: calls need no connection that lasts, so they don't notice that the server was restarted.
func (p *proxy) connected(ctx context.Context, client string) (session *sdk.ClientSession, fresh bool, err error) {
	if session = p.usable(false); session != nil {
		return session, false, nil
	}
	select {
	case p.dialing <- struct{}{}:
		defer func() { <-p.dialing }()
	case <-ctx.Done():
		return nil, true, ctx.Err()
	}
	if session = p.usable(true); session != nil {
		return session, false, nil
	}
	deaf := &atomic.Bool{}
	if session, err = p.dial(ctx, client, p.updated, func() { deaf.Store(true) }); err != nil {
		return nil, true, err
	}
	p.mu.Lock()
	old, addresses := p.session, slices.Collect(maps.Keys(p.watched))
	p.session, p.deaf = session, deaf
	p.mu.Unlock()
	if old != nil {
		go func() { _ = old.Close() }() // other calls may still use it: they are repeated
	}
	for _, address := range addresses {
		_ = session.Subscribe(ctx, &sdk.SubscribeParams{URI: address}) // if it fails, the request at hand says why
	}
	return session, true, nil
}

// usable returns the connection, nil if there is none, or if one of its subscriptions has ended and it is time for a new
// one. If the caller then makes one, others use the old one for the time being.
func (p *proxy) usable(making bool) *sdk.ClientSession {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.session == nil || len(p.watched) == 0 || !p.deaf.Load() || !now.After(p.again) {
		return p.session
	}
	if making {
		if now.Sub(p.again) > maxAgain {
			p.pause = 0
		}
		p.pause = min(max(2*p.pause, time.Second), maxAgain)
		p.again = now.Add(p.pause)
	}
	return nil
}

// drop closes a connection; nil means the current one.
func (p *proxy) drop(session *sdk.ClientSession) {
	p.mu.Lock()
	if session == nil || session == p.session {
		session, p.session = p.session, nil
	}
	p.mu.Unlock()
	if session != nil {
		_ = session.Close()
	}
}
