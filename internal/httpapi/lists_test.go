package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
)

// all reads all pages of a list. path must have a query; member is the name of the rows.
func all[T any](b *bundle, path, member string) (rows []T) {
	b.t.Helper()
	cursor := ""
	for range 10_000 {
		var body map[string]json.RawMessage
		b.get(path+"&cursor="+url.QueryEscape(cursor), &body)
		var page []T
		require.NoError(b.t, json.Unmarshal(body[member], &page))
		require.NotNil(b.t, page, "an empty list is [], not null")
		rows = append(rows, page...)
		if body["next_cursor"] == nil {
			return rows
		}
		require.NoError(b.t, json.Unmarshal(body["next_cursor"], &cursor))
	}
	b.t.Fatal("the list does not end")
	return nil
}

// batch publishes events of one conversation, with ids from 1, and returns the highest
// sequence.
func (b *bundle) batch(conversation string, payloads ...events.Payload) uint64 {
	b.t.Helper()
	var bodies []string
	for i, p := range payloads {
		bodies = append(bodies, string(structured(conversation, fmt.Sprint(i+1), p)))
	}
	var answer publishAnswer
	b.do(http.StatusCreated, http.MethodPost, "/v1/events", map[string]string{"Content-Type": events.ContentTypeBatch}, []byte("["+strings.Join(bodies, ",")+"]"), &answer)
	return answer.Seq
}

func call(id, tool, arguments string) *events.ToolCalled {
	return &events.ToolCalled{ToolCallID: id, ToolName: tool, Arguments: json.RawMessage(arguments)}
}

func result(id, text string, success bool) *events.ToolReturned {
	return &events.ToolReturned{ToolCallID: id, Result: events.TextResult(text), Success: &success}
}

// session publishes a conversation of two turns: the first has two steps, the second begins
// with a call before the agent says anything.
func (b *bundle) session(conversation string) uint64 {
	b.t.Helper()
	thinking := message("a1", "assistant", "I look")
	thinking.Reasoning = "where could it be"
	unknown := result("k3", "maybe", true)
	unknown.Success = nil
	return b.batch(conversation,
		message("s1", "system", "be kind"),
		message("u1", "user", "fix it"), thinking, call("k1", "Read", `{"file_path":"/a/x.go"}`), result("k1", "text", true),
		message("a2", "assistant", "I change"), call("k2", "Write", `{"file_path":"/b/y.go","content":"x"}`), result("k2", "no", false),
		message("u2", "user", "again"), call("k3", "Read", `{"file_path":"/a/z.go"}`), unknown, result("k9", "whose?", true),
		message("a3", "assistant", "done"), call("k4", "Read", `{"file_path":"/a/x.go"}`))
}

func TestACursorBelongsToOneList(t *testing.T) {
	b := setup(t)
	b.session("c2")
	seq := b.session("c1")
	cursor := func(path string) string {
		var page struct {
			NextCursor string `json:"next_cursor"`
		}
		b.get(path+fmt.Sprintf("&limit=1&at_least=%d", seq), &page)
		require.NotEmpty(t, page.NextCursor, path)
		return page.NextCursor
	}
	lists := []string{
		"/v1/conversations?order=activity", "/v1/conversations?order=created", "/v1/conversations?status=active",
		"/v1/conversations/c1/messages?order=newest", "/v1/conversations/c1/messages?order=oldest", "/v1/conversations/c2/messages?order=newest",
		"/v1/conversations/c1/messages?role=user", "/v1/conversations/c1/messages?as_of=20", "/v1/conversations/c1/turns?order=newest",
		"/v1/conversations/c1/steps?order=newest", "/v1/conversations/c1/steps?turn=1", "/v1/conversations/c1/tool-calls?order=newest",
		"/v1/conversations/c1/tool-calls?tool=Read", "/v1/conversations/c1/tool-calls?turn=2",
	}
	given := map[string]string{}
	for _, list := range lists {
		given[list] = cursor(list)
	}
	for _, list := range lists {
		for from, c := range given {
			if from == list {
				b.get(list+"&cursor="+c, nil)
				b.get(list+"&limit=7&cursor="+c, nil) // the page size may change
				continue
			}
			p := b.refused(http.StatusUnprocessableEntity, http.MethodGet, list+"&cursor="+c, nil, "")
			require.Equal(t, "query.cursor", p.Errors[0].Location, "a cursor of %s in %s", from, list)
		}
		for _, bad := range []string{"x", "AAAA", given[lists[0]][:20], given[lists[0]] + "A", strings.Repeat("A", 22), strings.Repeat("A", 5000), "=", "%00"} {
			p := b.refused(http.StatusUnprocessableEntity, http.MethodGet, list+"&cursor="+bad, nil, "")
			require.Equal(t, "query.cursor", p.Errors[0].Location)
		}
	}
}

func TestListsRefuseInvalidParameters(t *testing.T) {
	b := setup(t)
	seq := b.session("c1")
	b.get(fmt.Sprintf("/v1/conversations?at_least=%d", seq), nil)
	for _, list := range []string{"/v1/conversations", "/v1/conversations/c1/messages", "/v1/conversations/c1/turns", "/v1/conversations/c1/steps", "/v1/conversations/c1/tool-calls"} {
		for query, location := range map[string]string{
			"limit=-1": "query.limit", "limit=0": "query.limit", "limit=1000000000": "query.limit", "limit=many": "query.limit",
			"order=random": "query.order", "colour=red": "query.colour", "at_least=9999": "query.at_least", "wait_ms=0": "query.wait_ms",
		} {
			p := b.refused(http.StatusUnprocessableEntity, http.MethodGet, list+"?"+query, nil, "")
			require.Equal(t, location, p.Errors[0].Location, "%s?%s", list, query)
		}
		if list == "/v1/conversations" {
			continue
		}
		p := b.refused(http.StatusUnprocessableEntity, http.MethodGet, list+"?as_of=9999", nil, "")
		require.Equal(t, "query.as_of", p.Errors[0].Location)
		b.refused(http.StatusNotFound, http.MethodGet, strings.Replace(list, "c1", "nobody", 1), nil, "")
		b.refused(http.StatusNotFound, http.MethodGet, list+"?tenant=other", nil, "")
	}
	for path, location := range map[string]string{
		"/v1/conversations?created_after=yesterday":          "query.created_after",
		"/v1/conversations?status=lost":                      "query.status",
		"/v1/conversations/c1/messages?role=robot":           "query.role",
		"/v1/conversations/c1/steps?turn=-1":                 "query.turn",
		"/v1/conversations/c1/tool-calls?turn=first":         "query.turn",
		"/v1/conversations/c1/tool-calls?success=perhaps":    "query.success",
		"/v1/conversations/c1/files?kind=touch":              "query.kind",
		"/v1/conversations/c1/files?group_by=size":           "query.group_by",
		"/v1/conversations/c1/messages?include_tool_calls=2": "query.include_tool_calls",
		"/v1/events/0":    "path.seq",
		"/v1/events/last": "path.seq",
	} {
		p := b.refused(http.StatusUnprocessableEntity, http.MethodGet, path, nil, "")
		require.True(t, strings.HasPrefix(p.Errors[0].Location, location), "%s: %+v", path, p)
	}
}

func TestConversationsAreFilteredAndOrdered(t *testing.T) {
	b := setup(t)
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var seq uint64
	add := func(conversation, id string, at time.Time, p events.Payload) {
		e, err := events.New(conversation, "test", id, p)
		require.NoError(t, err)
		e.Time = at
		body, err := events.EncodeStructured(e)
		require.NoError(t, err)
		seq = b.publish(body).Seq
	}
	add("a", "1", noon, &events.ConversationStarted{Tags: []string{"x", "y,z"}, Agent: "one", Project: "p"})
	add("b", "1", noon.Add(time.Hour), &events.ConversationStarted{Tags: []string{"x"}, Agent: "two", BranchedFrom: &events.BranchedAt{ConversationID: "a", MessageID: "m"}})
	add("c", "1", time.Time{}, &events.ConversationStarted{})
	add("a", "2", noon.Add(2*time.Hour), &events.ConversationUpdated{Status: "archived"})
	for query, want := range map[string][]string{
		"order=activity":                     {"a", "c", "b"},
		"order=created":                      {"c", "b", "a"},
		"status=archived":                    {"a"},
		"tag=x":                              {"a", "b"},
		"tag=x&tag=y,z":                      {"a"},
		"tag=y":                              nil,
		"agent=two":                          {"b"},
		"project=p":                          {"a"},
		"branch_of=a":                        {"b"},
		"created_after=2026-03-01T12:00:00Z": {"a", "b"},
		"created_after=2026-03-01T14:00:00.0000%2B02:00":     {"a", "b"},
		"created_after=2026-03-01T12:00:00.000000001Z":       {"b"},
		"created_before=2026-03-01T13:00:00Z":                {"a"},
		"updated_after=2026-03-01T13:30:00Z":                 {"a"},
		"updated_before=2026-03-01T14:00:00Z":                {"b"},
		"created_after=2026-03-01T12:30:00Z&tag=x&agent=one": nil,
	} {
		var ids []string
		for _, c := range all[httpapi.Conversation](b, fmt.Sprintf("/v1/conversations?%s&limit=1&at_least=%d", query, seq), "conversations") {
			ids = append(ids, c.ID)
		}
		require.Equal(t, want, ids, query)
	}
}

func TestTheConversationListHonorsAtLeast(t *testing.T) {
	b := setup(t)
	for i := range 30 {
		seq := b.publish(structured(fmt.Sprint("c", i), "1", message("m", "user", "x"))).Seq
		var page struct{ Conversations []httpapi.Conversation }
		b.get(fmt.Sprintf("/v1/conversations?limit=1&at_least=%d", seq), &page)
		require.Equal(t, fmt.Sprint("c", i), page.Conversations[0].ID)
	}
}
