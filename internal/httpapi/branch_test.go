package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/eventlog"
)

// parent publishes a conversation "p" of two turns with a call in the first one.
func (b *bundle) parent() {
	b.t.Helper()
	b.create(`{"id":"p","title":"The parent","agent":"scout","cwd":"/repo","max_context_chars":7000}`)
	yes := true
	for i, p := range []events.Payload{
		message("m1", "user", "What is in the file?"),
		message("m2", "assistant", "I look."),
		&events.ToolCalled{ToolCallID: "k1", MessageID: "m2", ToolName: "read_file", Arguments: json.RawMessage(`{"path":"a.go"}`)},
		&events.ToolReturned{ToolCallID: "k1", Success: &yes, Result: events.TextResult("package a")},
		message("m3", "user", "And in the other one?"),
		message("m4", "assistant", "Nothing that the branch sees."),
	} {
		b.publish(structured("p", fmt.Sprint("e", i), p))
	}
}

func (b *bundle) branch(parent, body string) httpapi.Written {
	b.t.Helper()
	return b.write(http.StatusCreated, http.MethodPost, "/v1/conversations/"+parent+"/branches", "", body)
}

func (b *bundle) markdown(conversation, query string) (text string) {
	b.t.Helper()
	b.get("/v1/conversations/"+conversation+"/context?format=markdown&"+query, &text)
	return text
}

func TestABranchContinuesFromItsParentsRows(t *testing.T) {
	b := setup(t)
	b.parent()
	w := b.branch("p", `{"id":"x","message_id":"m3","title":"Another way","cwd":"/other"}`)
	seq := b.publish(structured("x", "1", message("x1", "assistant", "Let us try it so."))).Seq
	b.publish(structured("p", "later", message("m5", "user", "Nor this.")))

	c := b.show("x", seq)
	require.Equal(t, []any{"Another way", "scout", "/other", 7000, 1, 0, 1}, []any{c.Title, c.Agent, c.Cwd, c.MaxContextChars, c.MessageCount, c.TurnCount, c.StepCount})
	at := events.BranchedAt{ConversationID: "p", MessageID: "m3"}
	require.Equal(t, &at, c.BranchedFrom)
	require.Equal(t, w.Seq, c.FirstSeq)
	require.Equal(t, &httpapi.Inherited{
		BranchedAt: at, Seq: 6, MessageCount: 3, TurnCount: 2, StepCount: 1, ToolCallCount: 1, ToolResultCount: 1,
		TotalChars: len("What is in the file?") + len("I look.") + len("And in the other one?"),
	}, c.Inherited)

	text := b.markdown("x", "")
	for _, part := range []string{"What is in the file?", "I look.", "package a", "And in the other one?", "Let us try it so.", "/repo/a.go"} {
		require.Contains(t, text, part)
	}
	require.NotContains(t, text, "Nothing that")
	require.NotContains(t, text, "Nor this")

	var messages struct {
		Messages []httpapi.Message `json:"messages"`
	}
	b.get("/v1/conversations/x/messages?order=oldest", &messages)
	var got []string
	for _, m := range messages.Messages {
		got = append(got, fmt.Sprintf("%s turn %d step %d from %q", m.MessageID, m.Turn, m.Step, m.InheritedFrom))
	}
	require.Equal(t, []string{`m1 turn 1 step 0 from "p"`, `m2 turn 1 step 1 from "p"`, `m3 turn 2 step 1 from "p"`, `x1 turn 2 step 2 from ""`}, got)
	var one httpapi.Message
	b.get("/v1/conversations/x/messages/m2", &one)
	require.Equal(t, "I look.", one.Content)
	b.refused(404, http.MethodGet, "/v1/conversations/x/messages/m4", nil, "")
	var call httpapi.ToolCall
	b.get("/v1/conversations/x/tool-calls/k1", &call)
	require.Equal(t, "package a", call.Result.Result)
	var files struct{ Files []httpapi.File }
	b.get("/v1/conversations/x/files", &files)
	require.Equal(t, []httpapi.File{{Path: "/repo/a.go", Kind: "read", Tool: "read_file", Turn: 1, Seq: 4, Count: 1}}, files.Files)
}

func TestABranchHasTheContextOfAnUnbranchedConversation(t *testing.T) {
	b := setup(t)
	b.parent()
	b.branch("p", `{"id":"x","message_id":"m3"}`)
	seq := b.publish(structured("x", "1", message("x1", "assistant", "Let us try it so."))).Seq
	require.Contains(t, b.markdown("x", fmt.Sprintf("at_least=%d", seq)), "Let us")
	var log []eventlog.Message
	for _, name := range []string{"p", "x"} {
		require.NoError(t, b.Log.Conversation(mnemetest.Context(t), "default", name, 100, func(m eventlog.Message) error {
			log = append(log, m)
			return nil
		}))
	}
	for i, m := range log {
		r, _, err := m.Decode()
		require.NoError(t, err)
		if p, ok := r.Payload.(*events.MessageCreated); ok && p.MessageID == "m4" {
			continue
		}
		if p, ok := r.Payload.(*events.ConversationStarted); ok {
			p.BranchedFrom = nil
		}
		seq = b.publish(structured("alone", fmt.Sprint(i), r.Payload)).Seq
	}
	want := b.markdown("alone", fmt.Sprintf("at_least=%d", seq))
	for _, strategy := range []string{"hybrid", "recent", "pruned"} {
		query := "project_memory=off&strategy=" + strategy // of the two, only alone has the origin as an earlier session
		require.Equal(t, b.markdown("alone", query), b.markdown("x", query))
	}
	require.Contains(t, want, "/repo/a.go")
}

func TestDeletingAParentRemovesItsRowsFromBranches(t *testing.T) {
	b := setup(t)
	b.parent()
	b.branch("p", `{"id":"x","message_id":"m3"}`)
	b.publish(structured("x", "1", message("x1", "assistant", "Let us try it so.")))
	deleted := b.write(200, http.MethodDelete, "/v1/conversations/p", "", "").Seq
	for _, past := range []string{"", fmt.Sprintf("&as_of=%d", deleted-1)} {
		text := b.markdown("x", fmt.Sprintf("at_least=%d%s", deleted, past))
		require.Contains(t, text, "Let us try it so.")
		require.NotContains(t, text, "What is in the file?")
		require.NotContains(t, text, "a.go")
	}
	c := b.show("x", deleted)
	require.Nil(t, c.Inherited)
	require.NotNil(t, c.BranchedFrom)
	b.refused(404, http.MethodPost, "/v1/conversations/p/branches", map[string]string{"Content-Type": "application/json"}, `{"message_id":"m3"}`)
}

func TestBranchingRightAfterPublishingAndTwice(t *testing.T) {
	b := setup(t)
	for i := range 20 { // most of the time the read model lags
		b.publish(structured("p", fmt.Sprint(i), message(fmt.Sprint("m", i), "user", "x")))
		w := b.branch("p", fmt.Sprintf(`{"message_id":"m%d"}`, i))
		c := b.show(w.ConversationID, w.Seq)
		require.Equal(t, i+1, c.Inherited.MessageCount)
	}
	parent := "p"
	for i := range 16 {
		parent = b.branch(parent, `{"message_id":"m3"}`).ConversationID
		if i == 2 {
			c := b.show(parent, b.head())
			require.Equal(t, 4, c.Inherited.MessageCount)
			require.NotEqual(t, "p", c.BranchedFrom.ConversationID)
		}
	}
	p := b.refused(422, http.MethodPost, "/v1/conversations/"+parent+"/branches", map[string]string{"Content-Type": "application/json"}, `{"message_id":"m3"}`)
	require.Equal(t, "path.id", p.Errors[0].Location)
}

func TestABranchOverNATSWaitsForItsParent(t *testing.T) {
	b := setup(t)
	conn, err := nats.Connect(b.NATSURL(), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	defer conn.Close()
	send := func(conversation, id string, payload events.Payload) {
		t.Helper()
		e, err := events.New(conversation, "test", id, payload)
		require.NoError(t, err)
		msg, err := eventlog.NewMsg("default", e)
		require.NoError(t, err)
		_, err = conn.RequestMsg(msg, mnemetest.Patience)
		require.NoError(t, err)
	}
	send("x", "1", &events.ConversationStarted{BranchedFrom: &events.BranchedAt{ConversationID: "p", MessageID: "m1"}})
	require.Nil(t, b.show("x", b.head()).Inherited)
	for i := range 20 {
		send("p", fmt.Sprint(i), message(fmt.Sprint("m", i), "user", fmt.Sprint("number ", i)))
	}
	require.Equal(t, 2, b.show("x", b.head()).Inherited.MessageCount, "at_least waits for the parent too")
	text := b.markdown("x", "")
	require.Contains(t, text, "number 1")
	require.NotContains(t, text, "number 2")
}

func TestARefusedBranchNamesTheBadField(t *testing.T) {
	b := setup(t)
	b.parent()
	for name, c := range map[string]struct {
		status         int
		parent, body   string
		location, text string
	}{
		"an unknown parent":  {404, "nobody", `{"message_id":"m1"}`, "", "nobody"},
		"an unknown message": {422, "p", `{"message_id":"m9"}`, "body.message_id", "m9"},
		"no message":         {422, "p", `{"id":"x"}`, "body", "message_id"},
		"an empty message":   {422, "p", `{"message_id":""}`, "body.message_id", ""},
		"a taken id":         {409, "p", `{"message_id":"m1","id":"p"}`, "body.id", ""},
		"an unknown field":   {422, "p", `{"message_id":"m1","colour":"red"}`, "body.colour", ""},
	} {
		t.Run(name, func(t *testing.T) {
			sub := &bundle{t, b.Instance}
			p := sub.refused(c.status, http.MethodPost, "/v1/conversations/"+c.parent+"/branches", map[string]string{"Content-Type": "application/json"}, c.body)
			if c.location != "" {
				require.Equal(t, c.location, p.Errors[0].Location, "%+v", p)
			}
			require.True(t, strings.Contains(fmt.Sprint(p), c.text), "%+v", p)
		})
	}
}

func TestRepeatingABranchRequestChangesNothing(t *testing.T) {
	b := setup(t)
	b.parent()
	first := b.write(201, http.MethodPost, "/v1/conversations/p/branches", "key", `{"message_id":"m3"}`)
	seq := b.write(200, http.MethodPatch, "/v1/conversations/p", "", `{"title":"changed meanwhile"}`).Seq
	b.show("p", seq)
	again := b.write(201, http.MethodPost, "/v1/conversations/p/branches", "key", `{"message_id":"m3"}`)
	require.True(t, again.Duplicate)
	again.Duplicate = false
	require.Equal(t, first, again)
	b.write(409, http.MethodPost, "/v1/conversations/p/branches", "key", `{"message_id":"m1"}`)
}
