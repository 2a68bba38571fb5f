package mcp_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mcp"
	"mneme.dev/mneme/internal/mnemetest"
)

// lines are the connections of a client.
type lines struct {
	mu   sync.Mutex
	open []net.Conn
}

func (l *lines) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.open = append(l.open, c)
	}
	return c, err
}

// cut ends all connections, as a server does that stops.
func (l *lines) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		_ = c.Close()
	}
	l.open = nil
}

// host runs a proxy, and connects to it as an agent does. heard has the addresses of what changes.
func (b *bundle) host(l *lines) (host *sdk.ClientSession, heard chan string) {
	b.t.Helper()
	return b.hostBy(&http.Transport{DialContext: l.dial})
}

func (b *bundle) hostBy(road http.RoundTripper) (host *sdk.ClientSession, heard chan string) {
	b.t.Helper()
	fromHost, toProxy := io.Pipe()
	fromProxy, toHost := io.Pipe()
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	remote := mcp.Remote{
		URL: b.HTTPURL(), Project: "shop", HTTP: &http.Client{Transport: road}, Explain: func(err error) string { return err.Error() },
	}
	go func() { done <- mcp.Proxy(ctx, remote, fromHost, toHost, slog.New(slog.DiscardHandler)) }()
	heard = make(chan string, 100)
	c := sdk.NewClient(&sdk.Implementation{Name: "host", Version: "1"}, &sdk.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { heard <- r.Params.URI },
	})
	host, err := c.Connect(b.t.Context(), &sdk.IOTransport{Reader: fromProxy, Writer: toProxy}, nil)
	require.NoError(b.t, err)
	b.t.Cleanup(func() {
		_ = host.Close()
		cancel()
		if err := <-done; !errors.Is(err, io.ErrClosedPipe) { // the answer to a call that was cancelled may come too late
			require.NoError(b.t, err)
		}
	})
	return host, heard
}

// hears publishes until a change of the cart is told: a subscription has no answer, so the first may come before it.
func (b *bundle) hears(heard chan string, what string) {
	b.t.Helper()
	for began := time.Now(); ; {
		b.say("default", "cart", said(time.Now().Format(time.RFC3339Nano), "user", "hello"))
		select {
		case uri := <-heard:
			require.Equal(b.t, cart, uri)
			return
		case <-time.After(100 * time.Millisecond):
			require.Less(b.t, time.Since(began), mnemetest.Patience, what)
		}
	}
}

func TestASubscriptionThatTheServerEndedIsMadeAgainAtTheNextCall(t *testing.T) {
	b := setup(t)
	b.shop("default")
	l := &lines{}
	host, heard := b.host(l)
	require.NoError(t, host.Subscribe(t.Context(), &sdk.SubscribeParams{URI: cart}))
	b.hears(heard, "at first")
	for range 2 {
		l.cut()
		require.Eventually(t, func() bool { // the first call may come before the end of the subscription is noticed
			result, err := host.CallTool(t.Context(), &sdk.CallToolParams{Name: mcp.ToolSearch, Arguments: map[string]any{"query": "hello"}})
			require.NoError(t, err)
			require.False(t, result.IsError)
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(l.open) > 1 // the subscription has one of its own
		}, mnemetest.Patience, 20*time.Millisecond)
		b.hears(heard, "after the connection was cut")
	}
}

// hanging answers no call of a tool that names a query, and tells of it.
type hanging struct{ begun chan struct{} }

// RoundTrip implements http.RoundTripper.
func (h hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Mcp-Name") == mcp.ToolSearch {
		h.begun <- struct{}{}
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return http.DefaultTransport.RoundTrip(r)
}

func TestACallThatTheAgentCancelsEndsNoSubscription(t *testing.T) {
	b := setup(t)
	b.shop("default")
	road := hanging{make(chan struct{})}
	host, heard := b.hostBy(road)
	require.NoError(t, host.Subscribe(t.Context(), &sdk.SubscribeParams{URI: cart}))
	b.hears(heard, "at first")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := host.CallTool(ctx, &sdk.CallToolParams{Name: mcp.ToolSearch})
		ended <- err
	}()
	<-road.begun
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	time.Sleep(time.Second) // a notification may still be on its way
	for len(heard) > 0 {
		<-heard
	}
	b.hears(heard, "after a call was cancelled")
}

// unconnected lets no connection be made until it is over, and tells of the first try.
type unconnected struct{ begun, over chan struct{} }

// RoundTrip implements http.RoundTripper.
func (u unconnected) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case u.begun <- struct{}{}:
	default:
	}
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-u.over:
		return nil, net.ErrClosed
	}
}

func TestAServerThatDoesNotAnswerACallDoesNotKeepTheListOfToolsWaiting(t *testing.T) {
	b := setup(t)
	road := unconnected{make(chan struct{}, 1), make(chan struct{})}
	host, _ := b.hostBy(road)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := host.CallTool(ctx, &sdk.CallToolParams{Name: mcp.ToolSearch})
		ended <- err
	}()
	<-road.begun
	listing, stop := context.WithTimeout(t.Context(), mnemetest.Patience)
	defer stop()
	list, err := host.ListTools(listing, nil)
	require.NoError(t, err)
	require.NotEmpty(t, list.Tools)
	require.Empty(t, ended, "the call still waits")
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	close(road.over) // the client still tries to end the session that it has not got
}

func TestARefusalIsToldInTheWordsOfTheServer(t *testing.T) {
	b := setup(t)
	b.shop("default")
	host, _ := b.host(&lines{})
	_, err := host.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "mneme://conversations/nothing/context"})
	require.ErrorContains(t, err, `there is no conversation "nothing"`)
	require.NotContains(t, err.Error(), "rejected by transport")
}
