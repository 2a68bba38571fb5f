package mcp_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/frame"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/settings"
)

// bundle is mneme in one process.
type bundle struct {
	t *testing.T
	*instance.Instance
	tokens *access.File // nil if the server asks for none
	head   uint64
	time   time.Time // time of the following messages, none if zero
	admin  string    // a token, once it is needed
}

func setup(t *testing.T) *bundle {
	t.Helper()
	t.Parallel()
	return begin(t, instance.Config{}, nil)
}

func setupGuarded(t *testing.T) *bundle {
	t.Helper()
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens.jsonl")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	return begin(t, instance.Config{Access: settings.Access{TokensFile: path}}, access.NewFile(path))
}

func begin(t *testing.T, c instance.Config, tokens *access.File) *bundle {
	t.Helper()
	c.Data, c.Listen, c.NATSListen = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	i, err := instance.Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close()) })
	return &bundle{t: t, Instance: i, tokens: tokens}
}

// token makes a token and waits until the server accepts it.
func (b *bundle) token(rights access.Rights) string {
	b.t.Helper()
	token, record, err := access.Issue(rights, "", time.Now(), time.Hour)
	require.NoError(b.t, err)
	require.NoError(b.t, b.tokens.Add(b.t.Context(), record))
	require.Eventually(b.t, func() bool {
		r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.HTTPURL()+"/v1/nothing", nil)
		require.NoError(b.t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(r)
		require.NoError(b.t, err)
		defer func() { _ = response.Body.Close() }()
		return response.StatusCode != http.StatusUnauthorized
	}, mnemetest.Patience, 20*time.Millisecond)
	return token
}

// say publishes payloads of a conversation, in order, under ids made of their number.
func (b *bundle) say(tenant, conversation string, payloads ...events.Payload) {
	b.t.Helper()
	list := make([]events.Event, len(payloads))
	for i, p := range payloads {
		var err error
		list[i], err = events.New(conversation, "test", fmt.Sprint(b.head, "-", i), p)
		require.NoError(b.t, err)
		list[i].Time = b.time
	}
	acks, err := b.Log.PublishAll(mnemetest.Context(b.t), tenant, list)
	require.NoError(b.t, err)
	b.head = acks[len(acks)-1].Seq
}

// applied waits until everything is applied.
func (b *bundle) applied() {
	b.t.Helper()
	b.appliedTo(b.head)
}

func (b *bundle) appliedTo(seq uint64) {
	b.t.Helper()
	b.await(seq, "/v1/projects?", "/v1/code/conversations?name=nothing&") // together these paths wait for all read models
}

// await waits until what these paths read is applied up to a sequence.
func (b *bundle) await(seq uint64, paths ...string) {
	b.t.Helper()
	if b.tokens != nil && b.admin == "" {
		b.admin = b.token(access.Rights{AllTenants: true, Role: access.Admin})
	}
	for _, path := range paths {
		r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, fmt.Sprintf("%s%sat_least=%d&wait_ms=30000", b.HTTPURL(), path, seq), nil)
		require.NoError(b.t, err)
		response, err := (&http.Client{Transport: bearer(b.admin)}).Do(r)
		require.NoError(b.t, err)
		require.NoError(b.t, response.Body.Close())
		require.Equal(b.t, http.StatusOK, response.StatusCode)
	}
}

func started(project string) events.Payload { return &events.ConversationStarted{Project: project} }

func said(id, role, text string) events.Payload {
	return &events.MessageCreated{MessageID: id, Role: role, Content: text}
}

func used(id, tool, arguments string) events.Payload {
	return &events.ToolCalled{ToolCallID: id, ToolName: tool, Arguments: json.RawMessage(arguments)}
}

func returned(id, text string) events.Payload {
	ok := true
	return &events.ToolReturned{ToolCallID: id, Result: events.TextResult(text), Success: &ok}
}

// agent is a client with a scope.
type agent struct {
	framed, frameID string // of the last answer
	t               *testing.T
	*sdk.ClientSession
}

type bearer string

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b != "" {
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// agent connects with parameters of the URL, given as name and value.
func (b *bundle) agent(token string, scope ...string) *agent {
	b.t.Helper()
	query := url.Values{}
	for i := 0; i < len(scope); i += 2 {
		query.Set(scope[i], scope[i+1])
	}
	c := sdk.NewClient(&sdk.Implementation{Name: "test-agent", Version: "1"}, nil)
	session, err := c.Connect(b.t.Context(), &sdk.StreamableClientTransport{
		Endpoint: b.HTTPURL() + "/mcp?" + query.Encode(), HTTPClient: &http.Client{Transport: bearer(token)}, DisableStandaloneSSE: true,
	}, nil)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = session.Close() })
	return &agent{t: b.t, ClientSession: session}
}

type arguments = map[string]any

// call calls a tool and returns its text, and whether it was an error.
func (a *agent) call(tool string, args arguments) (string, bool) {
	a.t.Helper()
	result, err := a.CallTool(a.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	require.NoError(a.t, err)
	require.Len(a.t, result.Content, 1)
	text := result.Content[0].(*sdk.TextContent).Text
	if !result.IsError && tool != "memory_remember" {
		stripped, ids := frame.Strip(text)
		require.Empty(a.t, stripped, "an answer is nothing but a frame")
		require.Len(a.t, ids, 1)
		a.framed, a.frameID = text, ids[0]
		_, text, _ = strings.Cut(text, "\n\n")
		text = strings.TrimSuffix(text, "\n</mneme-context>")
	}
	require.Nil(a.t, result.StructuredContent, "some clients show a model nothing else, and not the frame")
	return text, result.IsError
}

// text calls a tool that must succeed.
func (a *agent) text(tool string, args arguments) string {
	a.t.Helper()
	text, failed := a.call(tool, args)
	require.False(a.t, failed, text)
	return text
}

// refused calls a tool that must fail.
func (a *agent) refused(tool string, args arguments) string {
	a.t.Helper()
	text, failed := a.call(tool, args)
	require.True(a.t, failed, text)
	require.LessOrEqual(a.t, len([]rune(text)), 500)
	return text
}

// value calls a tool whose answer is structured.
func value[T any](a *agent, tool string, args arguments) (answer T) {
	a.t.Helper()
	require.NoError(a.t, json.NewDecoder(strings.NewReader(a.text(tool, args))).Decode(&answer))
	return answer
}
