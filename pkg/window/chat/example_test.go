package chat_test

import (
	"encoding/json"
	"fmt"

	"mneme.dev/mneme/pkg/window"
	"mneme.dev/mneme/pkg/window/chat"
)

// A context in JSON, as the API returns it, is enough to make messages.
func ExampleOpenAI() {
	const answer = `{"conversation_id": "c1", "strategy": "recent", "sections": [{
		"name": "recent_turns", "heading": "## Recent Conversation (Raw)",
		"items": [
			{"kind": "message", "role": "user", "text": "Is the build green?"},
			{"kind": "message", "role": "assistant", "text": "I run the tests."},
			{"kind": "tool_call", "tool_call_id": "t1", "tool_name": "bash", "arguments": "{\"command\":\"go test\"}", "result": "ok", "chars": 60},
			{"kind": "message", "role": "assistant", "text": "It is."}
		]}]}`
	var c window.Context
	if err := json.Unmarshal([]byte(answer), &c); err != nil {
		panic(err)
	}
	for _, m := range chat.OpenAI(&c, chat.Inline).Messages[1:] {
		fmt.Printf("%s: %s\n", m.Role, m.Content)
		for _, call := range m.ToolCalls {
			fmt.Printf("  %s %s\n", call.Function.Name, call.Function.Arguments)
		}
	}
	// Output:
	// user: Is the build green?
	// assistant: I run the tests.
	//   bash {"command":"go test"}
	// tool: ok
	// assistant: It is.
	// user: [no answer yet]
}
