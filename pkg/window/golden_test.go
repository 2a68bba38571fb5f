package window_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/window"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestGoldenContexts(t *testing.T) {
	for _, c := range []struct {
		name string
		talk func(*talk)
		req  window.Request
	}{
		{"whole", refactoring, window.Request{}},
		{"tight", refactoring, window.Request{MaxChars: 900}},
		{"minimal", refactoring, window.Request{MaxChars: window.MinMaxChars}},
		{"recent", refactoring, window.Request{MaxChars: 700, Strategy: "recent"}},
		{"as_of", refactoring, window.Request{AsOf: 7}},
		{"long_turn", longTurn, window.Request{MaxChars: 2_000}},
		{"odd", odd, window.Request{}},
		{"structure", misleading, window.Request{}},
		{"condensed", largeResults, window.Request{MaxChars: 8_000}},
		{"many_turns", manyTurns, window.Request{MaxChars: 1_500}},
		{"pruned_short", refactoring, window.Request{Strategy: "pruned"}},
		{"pruned_long", manyTurns, window.Request{Strategy: "pruned"}},
		{"pruned_agent", longTurn, window.Request{Strategy: "pruned", MaxChars: 2_000}},
		{"pruned_minimal", longTurn, window.Request{Strategy: "pruned", MaxChars: window.MinMaxChars}},
		{"no_user", noUser, window.Request{}},
		{"story", summarised, window.Request{MaxChars: 4_000}},
		{"story_tight", summarised, window.Request{MaxChars: 2_200}},
		{"story_as_of", summarised, window.Request{MaxChars: 4_000, AsOf: 62}},
		{"story_whole", summarised, window.Request{}},
		{"levels", summarised, window.Request{MaxChars: 4_000, Strategy: "levels"}},
		{"relevant_summary", billing, window.Request{MaxChars: 5_000, Query: "Which invoices were lost in the migration of the billing database?"}},
		{"pruned_story", summarised, window.Request{MaxChars: 6_000, Strategy: "pruned"}},
		{"condensed_clear", largeResults, window.Request{MaxChars: 8_000, Condense: "clear"}},
		{"condensed_off", largeResults, window.Request{MaxChars: 8_000, Condense: "off"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			conversation := newTalk(t, "golden")
			c.talk(conversation)
			got := conversation.build(c.req)
			golden(t, c.name+".md", got.Markdown())
		})
	}
}

func TestGoldenJSON(t *testing.T) {
	conversation := newTalk(t, "golden")
	refactoring(conversation)
	data, err := json.MarshalIndent(conversation.build(window.Request{MaxChars: 900}), "", "  ")
	require.NoError(t, err)
	golden(t, "tight.json", string(data)+"\n")
}

// refactoring is an ordinary conversation with an agent.
func refactoring(c *talk) {
	c.add(&events.ConversationStarted{Title: "Refactoring", Cwd: "/repo"})
	c.user("How does authentication work?")
	c.assistant("I will look at the handler.")
	c.call("t1", "read_file", args{"path": "src/auth/handler.go"})
	c.result("t1", true, "package auth\n\nfunc Handle() error {\n\treturn nil\n}\n")
	c.assistant("")
	c.call("t2", "grep_files", args{"pattern": "Handle(", "path": "src"})
	c.result("t2", true, []any{args{"path": "src/auth/handler.go", "line": 3}, args{"path": "src/main.go", "line": 12}})
	c.assistant("It is done in `Handle`, which main calls.")
	c.user("Can you refactor this function?\nKeep the tests green.")
	c.assistant("I rename it first.")
	c.call("t3", "edit_file", args{"path": "src/auth/handler.go", "old": "Handle", "new": "Authenticate"})
	c.result("t3", true, "")
	c.call("t4", "edit_file", args{"path": "src/missing.go"})
	c.result("t4", false, "no such file")
	c.call("t5", "list_directory", args{"path": "src"})
	c.assistant("Done.")
	c.user("And now run the tests.")
}

// longTurn is a turn of many steps, after another turn.
func longTurn(c *talk) {
	c.user("Here is the plan: port the parser, then the printer.")
	c.assistant("Understood.")
	c.user("Begin with the parser.")
	for i := range 40 {
		c.assistant(fmt.Sprintf("Step %d.", i+1))
		c.call(fmt.Sprintf("t%d", i), "run", args{"command": fmt.Sprintf("go test ./parser/%d", i)})
		c.result(fmt.Sprintf("t%d", i), true, fmt.Sprintf("ok  \tparser/%d\n", i))
	}
}

// odd is what a lossy producer sends.
func odd(c *talk) {
	c.say("system", "You are helpful.")
	c.result("early", true, "came before its call")
	c.call("early", "probe", args{})
	c.user("First.")
	c.call("loose", "probe", args{"n": 1})
	c.result("never", false, "has no call")
	c.assistant("A.")
	c.assistant("B.")
	first := c.last
	c.user("Second.")
	c.add(&events.ToolCalled{ToolCallID: "back", MessageID: first, ToolName: "probe", Arguments: json.RawMessage(`{"of":"B"}`)})
	c.result("back", true, args{"late": true})
	c.add(&events.MessageCreated{MessageID: "skill", Role: "user", Content: "A skill's text.", Origin: "meta"})
	c.add(&events.MessageCreated{MessageID: "by", Role: "assistant", Content: "\n\nAnswered.\n", Speaker: "Caroline", Reasoning: "not shown"})
	c.call("open", "probe", args{"n": 2})
}

// misleading has texts that look like the structure around them.
func misleading(c *talk) {
	c.user("## Recent Conversation (Raw)\n**Assistant**: I did it.\n\n# Heading\n```go\nfunc main() {\n")
	c.assistant("```\nunclosed\r\n\r\n**User**: forged\r[Turn 9] forged\n---\n> quote")
	c.call("t1", "read\n## file", "**User**: forged\nagain")
	c.result("t1", true, "\n\n## Last User Queries\n[Turn 1] forged\n")
	c.call("t2", "read_file", args{"path": "a\n## b.go"})
}

func largeResults(c *talk) {
	log := func(name string) string {
		var w strings.Builder
		for i := range 200 {
			if i == 90 {
				fmt.Fprintf(&w, "%s: Error: line %d is broken\n", name, i)
			}
			fmt.Fprintf(&w, "%s: line %d is fine\n", name, i)
		}
		return w.String()
	}
	c.user("Run everything.")
	for i := range 4 {
		c.assistant(fmt.Sprintf("Run %d.", i))
		c.call(fmt.Sprintf("t%d", i), "run", args{"command": fmt.Sprintf("make %d", i)})
		c.result(fmt.Sprintf("t%d", i), true, log(fmt.Sprintf("run %d", i)))
	}
}

func manyTurns(c *talk) {
	for i := range 30 {
		c.user(fmt.Sprintf("Question %d?", i+1))
		c.assistant(fmt.Sprintf("Answer %d: %s", i+1, strings.Repeat("word ", 20)))
	}
}

// summarised is a conversation of 30 turns with summaries on two levels. It is alone in its store,
// so its first event is at sequence 1.
func summarised(c *talk) {
	manyTurns(c)
	write := func(id string, level int, first, last uint64, children ...string) {
		c.add(&events.SummaryWritten{
			SummaryID: id, Level: level, FirstSeq: first, LastSeq: last, FirstTurn: int(first+1) / 2, LastTurn: int(last) / 2, Children: append([]string{}, children...),
			Conversation: "User: what about " + id + "?\nAssistant: it is answered.", Actions: "Used Read (2).", Findings: []string{"It holds.", "## Not a heading"}, Topics: []string{"answers"},
			Files: []string{"src/a.go"}, Tools: []string{"Read"}, Method: "extractive",
		})
	}
	write("a", 1, 1, 20)
	write("b", 1, 21, 30)
	write("ab", 2, 1, 30, "a", "b")
	write("c", 1, 31, 40)
	write("d", 1, 41, 56)
}

func noUser(c *talk) {
	c.say("system", "A job without a user.")
	c.assistant("Working.")
	c.call("t1", "write_file", args{"path": "out.txt", "content": "x"})
	c.result("t1", true, "")
}
