package connect

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// gooseFiles are settings of goose. Where the key is, the text holds a comment that must stay.
var gooseFiles = map[string]string{
	"ordinary":         "# mine\nGOOSE_MODEL: m # the large one\nextensions:\n  # what I use\n  developer:\n    enabled: true\n    type: builtin\n    name: developer\nGOOSE_MODE: auto\n",
	"deep indent":      "extensions:\n    developer:\n        enabled: true\n# end",
	"no extensions":    "GOOSE_MODEL: m",
	"extensions null":  "extensions:\nGOOSE_MODEL: m\n",
	"extensions last":  "GOOSE_MODEL: m\nextensions:",
	"extensions empty": "extensions: {} # none\nGOOSE_MODEL: m\n",
	"CRLF":             "GOOSE_MODEL: m\r\nextensions:\r\n  a:\r\n    cmd: b\r\n",
	"long text":        "text: |\n  extensions:\n    mneme: no\n\nextensions:\n  a:\n    description: |-\n      one\n\n      two\n",
	"document start":   "---\n",
	"comments only":    "# nothing yet\n",
	"empty":            "",
}

func TestGoosesConfigIsUndoneByteForByte(t *testing.T) {
	want := Commands{MCP: []string{"/my programs/mneme", "mcp", "--url", "http://it's"}}
	for name, text := range gooseFiles {
		f := target{path: filepath.Join(t.TempDir(), "config.yaml"), format: gooseYAML}
		put(t, f.path, text)
		c, err := f.connect(want)
		require.NoError(t, err, name)
		require.Equal(t, Changed, c.Action, name)
		got, _, err := f.read(c.after)
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
		require.Equal(t, strings.Count(text, "#"), strings.Count(string(c.after), "#"), name)
		if name == "CRLF" {
			require.Equal(t, strings.Count(string(c.after), "\n"), strings.Count(string(c.after), "\r\n"))
		}

		put(t, f.path, string(c.after))
		put(t, f.path+backupSuffix, text)
		again, err := f.connect(want)
		require.NoError(t, err, name)
		require.Equal(t, Unchanged, again.Action, name)
		undone, err := f.disconnect()
		require.NoError(t, err, name)
		require.Equal(t, Restored, undone.Action, name)
		require.Equal(t, text, string(undone.after), name)
	}
}

func TestAnExtensionIsAddedBesideTheOthersAndReplacedInPlace(t *testing.T) {
	list := []string{"# mine", "extensions:", "  # what I use", "  developer:", "    enabled: true", "", "  other: {cmd: x}", ""}
	raw := []byte(strings.Join(list, "\n"))
	first, err := gooseYAML.write(raw, Commands{MCP: []string{"/bin/mneme", "mcp"}})
	require.NoError(t, err)
	ours := strings.Split(strings.TrimSuffix(gooseYAML.entry("  ", "/bin/mneme", []string{"mcp"}), "\n"), "\n")
	require.Equal(t, strings.Join(slices.Concat(list[:2], ours, list[2:]), "\n"), string(first))
	second, err := gooseYAML.write(first, Commands{MCP: []string{"/bin/mneme", "mcp", "--tenant", "a"}})
	require.NoError(t, err)
	require.Equal(t, strings.Replace(string(first), `["mcp"]`, `["mcp","--tenant","a"]`, 1), string(second))
	back, err := gooseYAML.write(second, Commands{})
	require.NoError(t, err)
	require.Equal(t, string(raw), string(back))
}

func TestCommentsInAnExtensionStayWhenItsCommandChanges(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"cmd", "args"}, {"args", "cmd"}} {
		members := map[string]string{
			"cmd":  "    cmd: /bin/mneme # of the package\n",
			"args": "    args:\n      # its tools\n      - mcp # always\n      # no flags\n\n      # not yet\n",
		}
		raw := "extensions:\n  mneme:\n    type: stdio\n" + members[order[0]] + members[order[1]] + "    # how long\n    timeout: 60\n  # another one\n  other: {cmd: x}\n"
		want := Commands{MCP: []string{"/usr/bin/mneme", "mcp", "--tenant", "a"}}
		after, err := gooseYAML.write([]byte(raw), want)
		require.NoError(t, err)
		got, _, err := gooseYAML.read(after)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, strings.Count(raw, "#"), strings.Count(string(after), "#"), "%s", after)
		again, err := gooseYAML.write(after, Commands{MCP: []string{"/bin/mneme", "mcp"}})
		require.NoError(t, err)
		require.Equal(t, strings.Count(raw, "#"), strings.Count(string(again), "#"), "%s", again)
	}
}

// goose rewrites its settings when one changes: sorted, without comments, and with more members.
func TestAnExtensionThatGooseWroteAnewIsTakenOut(t *testing.T) {
	home, options := machine(t)
	path := filepath.Join(home, ".config", "goose", "config.yaml")
	put(t, path, gooseFiles["ordinary"])
	_, err := Connect(t.Context(), options(Goose))
	require.NoError(t, err)
	put(t, path, `GOOSE_MODEL: m
extensions:
  developer:
    enabled: true
  mneme:
    enabled: true
    type: stdio
    name: mneme
    description: ''
    cmd: `+options("").Mneme+`
    args:
    - mcp
    envs: {}
    env_keys: []
    timeout: 60
    bundled: null
    available_tools: []
  other:
    enabled: false
`)
	require.True(t, inspected(t, Goose, "").Connected)
	changes, err := Disconnect(t.Context(), options(Goose))
	require.NoError(t, err)
	require.Equal(t, Changed, changes[0].Action)
	require.Equal(t, "GOOSE_MODEL: m\nextensions:\n  developer:\n    enabled: true\n  other:\n    enabled: false\n", get(t, path))
}

func TestTakingOutAnExtensionIsTheInverseOfAddingIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		indent := strings.Repeat(" ", rapid.IntRange(1, 4).Draw(t, "indent"))
		var lines []string
		others := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-l]{1,4}`), 1, 3, rapid.ID[string]).Draw(t, "extensions")
		lines = append(lines, rapid.SampledFrom([]string{"", "# comment", "z: 1", "z: [1, 2]"}).Draw(t, "before"), "extensions:")
		for _, name := range others {
			lines = append(lines, indent+rapid.SampledFrom([]string{"", "# comment"}).Draw(t, "comment"), indent+name+":", indent+indent+"cmd: "+quoted(rapid.StringMatching(`[ -~äé]*`).Draw(t, "command")))
		}
		lines = append(lines, rapid.SampledFrom([]string{"", "# comment", "y: 1"}).Draw(t, "after"), "")
		raw := []byte(strings.Join(lines, rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line end")))
		want := Commands{MCP: []string{"/bin/mneme", "mcp", rapid.StringMatching(`[ -~äé]*`).Draw(t, "flag")}}
		connected, err := gooseYAML.write(raw, want)
		require.NoError(t, err)
		got, _, err := gooseYAML.read(connected)
		require.NoError(t, err)
		require.Equal(t, want, got)
		back, err := gooseYAML.write(connected, Commands{})
		require.NoError(t, err)
		require.Equal(t, string(raw), string(back))
	})
}

func FuzzYAML(f *testing.F) {
	for _, text := range gooseFiles {
		f.Add([]byte(text))
	}
	f.Add([]byte("extensions: &a\n  mneme: *a\n"))
	f.Add([]byte("\r\r\r\r\r\r\r "))
	f.Add([]byte("extensions:\r  mneme:\r    cmd: /bin/mneme\r    args: [mcp]\ra: 1\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		want := Commands{MCP: []string{"/bin/mneme", "mcp"}}
		connected, err := gooseYAML.write(raw, want)
		if err != nil {
			return
		}
		got, _, err := gooseYAML.read(connected)
		require.NoError(t, err)
		require.Equal(t, want, got)
		again, err := gooseYAML.write(connected, want)
		require.NoError(t, err)
		require.Equal(t, string(connected), string(again))
		if back, err := gooseYAML.write(connected, Commands{}); err == nil {
			left, _, err := gooseYAML.read(back)
			require.NoError(t, err)
			require.Nil(t, left.MCP)
		}
	})
}
