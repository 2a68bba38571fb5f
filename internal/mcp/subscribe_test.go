package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/access"
)

// subscription is an open request subscriptions/listen.
type subscription struct {
	t       *testing.T
	status  int
	refusal string // instead of the messages
	lines   *bufio.Scanner
}

// subscribe subscribes to resources, and waits for the acknowledgement or the refusal.
func (b *bundle) subscribe(token, tenant string, addresses ...string) *subscription {
	b.t.Helper()
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen",
		"params": map[string]any{
			"notifications": map[string]any{"resourceSubscriptions": addresses},
			"_meta": map[string]any{
				"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
				"io.modelcontextprotocol/clientInfo":         map[string]string{"name": "test", "version": "1"},
				"io.modelcontextprotocol/clientCapabilities": map[string]any{},
			},
		},
	})
	require.NoError(b.t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	b.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.HTTPURL()+"/mcp?tenant="+url.QueryEscape(tenant), strings.NewReader(string(body)))
	require.NoError(b.t, err)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen",
	} {
		r.Header.Set(name, value)
	}
	response, err := (&http.Client{Transport: bearer(token)}).Do(r)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = response.Body.Close() })
	s := &subscription{t: b.t, status: response.StatusCode}
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		text, err := io.ReadAll(response.Body)
		require.NoError(b.t, err)
		s.refusal = string(text)
		return s
	}
	s.lines = bufio.NewScanner(response.Body)
	if text, _ := s.next(); !strings.Contains(text, `"notifications/subscriptions/acknowledged"`) {
		s.refusal = text
	}
	return s
}

// next returns the next message; ok is false at the end of the stream.
func (s *subscription) next() (message string, ok bool) {
	for s.lines.Scan() {
		if data, found := strings.CutPrefix(s.lines.Text(), "data: "); found {
			return data, true
		}
	}
	return "", false
}

// updated waits for a notification and returns the address in it.
func (s *subscription) updated() string {
	s.t.Helper()
	text, ok := s.next()
	require.True(s.t, ok, "the stream ended")
	var m struct {
		Method string
		Params struct {
			URI  string
			Meta map[string]any `json:"_meta"`
		}
	}
	require.NoError(s.t, json.Unmarshal([]byte(text), &m))
	require.Equal(s.t, "notifications/resources/updated", m.Method)
	require.EqualValues(s.t, 1, m.Params.Meta["io.modelcontextprotocol/subscriptionId"])
	return m.Params.URI
}

const cart = "mneme://conversations/cart/context"

func TestASubscriberHearsOfItsOwnConversationOnly(t *testing.T) {
	b := setup(t)
	b.shop("default")
	b.shop("other")
	turn := "mneme://conversations/login/turns/1"
	s := b.subscribe("", "default", cart, turn)
	require.Empty(t, s.refusal)
	b.say("other", "cart", said("m3", "user", "in another tenant"))
	b.say("default", "post", said("m3", "user", "in another conversation"))
	b.say("default", "login", said("m3", "user", "in this one"))
	require.Equal(t, turn, s.updated(), "of what came before nothing was told")
	b.say("default", "cart", said("m3", "user", "in the other one"))
	require.Equal(t, cart, s.updated())
}

func TestASubscriberHearsOfManyChangesAtMostOnceASecond(t *testing.T) {
	b := setup(t)
	b.shop("default")
	s := b.subscribe("", "default", cart)
	began := time.Now()
	enough, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-enough:
				return
			case <-time.After(5 * time.Millisecond):
				b.say("default", "cart", said(fmt.Sprint("n", i), "user", "more"))
			}
		}
	}()
	for range 3 {
		require.Equal(t, cart, s.updated())
	}
	require.GreaterOrEqual(t, time.Since(began), 2*time.Second, "there are two seconds between three")
	close(enough)
	<-done
}

func TestADeletedConversationIsAChange(t *testing.T) {
	b := setup(t)
	b.shop("default")
	s := b.subscribe("", "default", cart)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, b.HTTPURL()+"/v1/conversations/cart", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, cart, s.updated())
	require.Contains(t, b.subscribe("", "default", cart).refusal, "there is no conversation")
}

func TestWhatMayNotBeReadCannotBeSubscribedTo(t *testing.T) {
	b := setupGuarded(t)
	b.shop("team-a")
	of := b.token(access.Rights{Tenant: "team-a", Role: access.Read, Project: "blog"})
	post := "mneme://conversations/post/context"
	require.Empty(t, b.subscribe(of, "", post).refusal)
	require.Contains(t, b.subscribe(of, "", cart).refusal, "there is no conversation")
	require.Contains(t, b.subscribe(of, "", "mneme://projects/blog/context").refusal, "only conversations can be subscribed to")
	require.Contains(t, b.subscribe(of, "", "mneme://conversations/post/nothing").refusal, "only conversations can be subscribed to")
	require.Equal(t, http.StatusUnauthorized, b.subscribe("", "", post).status)
	many := make([]string, 17)
	for i := range many {
		many[i] = fmt.Sprint("mneme://conversations/post/turns/", i)
	}
	require.Contains(t, b.subscribe(of, "", many...).refusal, "16 resources")
}

func TestSubscriptionsAreBoundedAndGiveTheirPlacesBack(t *testing.T) {
	b := setup(t)
	b.shop("default")
	b.shop("other")
	var open []*subscription
	for range 64 {
		s := b.subscribe("", "default", cart)
		require.Empty(t, s.refusal)
		open = append(open, s)
	}
	full := b.subscribe("", "default", cart)
	require.Equal(t, http.StatusServiceUnavailable, full.status)
	require.Contains(t, full.refusal, "too many subscriptions")
	require.Empty(t, b.subscribe("", "other", cart).refusal, "another tenant has places of its own")
	require.NoError(t, b.Close(), "the server does not wait for subscribers")
	for _, s := range open {
		for ok := true; ok; {
			_, ok = s.next()
		}
	}
}

func TestASubscriptionEndsWithItsToken(t *testing.T) {
	b := setupGuarded(t)
	b.shop("team-a")
	token := b.token(access.Rights{Tenant: "team-a", Role: access.Read})
	s := b.subscribe(token, "", cart)
	require.Empty(t, s.refusal)
	hash, ok := access.HashOf(token)
	require.True(t, ok)
	require.NoError(t, b.tokens.Remove(t.Context(), hash))
	for ok := true; ok; {
		_, ok = s.next()
	}
}
