package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/graph"
)

func messageIDs(list []httpapi.Message) (ids []string) {
	for _, m := range list {
		ids = append(ids, m.MessageID)
	}
	return ids
}

func TestMessagesAreListedInBothOrdersByRoleAndAsOf(t *testing.T) {
	b := setup(t)
	seq := b.session("c1")
	read := func(query string) []string {
		return messageIDs(all[httpapi.Message](b, fmt.Sprintf("/v1/conversations/c1/messages?limit=2&at_least=%d&%s", seq, query), "messages"))
	}
	require.Equal(t, []string{"a3", "u2", "a2", "a1", "u1", "s1"}, read(""))
	require.Equal(t, []string{"s1", "u1", "a1", "a2", "u2", "a3"}, read("order=oldest"))
	require.Equal(t, []string{"a3", "a2", "a1"}, read("role=assistant"))
	require.Equal(t, []string{"a1", "u1", "s1"}, read("as_of=4"))
}

func TestAProgramsTextInTheUsersNameHasAnOrigin(t *testing.T) {
	b := setup(t)
	seq := b.tell("c1",
		&events.MessageCreated{MessageID: "m1", Role: "user", Content: "hello"},
		&events.MessageCreated{MessageID: "m2", Role: "user", Content: "<bash-stdout>ok</bash-stdout>"},
		&events.MessageCreated{MessageID: "m3", Role: "user", Content: "tuesdays", Origin: "note"},
		&events.MessageCreated{MessageID: "m4", Role: "assistant", Content: "<bash-stdout>ok</bash-stdout>"},
		&events.MessageCreated{MessageID: "m5", Role: "user", Content: "[Request interrupted by user]"},
	)
	var list struct{ Messages []httpapi.Message }
	b.get(fmt.Sprintf("/v1/conversations/c1/messages?order=oldest&at_least=%d", seq), &list)
	var origins []string
	for _, m := range list.Messages {
		origins = append(origins, m.Origin)
	}
	require.Equal(t, []string{"", "meta", "note", "", "meta"}, origins)
}

func TestMessagesIncludeCallsAndReasoningOnRequest(t *testing.T) {
	b := setup(t)
	seq := b.session("c1")
	path := fmt.Sprintf("/v1/conversations/c1/messages?order=oldest&limit=2&at_least=%d", seq)
	for _, m := range all[httpapi.Message](b, path, "messages") {
		require.Empty(t, m.ToolCalls)
		require.Empty(t, m.Reasoning)
	}
	var got []string
	for _, m := range all[httpapi.Message](b, path+"&include_tool_calls=true&include_reasoning=true", "messages") {
		for _, c := range m.ToolCalls {
			got = append(got, fmt.Sprint(m.MessageID, " ", c.ToolCallID, " ", c.Result != nil))
		}
		require.Equal(t, m.MessageID == "a1", m.Reasoning == "where could it be")
	}
	require.Equal(t, []string{"a1 k1 true", "a2 k2 true", "a3 k4 false"}, got)
	var past struct{ Messages []httpapi.Message }
	b.get("/v1/conversations/c1/messages?include_tool_calls=true&as_of=4", &past)
	require.Nil(t, past.Messages[0].ToolCalls[0].Result, "it came later")
}

func TestACallThatDidNotRunSaysWhy(t *testing.T) {
	b := setup(t)
	const refusal, cancelled = "The user doesn't want to proceed with this tool use. The tool use was rejected.", "Cancelled: parallel tool call Bash(go test) errored"
	seq := b.batch("c1", message("m", "assistant", ""),
		call("k1", "Bash", "{}"), result("k1", refusal, false), call("k2", "Bash", "{}"), result("k2", cancelled, false),
		call("k3", "Bash", "{}"), result("k3", "exit status 1", false), call("k4", "Bash", "{}"), result("k4", refusal, true))
	var why []string
	for _, c := range all[httpapi.ToolCall](b, fmt.Sprintf("/v1/conversations/c1/tool-calls?order=oldest&at_least=%d", seq), "tool_calls") {
		why = append(why, c.Result.NotRun)
	}
	require.Equal(t, []string{"refused", "cancelled", "", ""}, why)

	var found searchAnswer
	b.get(fmt.Sprintf("/v1/conversations/c1/search?query=rejected&kind=tool&at_least=%d", seq), &found)
	why = nil
	for _, r := range found.Results {
		why = append(why, r.ToolCallID+" "+r.NotRun)
	}
	require.Equal(t, []string{"k1 refused"}, why, "k4 has the same text")
}

func TestListsTruncateLongTextsAndShowDoesNot(t *testing.T) {
	b := setup(t)
	long := strings.Repeat("é", graph.MaxBodyBytes)
	m := message("m/1 ü", "assistant", long)
	m.Reasoning = long + "r"
	failed := result("k1", long+"result", false)
	failed.Error = long + "error"
	seq := b.batch("a/b c", m, call("k1", "run", `"`+long+`"`), failed)
	base := "/v1/conversations/" + url.PathEscape("a/b c")
	at := fmt.Sprintf("&at_least=%d", seq)

	listed := all[httpapi.Message](b, base+"/messages?include_tool_calls=true&include_reasoning=true"+at, "messages")[0]
	require.Equal(t, long[:graph.MaxBodyBytes], listed.Content)
	require.Equal(t, httpapi.Extent{Truncated: true, Bytes: len(long), Chars: graph.MaxBodyBytes}, listed.Extent)
	require.True(t, listed.ReasoningTruncated)
	listedCall := listed.ToolCalls[0]
	require.True(t, listedCall.Truncated)
	require.Equal(t, byte('"'), listedCall.Arguments[0], "the beginning of JSON, in a string")
	require.Equal(t, len(long)+len("result"), listedCall.Result.Bytes)

	var whole httpapi.Message
	b.get(base+"/messages/"+url.PathEscape("m/1 ü"), &whole)
	require.Equal(t, []string{long, long + "r"}, []string{whole.Content, whole.Reasoning})
	require.Equal(t, httpapi.Extent{}, whole.Extent)
	var wholeCall httpapi.ToolCall
	b.get(base+"/tool-calls/k1", &wholeCall)
	require.JSONEq(t, `"`+long+`"`, string(wholeCall.Arguments))
	require.Equal(t, []string{long + "result", long + "error"}, []string{wholeCall.Result.Result, wholeCall.Result.Error})
	require.False(t, wholeCall.Truncated || wholeCall.Result.Truncated)

	var past httpapi.ToolCall
	b.get(base+fmt.Sprintf("/tool-calls/k1?as_of=%d", seq-1), &past)
	require.Nil(t, past.Result)
	b.refused(http.StatusNotFound, http.MethodGet, base+"/tool-calls/k2", nil, "")
	b.refused(http.StatusNotFound, http.MethodGet, base+fmt.Sprintf("/tool-calls/k1?as_of=%d", seq-2), nil, "")
	b.refused(http.StatusNotFound, http.MethodGet, base+"/messages/m1", nil, "")
	b.refused(http.StatusNotFound, http.MethodGet, "/v1/conversations/nobody/messages/m1", nil, "")
}

func TestListsNameImagesAndShowHasTheirData(t *testing.T) {
	b := setup(t)
	data := strings.Repeat("AZr3", 5_000)
	said, returned := "See data:image/png;base64,"+data, `{"mimeType":"image/webp","data":"`+data+`"}`
	failed := &events.ToolReturned{ToolCallID: "k2", Success: new(bool), Result: events.TextResult("none"), Error: said}
	seq := b.batch("c1", message("m1", "assistant", said), call("k1", "send", returned), result("k1", returned, true), call("k2", "send", `{ "image": "`+said+`" }`), failed)
	const base = "/v1/conversations/c1"
	named := `{"mimeType":"image/webp","data":"[image/webp, 15 kB]"}`
	listed := all[httpapi.Message](b, fmt.Sprintf("%s/messages?include_tool_calls=true&at_least=%d", base, seq), "messages")[0]
	require.Equal(t, "See [image/png, 15 kB]", listed.Content)
	require.Equal(t, []string{named, named}, []string{string(listed.ToolCalls[0].Arguments), listed.ToolCalls[0].Result.Result})

	var m httpapi.Message
	b.get(base+"/messages/m1", &m)
	require.Equal(t, said, m.Content)
	var c httpapi.ToolCall
	b.get(base+"/tool-calls/k1", &c)
	require.Equal(t, []string{returned, returned}, []string{string(c.Arguments), c.Result.Result})
	require.Equal(t, "See [image/png, 15 kB]", listed.ToolCalls[1].Result.Error)
	c = httpapi.ToolCall{}
	b.get(base+"/tool-calls/k2", &c)
	require.Equal(t, said, c.Result.Error)
	require.Equal(t, `{"image":"`+said+`"}`, string(c.Arguments), "without the space between tokens, as in lists")
}

func TestAListNamesAnImageThatIsLongerThanItsRow(t *testing.T) {
	b := setup(t)
	seq := b.batch("c1", message("m1", "assistant", "I send it."), call("k1", "send", `{"mimeType":"image/webp","data":"`+strings.Repeat("AZr3", 30_000)+`"}`))
	list := all[httpapi.ToolCall](b, fmt.Sprintf("/v1/conversations/c1/tool-calls?at_least=%d", seq), "tool_calls")
	require.Len(t, list, 1)
	require.JSONEq(t, `{"mimeType":"image/webp","data":"[image/webp, 90 kB]"}`, string(list[0].Arguments))
	require.False(t, list[0].Truncated)
}

func TestAStepNamesTheImageInAResultWithoutItsCall(t *testing.T) {
	b := setup(t)
	seq := b.batch("c1", message("m1", "assistant", "I look."), result("k9", "data:image/png;base64,"+strings.Repeat("AZr3", 5_000), true))
	for _, s := range all[httpapi.Step](b, fmt.Sprintf("/v1/conversations/c1/steps?at_least=%d", seq), "steps") {
		for _, r := range s.Results {
			require.Equal(t, "[image/png, 15 kB]", r.Result)
			return
		}
	}
	require.Fail(t, "no step has the result")
}

// lose removes an event from the log.
func (b *bundle) lose(seq uint64) {
	conn, err := nats.Connect(b.NATSURL(), nats.Timeout(mnemetest.Handshake))
	require.NoError(b.t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	require.NoError(b.t, err)
	stream, err := js.Stream(mnemetest.Context(b.t), natsdeploy.Stream)
	require.NoError(b.t, err)
	require.NoError(b.t, stream.DeleteMsg(mnemetest.Context(b.t), seq))
}

func TestALongTextMissingFromTheLogIsAnError(t *testing.T) {
	b := setup(t)
	seq := b.batch("c1", message("short", "user", "x"), message("long", "user", strings.Repeat("x", graph.MaxBodyBytes+1)))
	b.get(fmt.Sprintf("/v1/conversations/c1/messages/long?at_least=%d", seq), nil)
	b.lose(seq)
	p := b.refused(http.StatusServiceUnavailable, http.MethodGet, "/v1/conversations/c1/messages/long", nil, "")
	require.Contains(t, p.Detail, fmt.Sprintf("sequence %d", seq))
	b.get("/v1/conversations/c1/messages/short", nil)
}

func TestAFailedCallIsShownWithoutTheLogIfItsRowHasAllOfIt(t *testing.T) {
	b := setup(t)
	failed := result("k1", "none", false)
	failed.Error = "exit status 1"
	seq := b.batch("c1", message("m1", "assistant", ""), call("k1", "run", "{}"), failed)
	b.get(fmt.Sprintf("/v1/conversations/c1/tool-calls/k1?at_least=%d", seq), nil)
	b.lose(seq)
	var c httpapi.ToolCall
	b.get("/v1/conversations/c1/tool-calls/k1", &c)
	require.Equal(t, "exit status 1", c.Result.Error)
}

func TestAnEventIsShownAsItWasPublished(t *testing.T) {
	b := setup(t)
	body := []byte(`{"specversion":"1.0","id":"1","source":"test","type":"dev.mneme.message.created.v1","subject":"c1","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","time":"2026-03-01T12:00:00Z","datacontenttype":"application/json","data":{"message_id":"m1","role":"user","content":"hello"}}`)
	seq := b.publish(body).Seq
	var shown string
	b.get(fmt.Sprintf("/v1/events/%d", seq), &shown)
	require.JSONEq(t, string(body), shown)
	again := b.publish([]byte(shown))
	require.True(t, again.Events[0].Duplicate)
}

func TestEventsOfOtherTenantsAndDeletedConversationsAreHidden(t *testing.T) {
	b := setup(t)
	first := b.publish(structured("c1", "1", message("m1", "user", "secret"))).Seq
	path := fmt.Sprintf("/v1/events/%d", first)
	b.get(path, nil)
	b.refused(http.StatusNotFound, http.MethodGet, path+"?tenant=other", nil, "")
	b.refused(http.StatusNotFound, http.MethodGet, "/v1/events/99", nil, "")
	b.refused(http.StatusNotFound, http.MethodGet, "/v1/events/9223372036854775807", nil, "")

	deleted := b.publish(structured("c1", "2", &events.ConversationDeleted{Reason: "secret"})).Seq
	late := b.publish(structured("c1", "3", message("m2", "user", "secret"))).Seq
	b.get(fmt.Sprintf("/v1/conversations?at_least=%d", late), nil)
	for _, seq := range []uint64{first, deleted, late} {
		p := b.refused(http.StatusNotFound, http.MethodGet, fmt.Sprintf("/v1/events/%d", seq), nil, "")
		require.NotContains(t, p.Detail, "secret")
	}
}

func TestAnUnreadableEventIs404WithTheReason(t *testing.T) {
	b := setup(t)
	conn, err := nats.Connect(b.NATSURL(), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.RequestMsg(&nats.Msg{Subject: "mneme.default.c1.message_created", Data: []byte("{"), Header: nats.Header{"Content-Type": {events.ContentTypeEvent}}}, mnemetest.Patience)
	require.NoError(t, err)
	p := b.refused(http.StatusNotFound, http.MethodGet, "/v1/events/1", nil, "")
	require.Contains(t, p.Detail, "JSON")
	p = b.refused(http.StatusNotFound, http.MethodGet, "/v1/events/1?tenant=other", nil, "")
	require.NotContains(t, p.Detail, "JSON")
}
