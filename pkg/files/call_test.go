package files

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// show formats accesses as "kind path" for tables.
func show(accesses []Access) []string {
	lines := []string{}
	for _, a := range accesses {
		lines = append(lines, string(a.Kind)+" "+a.Path)
	}
	return lines
}

func TestFromCallKnowsEachAgentsTools(t *testing.T) {
	for _, c := range []struct{ tool, arguments, want string }{
		{"read_file", `{"path":"a.go"}`, "read /w/a.go"},
		{"write_file", `{"path":"/x/a.go","content":"…"}`, "write /x/a.go"},
		{"edit_file", `{"path":"a.go"}`, "write /w/a.go"},
		{"create_file", `{"path":"a.go"}`, "write /w/a.go"},
		{"grep_files", `{"pattern":"x","path":"src"}`, "search /w/src"},
		{"brain_search", `{"query":"x"}`, ""},
		{"list_directory", `{"path":"."}`, "list /w"},
		{"glob_files", `{"pattern":"*.go","path":"src"}`, "list /w/src"},

		{"Read", `{"file_path":"/w/a.go","offset":3}`, "read /w/a.go"},
		{"MultiEdit", `{"file_path":"/w/a.go","edits":[{"old_string":"path"}]}`, "write /w/a.go"},
		{"NotebookEdit", `{"notebook_path":"/w/a.ipynb"}`, "write /w/a.ipynb"},
		{"Grep", `{"pattern":"x"}`, ""},
		{"Grep", `{"pattern":"x","path":"src","glob":"*.go"}`, "search /w/src"},
		{"LS", `{"path":"/w/src"}`, "list /w/src"},
		{"Bash", `{"command":"cat a.go"}`, "read /w/a.go"},
		{"TodoWrite", `{"todos":[{"path":"a.go"}]}`, ""},

		{"shell", `{"command":["bash","-lc","sed -n 1,20p a.go"],"workdir":"/v"}`, "read /v/a.go"},
		{"shell", `{"command":["cat","my file.txt"]}`, "read /w/my file.txt"},
		{"exec_command", `{"cmd":"cat a.go","workdir":"sub"}`, "read /w/sub/a.go"},
		{"patch", `{"mode":"replace","path":"a.go","old_string":"x","new_string":"y"}`, "write /w/a.go"},
		{"patch", `{"mode":"patch","patch":"*** Begin Patch\n*** Update File: b.go\n@@\n*** End Patch"}`, "write /w/b.go"},
		{"multi_replace_string_in_file", `{"replacements":[{"filePath":"/w/a.go"},{"filePath":"/w/b.go"}]}`, "write /w/a.go, write /w/b.go"},
		{"run_in_terminal", `{"command":"cat a.go"}`, "read /w/a.go"},
		{"Write", `{"filepath":"/w/a.go","content":"package a"}`, "write /w/a.go"},
		{"read_file", `{"filepath":"a.go"}`, "read /w/a.go"},
		{"edit_existing_file", `{"filepath":"a.go","changes":"x"}`, "write /w/a.go"},
		{"List", `{"dirpath":"/w/src"}`, "list /w/src"},
		{"run_terminal_command", `{"command":"cat a.go"}`, "read /w/a.go"},
		{"Create", `{"file_path":"/w/a.go","content":"package a"}`, "write /w/a.go"},
		{"Execute", `{"command":"cat a.go","summary":"Read it","riskLevel":"low"}`, "read /w/a.go"},
		{"LS", `{"directory_path":"/w/src"}`, "list /w/src"},
		{"Glob", `{"patterns":["*.go"],"folder":"/w/src"}`, "search /w/src"},
		{"read_file_v2", `{"targetFile":"/w/a.go","charsLimit":100}`, "read /w/a.go"},
		{"edit_file_v2", `{"relativeWorkspacePath":"a.go","noCodeblock":true}`, "write /w/a.go"},
		{"StrReplace", `{"path":"/w/a.go","old_string":"x","new_string":"y"}`, "write /w/a.go"},
		{"list_dir_v2", `{"targetDirectory":"/w/src"}`, "list /w/src"},
		{"ripgrep_raw_search", `{"pattern":"x","path":"/w/src"}`, "search /w/src"},
		{"glob_file_search", `{"target_directory":"/w/src","glob_pattern":"*.go"}`, "search /w/src"},
		{"run_terminal_command_v2", `{"command":"cat a.go","cwd":"/v"}`, "read /v/a.go"},
		{"ApplyPatch", `{"input":"*** Begin Patch\n*** Update File: a.go\n@@\n*** End Patch"}`, "write /w/a.go"},
		{"apply_patch", `{"input":"*** Begin Patch\n*** Update File: a.go\n@@\n*** End Patch"}`, "write /w/a.go"},
		{"apply_patch", `"*** Begin Patch\n*** Add File: b.go\n+x\n*** End Patch"`, "write /w/b.go"},
		{"list_dir", `{"dir_path":"/w/src"}`, "list /w/src"},

		{"read_file", `{"absolute_path":"/w/a.go"}`, "read /w/a.go"},
		{"read_many_files", `{"paths":["a.go","docs/b.md"]}`, "read /w/a.go, read /w/docs/b.md"},
		{"replace", `{"file_path":"a.go"}`, "write /w/a.go"},
		{"run_shell_command", `{"command":"cat a.go","directory":"sub"}`, "read /w/sub/a.go"},

		{"str_replace_editor", `{"command":"view","path":"/w/a.go"}`, "read /w/a.go"},
		{"str_replace_editor", `{"command":"str_replace","path":"/w/a.go"}`, "write /w/a.go"},
		{"str_replace_editor", `{"command":"dance","path":"/w/a.go"}`, ""},
		{"execute_bash", `{"command":"ls src"}`, "list /w/src"},

		{"open", `{"command":"open \"a b.py\" 12"}`, "read /w/a b.py"},
		{"create", `{"command":"create new.py"}`, "write /w/new.py"},
		{"edit", `{"command":"edit 4:4\nx\nend_of_edit"}`, ""},
		{"find_file", `{"command":"find_file x.py src"}`, "search /w/src"},
		{"search_dir", `{"command":"search_dir \"def f\" src"}`, "search /w/src"},

		{"write_to_file", `{"path":"a.go"}`, "write /w/a.go"},
		{"read_file", `{"files":[{"path":"a.go"},{"path":"b.go"}]}`, "read /w/a.go, read /w/b.go"},
		{"execute_command", `{"command":"cat a.go"}`, "read /w/a.go"},
		{"edit", `{"path":"a.go","oldText":"x"}`, "write /w/a.go"},

		{"read_files", `{"files":[{"path":"/w/a.go","start_line":1,"end_line":9},{"path":"/w/b.go"}]}`, "read /w/a.go, read /w/b.go"},
		{"read_files", `{"file_paths":["/w/a.go"]}`, "read /w/a.go"},
		{"editor", `{"path":"/w/a.go","old_text":"x","new_text":"y"}`, "write /w/a.go"},
		{"run_commands", `{"commands":["cd sub && cat a.go","cat b.go",{"command":"cat","args":["my file.txt"]},{"command":"ls"},7]}`, "read /w/sub/a.go, read /w/b.go, read /w/my file.txt"},
		{"run_commands", `{"command":"cat a.go"}`, "read /w/a.go"},

		{"view", `{"path":"/w/a.go","view_range":[1,9]}`, "read /w/a.go"}, // Copilot CLI
		{"create", `{"path":"/w/a.go","file_text":"x"}`, "write /w/a.go"},
		{"view", `{"file_path":"a.go","offset":3}`, "read /w/a.go"}, // Crush
		{"multiedit", `{"file_path":"a.go"}`, "write /w/a.go"},
		{"exec", `{"command":"cat a.go","workdir":"/v"}`, "read /v/a.go"}, // OpenClaw
		{"patch", `{"patchText":"*** Begin Patch\n*** Update File: a.go\n@@\n*** End Patch"}`, "write /w/a.go"},

		{"developer__shell", `{"command":"cat a.go"}`, "read /w/a.go"}, // goose
		{"developer__text_editor", `{"command":"view","path":"/w/a.go"}`, "read /w/a.go"},
		{"developer__text_editor", `{"command":"write","path":"/w/a.go","file_text":"x"}`, "write /w/a.go"},
		{"write", `{"path":"a.go","content":"x"}`, "write /w/a.go"},
		{"tree", `{"path":"src"}`, "list /w/src"},

		{"mcp__filesystem__read_file", `{"path":"/w/a.go"}`, "read /w/a.go"},
		{"mcp__github__create_file", `{"path":"a.go"}`, ""},
		{"READ_FILE", `{"path":"a.go"}`, "read /w/a.go"},
	} {
		t.Run(c.tool+" "+c.arguments, func(t *testing.T) {
			got := DefaultTable().FromCall(Call{Tool: c.tool, Arguments: json.RawMessage(c.arguments), Cwd: "/w"})
			assert.Equal(t, c.want, strings.Join(show(got), ", "))
		})
	}
}

func TestSeveralCommandsOfACallBeginInTheSameFolderAndNoneDecides(t *testing.T) {
	call := Call{Tool: "run_commands", Cwd: "/w", Arguments: json.RawMessage(`{"commands":["cd sub && go vet","go test",{"command":"go","args":["build"]}]}`)}
	assert.Equal(t, []Ran{{Words: []string{"go", "vet"}, Dir: "/w/sub"}, {Words: []string{"go", "test"}, Dir: "/w"}, {Words: []string{"go", "build"}, Dir: "/w"}}, DefaultTable().Ran(call))
	call.Arguments = json.RawMessage(`{"commands":["go test"]}`)
	assert.Equal(t, []Ran{{Words: []string{"go", "test"}, Dir: "/w", Decides: true}}, DefaultTable().Ran(call))
}

func TestArgumentsMayBeAStringOfJSON(t *testing.T) {
	got := DefaultTable().FromCall(Call{Tool: "Read", Arguments: json.RawMessage(`"{\"file_path\":\"/a.go\"}"`)})
	assert.Equal(t, []Access{{"/a.go", KindRead}}, got)
}

func TestWrongArgumentsNameNoFile(t *testing.T) {
	for _, arguments := range []string{
		"", "null", "7", "[]", `{"file_path":7}`, `{"file_path":{"path":"a"}}`, `{"file_path":""}`, `{"file_path":"  "}`, `{`, "{\"file_path\":\"a\x00\"}",
		`{"file_path":"https://example.org/a.go"}`, `{"file_path":"` + strings.Repeat("a", MaxPathBytes+1) + `"}`,
		`{"file_path":"a.go","content":"` + strings.Repeat("x", MaxArgumentBytes) + `"}`,
	} {
		got := DefaultTable().FromCall(Call{Tool: "Read", Arguments: json.RawMessage(arguments)})
		assert.Empty(t, got, "%.60s", arguments)
	}
}

func TestCallNamesAtMostMaxAccesses(t *testing.T) {
	var many []string
	for i := range 3 * MaxAccesses {
		many = append(many, strings.Repeat("d/", i%7)+"f"+strings.Repeat("x", i))
	}
	arguments, err := json.Marshal(map[string]any{"paths": many})
	require.NoError(t, err)
	assert.Len(t, DefaultTable().FromCall(Call{Tool: "read_many_files", Arguments: arguments}), MaxAccesses)
}

func TestEachFileAppearsOnceWithItsStrongestKind(t *testing.T) {
	got := DefaultTable().FromCall(Call{Tool: "Bash", Cwd: "/w", Arguments: json.RawMessage(`{"command":"ls a; cat b; cat a; echo x >> ./a"}`)})
	assert.Equal(t, []Access{{"/w/a", KindWrite}, {"/w/b", KindRead}}, got)
}

func TestCustomRuleReplacesTheDefault(t *testing.T) {
	own := Rule{Tools: []string{"Read", "peruse"}, Kind: KindRead, Paths: []string{"document"}}
	table := NewTable(append(DefaultRules(), own))
	call := Call{Arguments: json.RawMessage(`{"document":"/a","file_path":"/b"}`)}
	for _, tool := range []string{"Read", "peruse"} {
		call.Tool = tool
		assert.Equal(t, []Access{{"/a", KindRead}}, table.FromCall(call))
	}
	assert.NotEqual(t, DefaultTable().Fingerprint(), table.Fingerprint())
}

func TestFingerprintDependsOnTheTable(t *testing.T) {
	assert.Equal(t, DefaultTable().Fingerprint(), DefaultTable().Fingerprint())
	assert.Len(t, DefaultTable().Fingerprint(), 32)
	assert.NotEqual(t, NewTable(nil).Fingerprint(), NewTable([]Rule{{Tools: []string{"x"}}}).Fingerprint())
}

func TestDefaultRulesShareNoTool(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range DefaultRules() {
		for _, name := range r.Tools {
			assert.False(t, seen[name], name)
			seen[name] = true
		}
	}
}
