package health

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
)

// told builds the rows of a conversation, one call at a time.
type told struct {
	graph.Position
	rows []graph.Entry
}

func (c *told) next() graph.Position {
	c.Seq++
	return c.Position
}

func (c *told) user(text string) *told {
	c.Turn++
	c.rows = append(c.rows, graph.Entry{Message: &graph.Message{Position: c.next(), Role: "user", Content: graph.NewBody(text)}})
	return c
}

func (c *told) assistant(text string) *told {
	c.Step++
	c.rows = append(c.rows, graph.Entry{Message: &graph.Message{Position: c.next(), Role: "assistant", Content: graph.NewBody(text)}})
	return c
}

// call adds a call with its result, which failed if it begins with "!".
func (c *told) call(tool, arguments, result string) *told {
	p := c.next()
	id := fmt.Sprint("k", p.Seq)
	result, failed := strings.CutPrefix(result, "!")
	success := !failed
	c.rows = append(c.rows,
		graph.Entry{Call: &graph.ToolCall{Position: p, ToolCallID: id, ToolName: tool, Arguments: graph.NewBody(arguments)}},
		graph.Entry{Result: &graph.ToolResult{Position: c.next(), ToolCallID: id, Success: &success, Result: graph.NewBody(result)}})
	return c
}

func (c *told) bash(command, result string) *told {
	raw, _ := json.Marshal(map[string]any{"command": command, "description": fmt.Sprint("call ", c.Seq)})
	return c.call("Bash", string(raw), result)
}

// read adds a read of lines of a file.
func (c *told) read(path string, from, to int) *told {
	var text strings.Builder
	for n := from; n <= to; n++ {
		fmt.Fprintf(&text, "%d→ this is line %d of %s\n", n, n, path)
	}
	return c.call("Read", fmt.Sprintf(`{"file_path":%q,"offset":%d,"limit":%d}`, path, from, to-from+1), text.String())
}

func (c *told) edit(path, result string) *told {
	return c.call("Edit", fmt.Sprintf(`{"file_path":%q,"new_string":"%d"}`, path, c.Seq), result)
}

func (c *told) check() (list []string) {
	checker := New("/r")
	for _, row := range c.rows {
		checker.Add(row)
	}
	for _, f := range checker.Findings() {
		list = append(list, fmt.Sprintf("%s %d %s %q turn %d %v", f.Rule, f.Count, f.Tool, f.Subject, f.Turn, f.Seqs))
	}
	return list
}

func TestRulesFindWhatIsOddAndNothingElse(t *testing.T) {
	t.Parallel()
	start := func() *told { return (&told{}).user("go") }
	long := start()
	for range TurnSteps {
		long.assistant("on it")
	}
	short := start()
	for range TurnSteps - 1 {
		short.assistant("on it")
	}
	for _, c := range []struct {
		name string
		told *told
		want []string
	}{
		{"a status three times", start().bash("git status", "clean").bash("git status", "clean").bash("git status | head -5", "clean"),
			[]string{`loop 3 Bash "git status" turn 1 [2 4 6]`}},
		{"a status twice", start().bash("git status", "clean").bash("git status", "clean"), nil},
		{"a result that changes is progress", start().bash("poll", "1").bash("poll", "2").bash("poll", "3"), nil},
		{"an edit between", start().bash("go test", "ok").bash("go test", "ok").edit("/r/a", "done").bash("go test", "ok"), nil},
		{"looking between", start().bash("go test", "ok").bash("ls", "a").bash("go test", "ok").bash("cat a", "x").bash("go test", "ok"),
			[]string{`loop 3 Bash "go test" turn 1 [2 6 10]`}},
		{"two calls in turns", start().bash("a", "1").bash("b", "1").bash("a", "1").bash("b", "1").bash("a", "1").bash("b", "1").bash("a", "1"),
			[]string{`loop 3 Bash "b" turn 1 [4 8 12]`, `loop 3 Bash "a" turn 1 [6 10 14]`}},
		{"the user asked again", start().bash("ls", "a").bash("ls", "a").user("again").bash("ls", "a"), nil},
		{"a failure again", start().bash("make", "!no rule, 1 s").bash("make 2>&1", "!no rule, 2 s"),
			[]string{`failing 2 Bash "make" turn 1 [2 4]`}},
		{"a failure after a change", start().bash("make", "!no").edit("/r/a", "done").bash("make", "!no"), nil},
		{"a failed edit is no change", start().bash("make", "!no").edit("/r/a", "!not found").bash("make", "!no"),
			[]string{`failing 2 Bash "make" turn 1 [2 6]`}},
		{"a failure, then success", start().bash("make", "!no").bash("make", "ok").bash("make", "!no"), nil},
		{"one part three times", start().read("/r/a", 1, 50).read("/r/a", 10, 40).read("/r/b", 1, 9).read("/r/a", 12, 38),
			[]string{`rereads 2 Read "/r/a" turn 1 [2 4 8]`}},
		{"pages of a file", start().read("/r/a", 1, 50).read("/r/a", 51, 100).read("/r/a", 101, 150).read("/r/a", 151, 200), nil},
		{"each part twice", start().read("/r/a", 1, 60).read("/r/a", 1, 20).read("/r/a", 21, 40).read("/r/a", 41, 60), nil},
		{"a write between reads", start().read("/r/a", 1, 50).read("/r/a", 1, 50).edit("/r/a", "done").read("/r/a", 1, 50), nil},
		{"a failed write between reads", start().read("/r/a", 1, 50).read("/r/a", 1, 50).edit("/r/a", "!no").read("/r/a", 1, 50),
			[]string{`rereads 2 Read "/r/a" turn 1 [2 4 8]`}},
		{"a stub instead of the file", start().call("Read", `{"file_path":"/r/a"}`, "unchanged").call("Read", `{"file_path":"/r/a"}`, "unchanged").call("Read", `{"file_path":"/r/a"}`, "unchanged"), nil},
		{"a long turn", long, []string{fmt.Sprintf(`long_turn %d  "go" turn 1 [2 %d]`, TurnSteps, TurnSteps+1)}},
		{"a turn that is not long", short, nil},
		{"no answer", (&told{}).user("hello").assistant("hi").user("do it").user("please"), []string{`unanswered 2  "do it" turn 2 [3 4]`}},
		{"a call is an answer", (&told{}).user("do it").bash("ls", "a"), nil},
		{"the user stopped it", (&told{}).user("do it").user("[Request interrupted by user]"), nil},
		{"what a hook says is no answer", (&told{}).user("do it").user("Stop hook feedback:\nRun the tests.").user("please"), []string{`unanswered 2  "do it" turn 1 [1 3]`}},
		{"a call that did not run", start().bash("make", "!Sibling tool call errored").bash("make", "!Cancelled: parallel tool call Bash(ls) errored"), nil},
		{"a program's message is no request", (&told{}).user("hi").assistant("hi").user("<command-name>/exit</command-name>"), nil},
		{"nothing", &told{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, c.told.check())
		})
	}
}

func TestResultsThatComeLateOrNeverDoNoHarm(t *testing.T) {
	t.Parallel()
	c := (&told{}).user("go").bash("ls", "a").bash("ls", "a").bash("ls", "a")
	c.rows = append(c.rows, graph.Entry{Result: &graph.ToolResult{Position: c.next(), ToolCallID: "unknown"}},
		graph.Entry{Call: &graph.ToolCall{Position: c.next(), ToolCallID: "pending", ToolName: "Bash", Arguments: graph.NewBody(`{"command":"ls"}`)}})
	require.Equal(t, []string{`loop 3 Bash "ls" turn 1 [2 4 6]`}, c.check())
	rows := c.rows // all calls, then all results, as with calls in parallel
	c.rows = []graph.Entry{rows[0], rows[1], rows[3], rows[5], rows[2], rows[4], rows[6]}
	require.Equal(t, []string{`loop 3 Bash "ls" turn 1 [2 4 6]`}, c.check())
}

func TestWhatACheckRemembersIsBounded(t *testing.T) {
	t.Parallel()
	c := (&told{}).read("/r/a", 1, 50).read("/r/a", 1, 50).read("/r/a", 1, 50)
	for range 3 {
		c.read("/r/b", 1, 50)
	}
	c.edit("/r/a", "done") // what was read of a is forgotten
	for range 3 {
		c.read("/r/c", 1, 50)
	}
	c.rows = append(c.rows, graph.Entry{Call: &graph.ToolCall{Position: c.next(), ToolCallID: "open", ToolName: "x", Arguments: graph.NewBody(`{"y":"` + strings.Repeat("z", 60_000) + `"}`)}})
	checker := New("/r")
	checker.room = 60
	for _, row := range c.rows {
		checker.Add(row)
	}
	require.Equal(t, 10, checker.room)
	for _, open := range checker.waiting {
		require.LessOrEqual(t, plain.Length(open.subject), maxSubject)
	}
	var files []string
	for _, f := range checker.Findings() {
		files = append(files, f.Subject)
	}
	require.Equal(t, []string{"/r/a", "/r/c"}, files)
}

// Findings name events of the conversation, in order, and the same rows give the same findings.
func TestFindingsStandOnEventsInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := &told{}
		for range rapid.IntRange(0, 60).Draw(t, "rows") {
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				c.user(rapid.SampledFrom([]string{"go", "[Request interrupted by user]", "<bash-input>ls</bash-input>", ""}).Draw(t, "text"))
			case 1:
				c.assistant("done")
			case 2, 3:
				c.bash(rapid.SampledFrom([]string{"ls", "make", "cat /r/a", ">", ""}).Draw(t, "command"), rapid.SampledFrom([]string{"a", "!no", ""}).Draw(t, "result"))
			case 4:
				c.read("/r/a", rapid.IntRange(1, 3).Draw(t, "from"), 20)
			default:
				c.call(rapid.SampledFrom([]string{"Edit", "x"}).Draw(t, "tool"), rapid.SampledFrom([]string{"", "{", `{"file_path":"/r/a"}`, "[1]"}).Draw(t, "arguments"), "ok")
			}
		}
		list := c.check()
		require.Equal(t, list, c.check())
		checker := New("/r")
		for _, row := range c.rows {
			checker.Add(row)
		}
		for _, f := range checker.Findings() {
			require.NotEmpty(t, f.Seqs)
			require.IsIncreasing(t, append([]uint64{0}, f.Seqs...))
			require.Equal(t, f.FirstSeq, f.Seqs[0])
			require.LessOrEqual(t, f.LastSeq, c.Seq)
			require.LessOrEqual(t, len(f.Seqs), MaxSeqs)
		}
	})
}

func TestACallThatTheUserRefusedTwiceDidNotFail(t *testing.T) {
	t.Parallel()
	refused := func(c *told) *told {
		no := false
		c.bash("make deploy", "")
		c.rows[len(c.rows)-1].Result.Success = &no
		c.rows[len(c.rows)-1].Result.Result = graph.NewBody("The user doesn't want to proceed with this tool use. The tool use was rejected.")
		return c
	}
	c := refused(refused((&told{}).user("deploy")))
	require.Empty(t, c.check())
	c = refused((&told{}).user("deploy").bash("make deploy", "!no")).bash("make deploy", "!no")
	require.Empty(t, c.check(), "a refusal is something new")
}
