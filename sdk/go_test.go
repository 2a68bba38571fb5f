package sdk

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/eventlog"
)

// A goClient keeps the contract with the packages of the module: it publishes over NATS and reads
// over HTTP, as a program in Go does.
type goClient struct {
	t                     *testing.T
	log                   *eventlog.Log
	url, tenant           string
	token, elsewhere      string
	conversation, message string
	seq                   uint64
}

func newGoClient(t *testing.T, s *mnemetest.Server, tenant string, tokens map[string]string) *goClient {
	t.Helper()
	conn, err := nats.Connect(s.NATS, nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	log, err := eventlog.Open(mnemetest.Context(t), conn)
	require.NoError(t, err)
	return &goClient{t: t, log: log, url: s.HTTP, tenant: tenant, token: tokens[tenant], elsewhere: tokens[elsewhere]}
}

func (g *goClient) run(c contract) []result {
	g.conversation, g.message = c.Conversation, ""
	var all []result
	for _, one := range c.Calls {
		answer, err := g.call(one)
		if err != nil {
			all = append(all, result{Error: g.failure(err)})
			continue
		}
		text, err := json.Marshal(answer) // the same types as those of other clients
		require.NoError(g.t, err)
		var plain any
		require.NoError(g.t, json.Unmarshal(text, &plain))
		all = append(all, result{Answer: plain})
	}
	return all
}

func (g *goClient) call(c call) (any, error) {
	arg := func(i int) string { text, _ := slices.Concat(c.Args, make([]any, 2))[i].(string); return text }
	here := "/v1/conversations/" + url.PathEscape(g.conversation)
	switch c.Call {
	case "start", "user", "assistant", "tool_call", "tool_result":
		done, err := g.record([]map[string]any{{"entry": c.Call, "args": c.Args, "options": c.Options}})
		if err != nil {
			return nil, err
		}
		return done[0], nil
	case "record":
		return g.record(objects(c.Args[0]))
	case "reopen":
		g.message = ""
		return nil, nil
	case "context":
		return g.context(here+"/context", c.Options)
	case "project.context":
		return g.context("/v1/projects/"+url.PathEscape(arg(0))+"/context", c.Options)
	case "info":
		return g.get(here, nil, "")
	case "messages", "turns", "tool_calls", "summaries":
		return g.pages(here+"/"+strings.ReplaceAll(c.Call, "_", "-"), c.Options, c.Call)
	case "files":
		return g.get(here+"/files", c.Options, "files")
	case "similar":
		return g.get(here+"/similar", c.Options, "conversations")
	case "search":
		return g.get(here+"/search", with(c.Options, "query", arg(0)), "messages")
	case "search_tools":
		return g.get(here+"/search", with(with(c.Options, "query", arg(0)), "kind", "tool"), "tool_results")
	case "memory.search":
		return g.get("/v1/search", with(c.Options, "query", arg(0)), "conversations")
	case "memory.conversations":
		return g.pages("/v1/conversations", c.Options, "conversations")
	case "update":
		return nil, g.change(http.MethodPatch, here, c.Options)
	case "delete":
		return nil, g.change(http.MethodDelete, here+"?reason="+url.QueryEscape(arg(0)), nil)
	case "branch":
		body, err := json.Marshal(with(c.Options, "message_id", arg(0)))
		require.NoError(g.t, err)
		text, err := g.send(http.MethodPost, here+"/branches", "application/json", body, g.token)
		if err != nil {
			return nil, err
		}
		var written struct {
			ConversationID string `json:"conversation_id"`
			Seq            uint64
		}
		require.NoError(g.t, json.Unmarshal(text, &written))
		g.seq, g.conversation, g.message = max(g.seq, written.Seq), written.ConversationID, ""
		return map[string]any{"id": written.ConversationID}, nil
	case "copy":
		lines, err := g.send(http.MethodGet, here+"/export?"+g.query(nil), "", nil, g.token)
		if err != nil {
			return nil, err
		}
		text, err := g.send(http.MethodPost, "/v1/import?tenant="+g.tenant+"-"+arg(0), "application/x-ndjson", lines, g.elsewhere)
		return json.RawMessage(text), err
	}
	return nil, fmt.Errorf("the contract has an unknown call %q", c.Call)
}

// record publishes entries, as their Go types.
func (g *goClient) record(entries []map[string]any) ([]any, error) {
	var list []events.Event
	var ids []any
	before := g.message // what the next call belongs to, unless all of this is recorded
	for i, entry := range entries {
		args, _ := entry["args"].([]any)
		data := with(entry["options"])
		id, _ := data["id"].(string)
		delete(data, "id")
		payload, id := g.payload(entry["entry"].(string), cmp.Or(id, ulid.Make().String()), slices.Concat(args, []any{nil}), data)
		text, err := json.Marshal(data)
		require.NoError(g.t, err)
		require.NoError(g.t, json.Unmarshal(text, payload))
		e, err := events.New(g.conversation, "contract", cmp.Or(payload.Key(), "started"), payload)
		var invalid *events.Invalid
		if errors.As(err, &invalid) {
			g.message = before
			return nil, &problem{Status: http.StatusUnprocessableEntity, Errors: []any{map[string]any{"location": fmt.Sprintf("body[%d].%s", i, invalid.Field)}}}
		}
		require.NoError(g.t, err)
		list, ids = append(list, e), append(ids, id)
	}
	acks, err := g.log.PublishAll(mnemetest.Context(g.t), g.tenant, list)
	if err != nil {
		g.message = before
		return nil, err
	}
	_, err = g.log.LastOfKind(mnemetest.Context(g.t), g.tenant, g.conversation, events.Kind(events.TypeConversationDeleted))
	var done []any
	for i, ack := range acks {
		g.seq = max(g.seq, ack.Seq)
		done = append(done, map[string]any{"id": ids[i], "seq": ack.Seq, "duplicate": ack.Duplicate, "deleted": err == nil})
	}
	return done, nil
}

// payload returns the type of an entry, and adds to its data what its arguments say.
func (g *goClient) payload(entry, id string, args []any, data map[string]any) (payload events.Payload, _ string) {
	switch entry {
	case "user", "assistant":
		g.message = ""
		if entry == "assistant" {
			g.message = id
		}
		data["message_id"], data["role"], data["content"] = id, entry, args[0]
		return &events.MessageCreated{}, id
	case "tool_call":
		data["tool_call_id"], data["tool_name"], data["arguments"] = id, args[0], args[1]
		if g.message != "" && data["message_id"] == nil {
			data["message_id"] = g.message
		}
		return &events.ToolCalled{}, id
	case "tool_result":
		failure, failed := data["error"]
		if failure == "" {
			failed = false
			delete(data, "error")
		}
		data["tool_call_id"], data["result"], data["success"] = args[0], cmp.Or(args[1], failure), !failed
		return &events.ToolReturned{}, args[0].(string)
	}
	return &events.ConversationStarted{}, "started"
}

func (g *goClient) context(path string, options map[string]any) (any, error) {
	options = with(options)
	if options["format"] == nil {
		options["format"] = "markdown"
	}
	text, err := g.send(http.MethodGet, path+"?"+g.query(options), "", nil, g.token)
	if err != nil || options["format"] == "markdown" {
		return string(text), err
	}
	return json.RawMessage(text), nil
}

// get returns an answer, or one of its members.
func (g *goClient) get(path string, options map[string]any, member string) (any, error) {
	text, err := g.send(http.MethodGet, path+"?"+g.query(options), "", nil, g.token)
	if err != nil || member == "" {
		return json.RawMessage(text), err
	}
	var answer map[string]any
	err = json.Unmarshal(text, &answer)
	return answer[member], err
}

func (g *goClient) pages(path string, options map[string]any, member string) (any, error) {
	all := []any{}
	for {
		page, err := g.get(path, options, "")
		if err != nil {
			return nil, err
		}
		var answer map[string]any
		if err := json.Unmarshal(page.(json.RawMessage), &answer); err != nil {
			return nil, err
		}
		all = append(all, answer[member].([]any)...)
		if answer["next_cursor"] == nil {
			return all, nil
		}
		options = with(options, "cursor", answer["next_cursor"])
	}
}

func (g *goClient) change(method, path string, change map[string]any) error {
	body, err := json.Marshal(change)
	require.NoError(g.t, err)
	if change == nil {
		body = nil
	}
	text, err := g.send(method, path, "application/json", body, g.token)
	if err != nil {
		return err
	}
	var written struct{ Seq uint64 }
	err = json.Unmarshal(text, &written)
	g.seq = max(g.seq, written.Seq)
	return err
}

func (g *goClient) query(options map[string]any) string {
	q := url.Values{}
	if g.seq > 0 {
		q.Set("at_least", fmt.Sprint(g.seq))
	}
	for name, value := range options {
		q.Set(name, fmt.Sprint(value))
	}
	return q.Encode()
}

func (g *goClient) send(method, path, media string, body []byte, token string) ([]byte, error) {
	request, err := http.NewRequestWithContext(g.t.Context(), method, g.url+path, bytes.NewReader(body))
	require.NoError(g.t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		request.Header.Set("Content-Type", media)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(g.t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(bufio.NewReader(response.Body))
	require.NoError(g.t, err)
	if response.StatusCode < 300 {
		return text, nil
	}
	var p problem
	require.NoError(g.t, json.Unmarshal(text, &p), "%s", text)
	return nil, &p
}

// A problem is a problem document.
type problem struct {
	Status int
	Detail string
	Errors []any

	ExistingSeq uint64 `json:"existing_seq"`
}

func (p *problem) Error() string { return p.Detail }

// failure returns the error by the name that it has in the other clients.
func (g *goClient) failure(err error) map[string]any {
	var other *eventlog.OtherContentError
	var p *problem
	if errors.As(err, &other) {
		p = &problem{Status: http.StatusConflict, ExistingSeq: other.Seq}
	} else {
		require.ErrorAs(g.t, err, &p)
	}
	names := map[int]string{http.StatusNotFound: "NotFoundError", http.StatusConflict: "ConflictError", http.StatusUnprocessableEntity: "InvalidError"}
	return map[string]any{"type": names[p.Status], "status": float64(p.Status), "errors": p.Errors, "existing_seq": float64(p.ExistingSeq)}
}

// with returns a copy of options, if there are any, with another one.
func with(options any, pair ...any) map[string]any {
	given, _ := options.(map[string]any)
	all := maps.Clone(given)
	if all == nil {
		all = map[string]any{}
	}
	if len(pair) > 0 {
		all[pair[0].(string)] = pair[1]
	}
	return all
}

func objects(list any) []map[string]any {
	var all []map[string]any
	for _, one := range list.([]any) {
		all = append(all, one.(map[string]any))
	}
	return all
}
