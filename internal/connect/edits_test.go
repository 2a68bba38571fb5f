package connect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func formatOf(t *testing.T, name, file string) format {
	t.Helper()
	a, err := find(name)
	require.NoError(t, err)
	for _, f := range a.files {
		if f.path == file {
			return f.format(a)
		}
	}
	require.Fail(t, "no such file")
	return nil
}

func TestCommentsAroundAndBetweenOurHooksStay(t *testing.T) {
	t.Parallel()
	const ours = `{"hooks": [{"type": "command", "command": "/old/mneme-hook", "args": ["claude-code"]}]}`
	f := formatOf(t, ClaudeCode, "settings.json")
	for text, want := range map[string]string{
		"{\n  \"hooks\": {\n    \"Stop\": [" + ours + "]\n  } // mine\n}\n":                              "{ // mine\n}\n",
		"{\n  \"hooks\": {\n    // mine\n    \"Stop\": [" + ours + "]\n  }\n}\n":                         "{\n  \"hooks\": {\n    // mine\n  }\n}\n",
		"{\n  \"hooks\": {\n    \"Stop\": [" + ours + "] // mine\n  }\n}\n":                              "{\n  \"hooks\": { // mine\n  }\n}\n",
		"{\n  \"hooks\": {\n    \"Stop\": [\n      // mine\n      " + ours + "\n    ]\n  }\n}\n":         "{\n  \"hooks\": {\n    \"Stop\": [\n      // mine\n    ]\n  }\n}\n",
		"{\"hooks\": {\"Stop\": [" + ours + " /* mine */, {\"hooks\": []}]}}":                            "{\"hooks\": {\"Stop\": [ /* mine */ {\"hooks\": []}]}}",
		"{\"hooks\": {\"Stop\": [\n  // mine\n  " + ours + " /* and\nmine */]}}":                         "{\"hooks\": {\"Stop\": [\n  // mine\n /* and\nmine */]}}",
		"{\"hooks\": {\"Stop\": [" + strings.Replace(ours, "}]}", "} /* mine */]}", 1) + "]}, \"a\": 1}": "",
		"{\"hooks\": {\"Stop\": [" + strings.Replace(ours, "[{", "[/* mine */ {", 1) + "]}, \"a\": 1}":   "",
		"{\"hooks\": {\"Stop\": [" + strings.Replace(ours, "{\"h", "{// mine\n\"h", 1) + "]}, \"a\": 1}": "",
		"{\"hooks\": {\"Stop\" /* mine */: /* mine */ [" + ours + "]}, \"a\": 1}":                        "",
		"{\"hooks\": {\"Stop\": [" + ours + "]} // mine\n, \"a\": 1}":                                    "",
		"{\"hooks\": {\"Stop\": [// mine\n" + ours + " /* and\nmine */, {\"hooks\": []}]}}":              "",
	} {
		got, err := f.write([]byte(text), Commands{})
		require.NoError(t, err, text)
		if want != "" {
			require.Equal(t, want, string(got))
		}
		require.Equal(t, strings.Count(text, "mine"), strings.Count(string(got), "mine"), "%s\n%s", text, got)
		require.NotContains(t, string(got), hookProgram)
		_, err = f.write(got, Commands{Hook: []string{"/new/mneme-hook", ClaudeCode}})
		require.NoError(t, err)
	}
}

func TestWhatAUserSetInOurEntriesSurvivesANewCommand(t *testing.T) {
	t.Parallel()
	mcp := []string{"/new/mneme", "mcp", "--url", "u"}
	for _, c := range []struct{ agent, file, before, after string }{
		{
			Cline, "settings/cline_mcp_settings.json",
			`{"mcpServers": {"mneme": {"disabled": true, "command": "/old/mneme", "args": ["mcp"], "autoApprove": ["search"]}}}`,
			`{"mcpServers": {"mneme": {"disabled": true, "command": "/new/mneme", "args": ["mcp","--url","u"], "autoApprove": ["search"]}}}`,
		},
		{
			ClaudeCode, "settings.json",
			`{"hooks": {"Stop": [{"hooks": [{"command": "/old/mneme-hook claude-code", "timeout": 60 /* slow disk */}]}]}}`,
			`{"hooks": {"Stop": [{"hooks": [{"command": "/new/mneme-hook", "timeout": 60, /* slow disk */ "args": ["claude-code","--url","u"]}]}]`,
		},
		{
			Codex, "hooks.json",
			`{"hooks": {"Stop": [{"hooks": [{"command": "/old/mneme-hook", "args": ["codex"], "timeout": 60}]}]}}`,
			`{"hooks": {"Stop": [{"hooks": [{"command": "/new/mneme-hook codex --url u", "timeout": 60}]}]`,
		},
		{
			Goose, "config.yaml",
			"extensions:\n  mneme:\n    enabled: false # for now\n    cmd: /old/mneme\n    # of the server\n    args:\n    - mcp\n    # about the time\n    timeout: 300\n    # about the other\n  other:\n    cmd: x\n",
			"extensions:\n  mneme:\n    enabled: false # for now\n    cmd: \"/new/mneme\"\n    args: [\"mcp\",\"--url\",\"u\"]\n    # of the server\n    # about the time\n    timeout: 300\n    # about the other\n  other:\n    cmd: x\n",
		},
		{
			Goose, "config.yaml",
			"extensions:\r\n  mneme:\r\n    cmd: /old/mneme # mine\r\n    args: # its\r\n    - mcp # tools\r\n    timeout: 300\r\n",
			"extensions:\r\n  mneme:\r\n    cmd: \"/new/mneme\" # mine\r\n    args: [\"mcp\",\"--url\",\"u\"] # its # tools\r\n    timeout: 300\r\n",
		},
	} {
		f := formatOf(t, c.agent, c.file)
		want := Commands{MCP: mcp}
		if j, ok := f.(jsonFile); ok && j.hooks {
			want = Commands{Hook: []string{"/new/mneme-hook", c.agent, "--url", "u"}}
		}
		got, err := f.write([]byte(c.before), want)
		require.NoError(t, err, c.before)
		require.Truef(t, strings.HasPrefix(string(got), c.after), "%s\n%s", c.after, got)
	}
}

func TestACommentBehindTheExtensionsStays(t *testing.T) {
	t.Parallel()
	f := formatOf(t, Goose, "config.yaml")
	got, err := f.write([]byte("extensions: # mine\n  mneme:\n    cmd: /old/mneme\n    args: [mcp]\n    # mine\n"), Commands{})
	require.NoError(t, err)
	require.Equal(t, "extensions: # mine\n    # mine\n", string(got))
	_, err = f.write([]byte("extensions:\n  mneme: {cmd: /old/mneme, args: [mcp], enabled: false}\n"), Commands{MCP: []string{"/new/mneme", "mcp"}})
	require.ErrorContains(t, err, "by hand")
}

func TestNoFileIsWrittenIfOneIsReadOnly(t *testing.T) {
	home, options := machine(t)
	folder := filepath.Join(home, ".codex")
	put(t, filepath.Join(folder, "config.toml"), "model = \"x\"\n")
	require.NoError(t, os.Chmod(filepath.Join(folder, "config.toml"), 0o400))
	before := files(t, folder)
	_, err := Connect(t.Context(), options(Codex))
	require.ErrorContains(t, err, "config.toml: it is read-only")
	require.Equal(t, before, files(t, folder))
}

func TestAChangeThatAnEarlierTryHasMadeIsToldToo(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	first, second := filepath.Join(folder, "a.json"), filepath.Join(folder, "b.json")
	put(t, second, "{}")
	made := map[string]Change{}
	list := []Change{{Path: first, Action: Created, after: []byte("{}")}, {Path: second, Action: Changed, after: []byte("{}")}} // it was not there when it was read
	require.ErrorIs(t, makeAll(list, made), errMoved)
	require.Equal(t, Created, made[first].Action)
	require.NotContains(t, made, second)
}

func TestConnectingAgainSavesTheFileAsItIsThen(t *testing.T) {
	home, options := machine(t)
	path := filepath.Join(home, ".claude", "settings.json")
	put(t, path, "{}\n")
	_, err := Connect(t.Context(), options(ClaudeCode))
	require.NoError(t, err)
	put(t, path, strings.Replace(get(t, path), "{", "{\n  \"model\": \"opus\",", 1))
	_, err = Disconnect(t.Context(), options(ClaudeCode)) // it does not bring the saved one back
	require.NoError(t, err)
	const later = "{\n  \"hooks\": {},\n  \"model\": \"haiku\"\n}\n"
	put(t, path, later)
	changes, err := Connect(t.Context(), options(ClaudeCode))
	require.NoError(t, err)
	require.Equal(t, later, get(t, changes[0].Backup))
	_, err = Disconnect(t.Context(), options(ClaudeCode))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"settings.json": later}, files(t, filepath.Dir(path)))
}

func TestAHookInTheHomeDirectoryIsFound(t *testing.T) {
	home, options := machine(t)
	for _, line := range []string{"~/'my programs'/mneme-hook codex", "\"$HOME/my programs/mneme-hook\" codex", "\"${HOME}\"/my\\ programs/mneme-hook codex"} {
		require.Equal(t, []string{options("").Hook, Codex}, wordsOf(line), line)
	}
	put(t, filepath.Join(home, ".codex", "hooks.json"), `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "~/my\\ programs/mneme-hook codex"}]}]}}`)
	for _, s := range Inspect("") {
		require.Equal(t, s.Agent == Codex, s.Asked())
		require.False(t, s.Broken(), s.Missing)
	}
}

func TestAnyCommandLineOfAUserIsRead(t *testing.T) {
	for line, want := range map[string][]string{
		`diff <(git diff) x`:                     nil,
		`echo $(mneme-hook codex)`:               nil,
		"echo `id`":                              nil,
		`mneme-hook codex && say done`:           nil,
		`echo {1..1000000000}`:                   {"echo", "{1..1000000000}"},
		`echo $((1/0))`:                          nil,
		`'it'\''s' "a $NONE\" \b" c\ d $X/mneme`: {"it's", `a " \b`, "c d", "/mneme"},
		"a\\\nb ''":                              {"ab", ""},
	} {
		require.Equal(t, want, wordsOf(line), line)
	}
	rapid.Check(t, func(t *rapid.T) {
		command := rapid.SliceOfN(rapid.StringMatching(`[ -~é]{0,12}`), 1, 4).Draw(t, "command")
		line, err := CommandLine(command)
		require.NoError(t, err)
		require.Equal(t, command, wordsOf(line))
	})
}

func FuzzWordsOf(f *testing.F) {
	f.Add("a <(b) $(c) ${d:=e} $((1/0)) ~ {a,b} * ${e?f} ${g/h/i} $'x' \"$(y)\"")
	f.Fuzz(func(_ *testing.T, line string) { wordsOf(line) })
}

func TestTablesWithinOursAreNotLeftWithoutIt(t *testing.T) {
	t.Parallel()
	connected, err := tomlFile{}.write(nil, Commands{MCP: []string{"/p/mneme", "mcp"}})
	require.NoError(t, err)
	connected = append(connected, "\n[mcp_servers.mneme.env]\nA = \"b\"\n"...)
	_, err = tomlFile{}.write(connected, Commands{})
	require.ErrorContains(t, err, "[mcp_servers.mneme.env]: remove all of them by hand")
	again, err := tomlFile{}.write(connected, Commands{MCP: []string{"/new/mneme", "mcp"}})
	require.NoError(t, err)
	require.Contains(t, string(again), "A = \"b\"")
}

// Wherever comments and other hooks stand around ours, none of them is lost, and the file stays valid.
func TestCommentsAnywhereSurvive(t *testing.T) {
	t.Parallel()
	f := formatOf(t, ClaudeCode, "settings.json")
	rapid.Check(t, func(t *rapid.T) {
		extra := func() string {
			return rapid.SampledFrom([]string{"", "", " ", "\n", "/*mine*/", " // mine\n", "\n// mine\n", " /* a\n mine */ "}).Draw(t, "extra")
		}
		list := func(n int, one func(i int) string) string {
			text := extra()
			for i := range n {
				if text += one(i) + extra(); i < n-1 || rapid.Bool().Draw(t, "trailing comma") {
					text += "," + extra()
				}
			}
			return text
		}
		few := rapid.IntRange(0, 2)
		group := func(int) string {
			return "{" + extra() + `"hooks"` + extra() + ":" + extra() + "[" + list(few.Draw(t, "hooks"), func(int) string {
				return rapid.SampledFrom([]string{`{"command": "/old/mneme-hook claude-code"}`, `{"command": "say"}`}).Draw(t, "hook")
			}) + "]" + extra() + "}"
		}
		events := list(few.Draw(t, "events"), func(i int) string {
			return []string{`"Stop"`, `"Other"`}[i] + extra() + ":" + extra() + "[" + list(few.Draw(t, "groups"), group) + "]"
		})
		raw := extra() + "{" + extra() + `"hooks"` + extra() + ":" + extra() + "{" + events + "}" + extra() + rapid.SampledFrom([]string{"", ",", `, "z": 1`}).Draw(t, "rest") + extra() + "}" + extra()
		for _, want := range []Commands{{}, {Hook: []string{"/new/mneme-hook", ClaudeCode}}} {
			got, err := f.write([]byte(raw), want)
			require.NoError(t, err, raw)
			for _, kept := range []string{"mine", `"say"`} {
				require.Equal(t, strings.Count(raw, kept), strings.Count(string(got), kept), "%s\n%s", raw, got)
			}
			require.NotContains(t, string(got), "/old/")
		}
	})
}
