package mcp

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"mneme.dev/mneme/events"
)

const (
	methodListen    = "subscriptions/listen"
	methodSubscribe = "resources/subscribe"

	// notifyEvery is the shortest time between two notifications about a resource.
	notifyEvery = time.Second
	// maxWatched is how many resources one request may subscribe to.
	maxWatched = 16
)

type listenerKey struct{}

// listener is a request that waits for changes of resources. It has a server of its own, because the SDK notifies all
// subscribers of an address, and the same address is another conversation in another tenant.
type listener struct {
	server  *sdk.Server
	watched int
	follows sync.WaitGroup
}

// listen serves a request that subscribes, until the client leaves, the token ends or the server stops.
func (s *Server) listen(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	leave, ok := s.Subscribe(ctx.Value(scopeKey{}).(scope).tenant)
	if !ok {
		w.Header().Set("Retry-After", "60")
		s.Refuse(w, http.StatusServiceUnavailable, "too many subscriptions are open: end some, or read the resource again from time to time")
		return
	}
	defer leave()
	stopping := s.Stopping(ctx)
	go func() {
		select {
		case <-stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	l := &listener{}
	o := options(s.Logger)
	o.SubscribeHandler = func(ctx context.Context, r *sdk.SubscribeRequest) error { return s.follow(ctx, l, r) }
	o.UnsubscribeHandler = ended
	l.server = sdk.NewServer(implementation(), o)
	l.server.AddReceivingMiddleware(Guard(s.Logger))
	s.http.ServeHTTP(w, r.WithContext(context.WithValue(ctx, listenerKey{}, l)))
	cancel()
	l.follows.Wait()
}

// ended is for subscriptions that end with their request.
func ended(context.Context, *sdk.UnsubscribeRequest) error { return nil }

// follow notifies a listener of changes of a conversation from now on. It refuses callers that may not read it.
func (s *Server) follow(ctx context.Context, l *listener, r *sdk.SubscribeRequest) error {
	address := r.Params.URI
	var id events.ConversationID
	var seq uint64
	err := s.perform(ctx, request{methodListen, methodListen, ToolContext, r.Params.Meta, r.Session}, func(ctx context.Context, c *call) (err error) {
		if l.watched == maxWatched {
			return refuse("a request can subscribe to %d resources, not to more", maxWatched)
		}
		name, err := conversationAt(address)
		if err != nil {
			return err
		}
		id = events.ConversationID{Tenant: c.tenant, ID: name}
		if err := c.permit(ctx, id); err != nil {
			return err
		}
		seq, err = c.pins.Position(ctx, id)
		if err == nil && seq == 0 {
			err = c.noConversation(id)
		}
		return err
	})
	if err != nil {
		return problem(err)
	}
	l.watched++
	l.follows.Go(func() {
		err := s.Views.Follow(ctx, id, seq, notifyEvery, func() {
			_ = l.server.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: address}) // it never fails
		})
		if err != nil && ctx.Err() == nil {
			s.Logger.WarnContext(ctx, "a subscription gets no notifications", "conversation", id.ID, "error", err)
		}
	})
	return nil
}

// conversationAt returns the conversation whose resource is at an address.
func conversationAt(address string) (string, error) {
	u, err := url.Parse(address)
	if err == nil && u.Scheme == "mneme" && u.Host == "conversations" {
		if _, read := resourceAt(address); read != nil {
			first, _, _ := strings.Cut(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
			return url.PathUnescape(first)
		}
	}
	return "", refuse("only conversations can be subscribed to: mneme://conversations/ID/context")
}

// plainly returns the options of a server that answers one request at a time. Before protocol 2026-07-28, clients
// subscribed in one request and were notified in another. Over HTTP no state is kept between requests, so these clients
// are told that they can't subscribe.
func plainly(logger *slog.Logger) *sdk.ServerOptions {
	o := options(logger)
	o.SubscribeHandler = func(context.Context, *sdk.SubscribeRequest) error {
		return problem(refuse("over HTTP, subscriptions need protocol 2026-07-28 and its method %s", methodListen))
	}
	o.UnsubscribeHandler = ended
	return o
}

// withoutSubscriptions removes subscriptions from the capabilities that a client of an earlier protocol is told.
func withoutSubscriptions(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		result, err := next(ctx, method, r)
		if begun, ok := result.(*sdk.InitializeResult); ok && begun != nil && begun.Capabilities != nil {
			can := *begun.Capabilities
			can.Resources = &sdk.ResourceCapabilities{}
			begun.Capabilities = &can
		}
		return result, err
	}
}
