package intake

import (
	"encoding/json"
	"fmt"
	"html"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/frame"
	"mneme.dev/mneme/internal/redact"
)

var secret = "gh" + "p_" + strings.Repeat("aB3d", 9)

func event(t require.TestingT, p events.Payload) events.Event {
	e, err := events.New("c", "test", "e", p)
	require.NoError(t, err)
	return e
}

// clean cleans a payload and returns it with its event.
func clean[P events.Payload](t require.TestingT, c *Cleaner, p P) (P, events.Event) {
	e, _, err := c.Clean(event(t, p))
	require.NoError(t, err)
	r, err := events.Record(e)
	require.NoError(t, err)
	return r.Payload.(P), e
}

func said(role, content string) *events.MessageCreated {
	return &events.MessageCreated{MessageID: "m", Role: role, Content: content}
}

func returned(call, text string) *events.ToolReturned {
	return &events.ToolReturned{ToolCallID: call, Result: events.TextResult(text)}
}

func TestFramesAreRemovedAndTheirIdsKept(t *testing.T) {
	shown := frame.Wrap("a1", 5, "old text")
	for _, content := range []string{"fix it\n\n" + shown, "fix it\n" + html.EscapeString(shown)} {
		for _, role := range []string{"user", "assistant", "system"} {
			m, e := clean(t, &Cleaner{}, said(role, content))
			require.Equal(t, "fix it", m.Content)
			require.Equal(t, "a1", e.Extension(events.ExtensionContexts))
			require.Empty(t, e.Extension(events.ExtensionRedaction))
			require.Equal(t, "c", e.Extension("partitionkey"))
		}
	}
	r, e := clean(t, &Cleaner{}, returned("t", "ok "+shown))
	require.Equal(t, "ok", r.Result.Text())
	require.Equal(t, "a1", e.Extension(events.ExtensionContexts))
	r, _ = clean(t, &Cleaner{}, &events.ToolReturned{ToolCallID: "t", Result: events.JSONResult([]byte(`{"out": ` + quoted(t, shown) + `, "n": 1.50}`))})
	require.Equal(t, `{"out":"","n":1.50}`, r.Result.Text())
}

func quoted(t *testing.T, s string) string {
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	return string(raw)
}

func TestAnEventWithNothingToRemoveStaysByteForByte(t *testing.T) {
	for _, c := range []*Cleaner{{}, {Redact: redact.Default()}} {
		for _, p := range []events.Payload{
			said("user", "mneme-context is a tag <mneme-context>"), &events.ToolCalled{ToolCallID: "t", ToolName: "Bash", Arguments: []byte(`{ "command" : "ls",  "n":1e3, "n":2}`)},
			returned("t", "mneme"), &events.ConversationStarted{Title: "mneme"}, &events.Foreign{Type: "com.example.x", Data: []byte(`{"a":"` + secret + `"}`)},
		} {
			e := event(t, p)
			got, changed, err := c.Clean(e)
			require.NoError(t, err)
			require.False(t, changed)
			require.True(t, e.Equal(&got))
		}
	}
}

func TestResultsOfMnemesOwnToolsAreReferences(t *testing.T) {
	for tool, own := range map[string]bool{
		"mcp__mneme__memory_context": true, "mcp__plugin_mneme_mneme__memory_search": true, "mneme.memory_read": true, "mneme_memory_file_history": true,
		"mcp__mneme__memory_remember": false, "mcp__other__memory_context": false, "memory_context": false, "Read": false,
	} {
		c := &Cleaner{}
		clean(t, c, &events.ToolCalled{ToolCallID: "t", ToolName: tool, Arguments: []byte(`{}`)})
		r, _ := clean(t, c, returned("t", "plain text of an old server"))
		require.Equal(t, own, r.Result.Text() == "[shown by mneme]", tool)
		clean(t, c, &events.ToolCalled{ToolCallID: "t", ToolName: tool, Arguments: []byte(`{}`)})
		r, e := clean(t, c, returned("t", frame.Wrap("a1", 1, "x")))
		require.Equal(t, "[shown by mneme: context a1]", r.Result.Text(), "a frame is enough, whoever was called")
		require.Equal(t, "a1", e.Extension(events.ExtensionContexts))
		no := false
		clean(t, c, &events.ToolCalled{ToolCallID: "t", ToolName: tool, Arguments: []byte(`{}`)})
		r, _ = clean(t, c, &events.ToolReturned{ToolCallID: "t", Result: events.TextResult("refused"), Success: &no})
		require.Equal(t, "refused", r.Result.Text(), "a failure says what went wrong")
	}
}

func TestSecretsAreReplacedInEveryText(t *testing.T) {
	c := &Cleaner{Redact: redact.Default()}
	const gone = "[redacted:github-token]"
	m, e := clean(t, c, &events.MessageCreated{MessageID: "m", Role: "user", Content: "use " + secret, Reasoning: secret})
	require.Equal(t, "use "+gone, m.Content)
	require.Equal(t, gone, m.Reasoning)
	require.Equal(t, redact.Version, e.Extension(events.ExtensionRedaction))
	call, _ := clean(t, c, &events.ToolCalled{ToolCallID: "t", ToolName: "Bash", Arguments: []byte(`{"command":"curl -u x:` + secret + `","password":"hunter2x","n":10.0}`)})
	require.Equal(t, `{"command":"curl -u x:`+gone+`","password":"[redacted:password]","n":10.0}`, call.Text())
	r, _ := clean(t, c, &events.ToolReturned{ToolCallID: "t", Result: events.TextResult(secret), Error: secret})
	require.Equal(t, gone, r.Result.Text())
	require.Equal(t, gone, r.Error)
	s, _ := clean(t, c, &events.ConversationStarted{Title: secret})
	require.Equal(t, gone, s.Title)
	d, _ := clean(t, c, &events.ConversationDeleted{Reason: "it has " + secret})
	require.Equal(t, "it has "+gone, d.Reason)
	w, _ := clean(t, c, &events.LessonWithdrawn{EventSource: "s", EventID: "e", Reason: secret})
	require.Equal(t, gone, w.Reason)
	found := Find(redact.Default(), said("user", secret+" and "+secret))
	require.Equal(t, []Finding{{"content", "github-token"}, {"content", "github-token"}}, found)
}

func TestSecretsAreFoundInEventsOfEveryType(t *testing.T) {
	const gone = "github-token"
	for _, c := range []struct {
		payload events.Payload
		want    []Finding
	}{
		{&events.ConversationStarted{Title: secret, Tags: []string{"a", secret}, Cwd: "/" + secret}, []Finding{{"title", gone}, {"tags", gone}, {"cwd", gone}}},
		{&events.SummaryWritten{Conversation: secret, Actions: secret, Findings: []string{secret}}, []Finding{{"conversation", gone}, {"actions", gone}, {"findings", gone}}},
		{&events.ToolCondensed{Content: secret}, []Finding{{"content", gone}}},
		{&events.MemoryChanged{Path: "a.md", Content: &secret}, []Finding{{"content", gone}}},
		{&events.ContextServed{Query: secret}, []Finding{{"query", gone}}},
		{&events.InsightWritten{Answer: map[string]json.RawMessage{"key_findings": []byte(`["` + secret + `"]`)}}, []Finding{{"answer", gone}}},
		{&events.StoryWritten{Actions: secret}, []Finding{{"actions", gone}}},
		{&events.CodeIndexed{Scopes: []events.CodeScope{{Text: secret}, {Text: secret}}}, []Finding{{"scopes", gone}, {"scopes", gone}}},
		{&events.ToolReturned{Result: events.JSONResult([]byte(`{"password":"hunter2x"}`)), Error: secret}, []Finding{{"result", "password"}, {"error", gone}}},
		{&events.Foreign{Type: "com.example.x", Data: []byte(`{"a":{"api_key":"hunter2x"}}`)}, []Finding{{"a", "password"}}},
		{&events.Foreign{Type: "com.example.x", Data: []byte(`"` + secret + `"`)}, []Finding{{"data", gone}}},
		{&events.Foreign{Type: "com.example.x", Data: []byte("a text: " + secret)}, []Finding{{"data", gone}}},
	} {
		require.Equal(t, c.want, Find(redact.Default(), c.payload), "%T", c.payload)
	}
}

func TestTheIdsOfManyContextsAreCutToAnExtension(t *testing.T) {
	var b strings.Builder
	for i := range 500 {
		b.WriteString(frame.Wrap(fmt.Sprintf("context-%04d", i), 1, "x"))
	}
	_, e := clean(t, &Cleaner{}, said("user", b.String()))
	ids := strings.Split(e.Extension(events.ExtensionContexts), ",")
	require.Equal(t, "context-0000", ids[0])
	require.Greater(t, len(ids), 300)
	require.Len(t, ids[len(ids)-1], len("context-0000"))
}

func TestCleaningTwiceChangesNothing(t *testing.T) {
	pieces := []string{"text ", secret, frame.Wrap("a1", 1, "x"), html.EscapeString(frame.Wrap("b2", 2, "y")), "<mneme-context>", "password=", "Tr0ub4dor3xyz", "\n"}
	rapid.Check(t, func(t *rapid.T) {
		c := &Cleaner{Redact: redact.Default()}
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8).Draw(t, "text"), "")
		for _, p := range []events.Payload{said("user", text), returned("t", text)} {
			once, _, err := c.Clean(event(t, p))
			require.NoError(t, err)
			twice, changed, err := c.Clean(once)
			require.NoError(t, err)
			require.False(t, changed)
			require.True(t, once.Equal(&twice))
		}
	})
}
