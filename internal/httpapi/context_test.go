package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/window"
	"mneme.dev/mneme/pkg/window/marks"
)

func TestContextFormatsForModelAPIs(t *testing.T) {
	b := setup(t)
	success := false
	var seq uint64
	for i, p := range []events.Payload{
		message("m1", "user", "Is a < b && c > d?"), message("m2", "assistant", "I look."),
		&events.ToolCalled{ToolCallID: "functions.read:0", MessageID: "m2", ToolName: "read", Arguments: json.RawMessage(`{"path":"a<b.go"}`)},
		&events.ToolReturned{ToolCallID: "functions.read:0", Success: &success, Result: events.TextResult("no such file")},
		message("m3", "assistant", "It is not there."),
	} {
		seq = b.publish(structured("c1", fmt.Sprint(i), p)).Seq
	}
	path := fmt.Sprintf("/v1/conversations/c1/context?at_least=%d&max_chars=1000&format=", seq)

	const id = "functions_read_0-c216cab2"
	var text string
	b.get(path+"openai", &text)
	require.Equal(t, `{"messages":[{"role":"system","content":"`+marks.Notice+`"},{"role":"user","content":"Is a < b && c > d?"},`+
		`{"role":"assistant","content":"I look.","tool_calls":[{"id":"`+id+`","type":"function","function":{"name":"read","arguments":"{\"path\":\"a<b.go\"}"}}]},`+
		`{"role":"tool","content":"(failed) no such file","tool_call_id":"`+id+`"},`+
		`{"role":"assistant","content":"It is not there."},{"role":"user","content":"[no answer yet]"}]}`+"\n", text)

	b.get(path+"anthropic", &text)
	require.Equal(t, `{"system":"`+marks.Notice+`","messages":[{"role":"user","content":[{"type":"text","text":"Is a < b && c > d?"}]},`+
		`{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"`+id+`","name":"read","input":{"path":"a<b.go"}}]},`+
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"`+id+`","content":[{"type":"text","text":"no such file"}],"is_error":true}]},`+
		`{"role":"assistant","content":[{"type":"text","text":"It is not there."}]},{"role":"user","content":[{"type":"text","text":"[no answer yet]"}]}]}`+"\n", text)

	for format, messages := range map[string]int{"openai": 6, "anthropic": 5} {
		var explained struct {
			Messages []any
			Manifest struct{ Budget, Used int }
		}
		b.get(path+format+"&explain=true", &explained)
		require.Len(t, explained.Messages, messages)
		require.Equal(t, 1000, explained.Manifest.Budget)
		require.Positive(t, explained.Manifest.Used)
		response, err := http.Get(b.HTTPURL() + path + format)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, "application/json", response.Header.Get("Content-Type"))
	}
	p := b.refused(422, http.MethodGet, path+"gemini", nil, "")
	require.True(t, strings.HasSuffix(p.Errors[0].Location, "query.format"), "%+v", p)
}

func TestMemoryIsInlineOrSeparate(t *testing.T) {
	b := setup(t)
	var seq uint64
	for i := range 40 {
		role := []string{"user", "assistant"}[i%2]
		seq = b.publish(structured("c1", fmt.Sprint(i), message(fmt.Sprint("m", i), role, fmt.Sprintf("What is said in message %d.", i)))).Seq
	}
	path := fmt.Sprintf("/v1/conversations/c1/context?at_least=%d&max_chars=900&query=message+3&format=", seq)
	var markdown string
	b.get(path+"markdown", &markdown)
	before, rest, _ := strings.Cut(strings.TrimPrefix(markdown, window.FirstLine+"\n\n"), "## Recent Conversation (Raw)\n")
	_, after, _ := strings.Cut(rest, "\n## ")

	var openAI struct {
		Memory   string
		Messages []struct{ Role, Content string }
		Manifest struct{ Mark string }
	}
	b.get(path+"openai&explain=true", &openAI)
	mark := openAI.Manifest.Mark
	memory := "<record " + mark + ">\n" + before + "## " + strings.TrimSuffix(after, "\n") + "\n</record " + mark + ">"
	require.Equal(t, "system", openAI.Messages[0].Role)
	require.Equal(t, marks.Notice, openAI.Messages[0].Content)
	require.Equal(t, "user", openAI.Messages[1].Role)
	require.True(t, strings.HasPrefix(openAI.Messages[1].Content, memory+"\n\n"), "all sections but the recent turns:\n%s", openAI.Messages[1].Content)
	require.Equal(t, "What is said in message 39.", openAI.Messages[len(openAI.Messages)-2].Content)
	require.Empty(t, openAI.Memory)
	var claude struct {
		System, Memory string
		Messages       []struct{ Content []struct{ Text string } }
	}
	b.get(path+"anthropic", &claude)
	require.Equal(t, marks.Notice, claude.System)
	require.Equal(t, memory, claude.Messages[0].Content[0].Text, "a block of its own")
	require.Empty(t, claude.Memory)

	for _, format := range []string{"openai", "anthropic"} {
		var apart struct {
			Memory   string
			Messages any
		}
		b.get(path+format+"&memory=separate", &apart)
		require.Equal(t, memory, apart.Memory)
		require.NotContains(t, fmt.Sprint(apart.Messages), mark+">\n"+before, "it does not stand there twice")
	}
	p := b.refused(422, http.MethodGet, path+"openai&memory=system", nil, "")
	require.True(t, strings.HasSuffix(p.Errors[0].Location, "query.memory"), "%+v", p)
}
