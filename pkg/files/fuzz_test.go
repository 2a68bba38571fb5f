package files

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"

	"mneme.dev/mneme/events"
)

// sound checks what holds for all accesses that the package returns.
func sound(t *testing.T, accesses []Access) {
	t.Helper()
	seen := map[string]bool{}
	for _, a := range accesses {
		if a.Path == "" || len(a.Path) > MaxPathBytes || strength[a.Kind] == 0 || seen[a.Path] {
			t.Fatalf("%q in %v", a, accesses)
		}
		seen[a.Path] = true
	}
	if len(accesses) > MaxAccesses {
		t.Fatalf("%d accesses", len(accesses))
	}
}

func FuzzFromCall(f *testing.F) {
	for _, script := range []string{
		"cat a > b", "cd x && sed -i '' s/a/b/ c", "apply_patch <<E\n*** Begin Patch\n*** Add File: a\n*** End Patch\nE", "bash -c 'cat \"a\"'", "((", "cp a b c/", "cat <<",
		"for i in a; do cat a; done < b", "cat {a", "cat \\", "grep -nA", "sed -i", "timeout", "$((", "`cat a`",
	} {
		f.Add("Bash", script, false)
		f.Add("open", script, false)
	}
	f.Add("Read", `{"file_path":"a"}`, true)
	f.Add("read_file", `{"files":[{"path":"a"},"b",3]}`, true)
	f.Add("shell", `{"command":["bash","-lc","ls"],"workdir":"x"}`, true)
	f.Add("run_commands", `{"commands":["cd x && cat a",{"command":"cat","args":["b"]},3,{}]}`, true)
	f.Add("apply_patch", `"*** Begin Patch\n*** Update File: a"`, true)
	table := DefaultTable()
	f.Fuzz(func(t *testing.T, tool, text string, raw bool) {
		arguments := json.RawMessage(text)
		if !raw {
			arguments, _ = json.Marshal(map[string]string{"command": text})
		}
		for _, cwd := range []string{"", "/w", `C:\w`} {
			call := Call{Tool: tool, Arguments: arguments, Cwd: cwd}
			got := table.FromCall(call)
			sound(t, got)
			assert.Equal(t, got, table.FromCall(call))
			e := events.Recorded{Payload: &events.ToolCalled{ToolName: tool, Arguments: arguments}}
			did := table.Did(&e, cwd)
			assert.Equal(t, got, did.Accesses)
			assert.Equal(t, table.Ran(call), did.Ran)
			kept, worth := table.Keep(call)
			assert.Equal(t, worth, did.Kept != nil)
			if worth {
				assert.Equal(t, kept, *did.Kept)
			}
		}
	})
}

func FuzzFromResult(f *testing.F) {
	for _, tool := range []string{"Grep", "Glob", "list_directory", "str_replace_editor", "edit", "find_file", "search_files"} {
		for _, result := range []string{
			"a.go:1: x", "Found 1 file\na", "[{\"file\":\"a\"}]", "{\"files\":[\"a\",{\"path\":\"b\"}]}", "[FILE] a", "[File: /a (1 lines total)]", "]", "[[[[[[[[",
			"Here's the files and directories up to 2 levels deep in /a:\n/a/b", "# a.go\n1 | x", "a.go\n│", "\xff:1:", "{\"path\":{}}", "[\"a\"]}", "File: ",
		} {
			f.Add(tool, `{"path":"src","command":"view"}`, result)
		}
	}
	table := DefaultTable()
	f.Fuzz(func(t *testing.T, tool, arguments, result string) {
		call := Call{Tool: tool, Arguments: json.RawMessage(arguments), Cwd: "/w"}
		got := table.FromResult(call, result, nil)
		sound(t, got)
		assert.Equal(t, got, table.FromResult(call, result, nil))
		if kept, worth := table.Keep(call); worth {
			assert.Equal(t, got, table.FromResult(kept, result, nil))
		} else {
			assert.Empty(t, got)
		}
	})
}
