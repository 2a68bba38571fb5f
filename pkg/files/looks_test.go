package files

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestACallLooksOnlyIfItCertainlyChangesNothing(t *testing.T) {
	t.Parallel()
	table := DefaultTable()
	shell := func(command string) Call {
		raw, _ := json.Marshal(map[string]string{"command": command})
		return Call{Tool: "Bash", Arguments: raw}
	}
	for _, c := range []Call{
		{Tool: "Read", Arguments: json.RawMessage(`{"file_path":"/a"}`)},
		{Tool: "Grep", Arguments: json.RawMessage(`{"pattern":"x"}`)},
		{Tool: "str_replace_editor", Arguments: json.RawMessage(`{"command":"view","path":"/a"}`)},
		shell("cat a.go | head -20"), shell("cd /r && git status 2>&1"), shell("git -P log --oneline"),
		shell("grep -rn x . 2>/dev/null || echo none"), shell("A=1; ls $A"), shell("find . -name '*.go'"), shell("sed -n 1,5p a"),
		shell("for f in *; do wc -l $f; done"),
		{Tool: "run_commands", Arguments: json.RawMessage(`{"commands":["ls","cat a"]}`)}, {Tool: "search_codebase", Arguments: json.RawMessage(`{"queries":["x"]}`)},
	} {
		assert.Truef(t, table.Looks(c), "%s %s", c.Tool, c.Arguments)
	}
	for _, c := range []Call{
		{Tool: "Edit", Arguments: json.RawMessage(`{"file_path":"/a"}`)},
		{Tool: "str_replace_editor", Arguments: json.RawMessage(`{"command":"create","path":"/a"}`)},
		{Tool: "apply_patch", Arguments: json.RawMessage(`"x"`)},
		{Tool: "mcp__else__read", Arguments: json.RawMessage(`{}`)},
		{Tool: "Bash"}, {Tool: "run_commands", Arguments: json.RawMessage(`{"commands":["ls","rm a"]}`)}, {Tool: "run_commands", Arguments: json.RawMessage(`{"commands":["ls",7]}`)},
		shell(""), shell("go test ./..."), shell("cat a > b"), shell("git commit -m x"), shell("sed -i s/a/b/ f"),
		shell("find . -delete"), shell("find . -exec rm {} +"), shell("$X a"), shell("ls $(rm a)"), shell("f() { ls; }; f"),
		shell("cat <<E >f\nx\nE"), shell("ls &>log"), shell("git -c a=b push"), shell("if"),
	} {
		assert.Falsef(t, table.Looks(c), "%s %s", c.Tool, c.Arguments)
	}
}
