package files

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"mneme.dev/mneme/events"
)

func TestResultsNameFiles(t *testing.T) {
	for _, c := range []struct{ name, tool, arguments, result, want string }{
		{"hits with line numbers", "Grep", `{"path":"/w"}`, "a.go:3: x\nsub/b.go:7:y\na.go:9: z", "search /w/a.go, search /w/sub/b.go"},
		{"context is not a hit", "Grep", `{}`, "a.go-2-see b.go:7: no\na.go:3: x\na.go-4-y", "search /w/a.go"},
		{"counts", "Grep", `{}`, "a.go:3\nb.go:1", "search /w/a.go, search /w/b.go"},
		{"one file searched", "Grep", `{"path":"/w/a.go"}`, "3:x\n4-// see b.go:\n5: y", ""},
		{"files with matches", "Grep", `{}`, "Found 2 files\na.go\nsub/b c.md", "search /w/a.go, search /w/sub/b c.md"},
		{"nothing found", "Grep", `{}`, "No matches found", ""},
		{"text with numbers is not a hit", "Grep", `{}`, "2026-02-07T00:35:24 done\n10.0.0.1:80: up\nhttp://h/a:80: x\n  at a.go:3: y", ""},
		{"Windows", "Grep", `{}`, `C:\w\a.go:3: x`, `search C:\w\a.go`},
		{"Gemini CLI", "search_file_content", `{"path":"src"}`, "Found 1 match for pattern \"x\" in path \"src\":\n---\nFile: a.ts\nL3: x\n---", "search /w/src/a.ts"},
		{"OpenCode", "grep", `{}`, "Found 1 matches\n/w/a.ts:\n  Line 12: x", "search /w/a.ts"},
		{"language server", "LSP", `{"filePath":"/w/z.go"}`, "Found 2 references across 1 files:\n\na.go:\n  Line 64:6", "search /w/a.go"},
		{"Roo", "search_files", `{"path":"."}`, "Found 1 result.\n\n# src/a.ts\n  3 | x\n----", "search /w/src/a.ts"},
		{"Cline", "search_files", `{"path":"."}`, "Found 1 result.\n\nsrc/a.ts\n│----\n│x\n│----", "search /w/src/a.ts"},
		{"paths", "Glob", `{"pattern":"*"}`, "/w/a.go\r\n/w/b.go", "search /w/a.go, search /w/b.go"},
		{"no paths", "Glob", `{}`, "No files found", ""},
		{"SWE-agent's find_file", "find_file", `{"command":"find_file a.py src"}`, "Found 1 matches for \"a.py\" in /w/src:\n/w/src/a.py\n", "search /w/src/a.py"},
		{"a listing", "list_directory", `{"path":"sub"}`, "[FILE] Makefile\n[DIR] src\nDone.", "list /w/sub/Makefile, list /w/sub/src"},
		{"a listing with sizes", "list_directory", `{"path":"sub"}`, "Directory listing for /w/sub:\n[DIR] src\na.txt (12 bytes)", "list /w/sub/src, list /w/sub/a.txt"},
		{"a viewed folder", "str_replace_editor", `{"command":"view","path":"/w"}`,
			"OBSERVATION:\nHere's the files and directories up to 2 levels deep in /w, excluding hidden items:\n/w\n/w/a.py\n\n2 hidden files", "list /w, list /w/a.py"},
		{"a viewed file", "str_replace_editor", `{"command":"view","path":"/w/a"}`, "Here's the result of running `cat -n` on /w/a:\n1\t/w/b.py", ""},
		{"an edit of the open file", "edit", `{"command":"edit 1:1\nx"}`, "[File: /w/a.py (3 lines total)]\n1:x", "write /w/a.py"},
		{"JSON objects", "brain_search", `{"query":"x"}`, `[{"file":"a.go","score":1},{"path":"b.go"},{"title":"c.go"}]`, "search /w/a.go, search /w/b.go"},
		{"JSON below a member", "grep_files", `{}`, `{"query":"path","matches":[{"path":"a.go","line":{"text":"b.go"}}]}`, "search /w/a.go"},
		{"JSON names", "glob_files", `{}`, `{"filenames":["a.go","b.go"],"tags":["c.go"]}`, "list /w/a.go, list /w/b.go"},
		{"JSON that ends too early", "brain_search", `{}`, `[{"file":"a.go"},{"file":"b.`, "search /w/a.go"},
		{"the text of a read file", "Read", `{"file_path":"/w/a"}`, "b.go:3: x", ""},
		{"what a shell prints", "Bash", `{"command":"grep x -r ."}`, "b.go:3: x", ""},
		{"an unknown tool", "oracle", `{}`, `[{"file":"a.go"}]`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			call := Call{Tool: c.tool, Arguments: json.RawMessage(c.arguments), Cwd: "/w"}
			got := DefaultTable().FromResult(call, c.result, nil)
			assert.Equal(t, c.want, strings.Join(show(got), ", "))
			if c.want != "" {
			}
		})
	}
}

func TestReportedFilesCountForAnyTool(t *testing.T) {
	reported := []events.FileOp{{Path: "a.go", Op: "edit"}, {Path: "/x", Op: "list"}, {Path: "b.go", Op: "write"}, {Path: "c", Op: "stroke"}}
	for _, tool := range []string{"oracle", "Read"} {
		got := DefaultTable().FromResult(Call{Tool: tool, Cwd: "/w"}, "", reported)
		assert.Equal(t, []Access{{"/w/a.go", KindWrite}, {"/x", KindList}, {"/w/b.go", KindWrite}}, got)
	}
}

// SWE-agent names files relative to a folder that only its results reveal.
func TestResultResolvesAFileInAnUnknownFolder(t *testing.T) {
	table := DefaultTable()
	call := Call{Tool: "open", Arguments: json.RawMessage(`{"command":"open a.py"}`)}
	assert.Empty(t, table.FromCall(call))
	assert.Equal(t, []Access{{"/r/a.py", KindRead}}, table.FromResult(call, "[File: /r/a.py (3 lines total)]", nil))
	assert.Equal(t, []Access{{"a.py", KindRead}}, table.FromResult(call, "something else", nil))

	call.Cwd = "/r"
	assert.Equal(t, []Access{{"/r/a.py", KindRead}}, table.FromCall(call))
	assert.Empty(t, table.FromResult(call, "[File: /r/a.py (3 lines total)]", nil))
}

func TestResultIsLimitedInSizeAndAccesses(t *testing.T) {
	var b strings.Builder
	for i := range 5 * MaxAccesses {
		fmt.Fprintf(&b, "f%d.go:1: x\n", i)
	}
	table, call := DefaultTable(), Call{Tool: "Grep", Cwd: "/w"}
	assert.Len(t, table.FromResult(call, b.String(), nil), MaxAccesses)

	far := strings.Repeat("x\n", MaxResultBytes/2-2) + "cut.go.or.not.go:1: x\n"
	assert.Empty(t, table.FromResult(call, far, nil))
}

func TestKeptCallIsSmallAndGivesTheSameResult(t *testing.T) {
	table := DefaultTable()
	call := Call{Tool: "search_file_content", Cwd: "/w", Arguments: json.RawMessage(`{"path":"src","pattern":"` + strings.Repeat("x", 1<<20) + `"}`)}
	kept, worth := table.Keep(call)
	assert.True(t, worth)
	assert.JSONEq(t, `{"path":"src"}`, string(kept.Arguments))
	assert.Equal(t, table.FromResult(call, "File: a.ts", nil), table.FromResult(kept, "File: a.ts", nil))

	for _, tool := range []string{"Read", "Bash", "oracle"} {
		_, worth = table.Keep(Call{Tool: tool, Arguments: json.RawMessage(`{"file_path":"/a","command":"cat b"}`)})
		assert.False(t, worth, tool)
	}
	_, worth = table.Keep(Call{Tool: "edit", Arguments: json.RawMessage(`{"path":"/w/a.go"}`)})
	assert.False(t, worth, "the call says it all")
}
