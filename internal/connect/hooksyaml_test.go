package connect

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// hermesConfigs are settings of Hermes Agent.
var hermesConfigs = map[string]string{
	"ordinary":        "# mine\nmodel:\n  default: m # the large one\ndisplay:\n  skin: default\n",
	"no end of line":  "model: m",
	"hooks":           "hooks:\n  # what I run\n  pre_llm_call:\n    - command: /bin/date\n      # how long\n      timeout: 3\n  pre_tool_call:\n    - matcher: terminal\n      command: ~/check.sh\nmodel: m\n",
	"dashes at left":  "hooks:\n  pre_llm_call:\n  - command: /bin/date\n    timeout: 3\n\n  # after each turn\n  on_session_end:\n  - {command: /bin/true}\nmcp_servers:\n  other:\n    command: x\n",
	"empty event":     "hooks:\n  pre_llm_call:\n  on_session_end: # nothing yet\nmodel: m\n",
	"empty hooks":     "hooks: {} # none\nmcp_servers: {}\nmodel: m\n",
	"nothing in them": "hooks: {}\nmcp_servers: {}\n",
	"hooks null":      "model: m\nhooks:",
	"spill":           "hooks:\n  output_spill:\n    max_chars: 20000\n",
	"CRLF":            "model: m\r\nhooks:\r\n  pre_llm_call:\r\n    - command: /bin/date\r\n",
	"text":            "note: |\n  hooks:\n    pre_llm_call:\n      - command: mneme-hook hermes\n",
	"empty":           "",
	"comments only":   "# nothing yet\n",
	"document start":  "---\nmodel: m\n",
	"deep indent":     "hooks:\n    on_session_end:\n        - command: /bin/date\n",
	"servers":         "mcp_servers:\n  other:\n    command: x\n    args: [a]\n",
	"unknown members": "hooks:\n  pre_llm_call:\n    - /bin/date\n    - 7\n",
}

func TestTheConfigOfHermesAgentIsUndoneByteForByte(t *testing.T) {
	for name, text := range hermesConfigs {
		t.Run(name, func(t *testing.T) {
			home, options := machine(t)
			path := filepath.Join(home, ".hermes", "config.yaml")
			put(t, path, text)
			_, err := Connect(t.Context(), options(Hermes))
			require.NoError(t, err)
			connected := get(t, path)
			require.Equal(t, strings.Count(text, "#"), strings.Count(connected, "#"))
			if strings.Contains(text, "\r\n") {
				require.Equal(t, strings.Count(connected, "\n"), strings.Count(connected, "\r\n"))
			}
			s := inspected(t, Hermes, "")
			require.True(t, s.Connected, "%s", connected)
			require.True(t, s.Tools)
			again, err := Connect(t.Context(), options(Hermes))
			require.NoError(t, err)
			require.Equal(t, Unchanged, again[0].Action)
			moved := options(Hermes)
			moved.Flags = []string{"--url", "http://127.0.0.1:9"}
			_, err = Connect(t.Context(), moved)
			require.NoError(t, err)
			require.Contains(t, get(t, path), "http://127.0.0.1:9")
			_, err = Disconnect(t.Context(), options(Hermes))
			require.NoError(t, err)
			require.Equal(t, map[string]string{"config.yaml": text}, files(t, filepath.Join(home, ".hermes")))
		})
	}
}

// hermesFile returns the format of Hermes Agent's config.yaml.
func hermesFile(t require.TestingT) hooksYAMLFile {
	a, err := find(Hermes)
	require.NoError(t, err)
	return hooksYAMLFile{a}
}

func TestHooksOfHermesAgentStandBesideThoseOfTheUser(t *testing.T) {
	f, want := hermesFile(t), Commands{Hook: []string{"/a folder/mneme-hook", "hermes"}, MCP: []string{"/bin/mneme", "mcp"}}
	after, err := f.write([]byte(hermesConfigs["hooks"]), want)
	require.NoError(t, err)
	require.Equal(t, `hooks:
  on_session_start:
    - command: "'/a folder/mneme-hook' hermes"
      timeout: 5
  on_session_end:
    - command: "'/a folder/mneme-hook' hermes"
      timeout: 10
  # what I run
  pre_llm_call:
    - command: /bin/date
      # how long
      timeout: 3
    - command: "'/a folder/mneme-hook' hermes"
      timeout: 3
  pre_tool_call:
    - matcher: terminal
      command: ~/check.sh
model: m
mcp_servers:
  mneme:
    command: "/bin/mneme"
    args: ["mcp"]
`, string(after))
	back, err := f.write(after, Commands{})
	require.NoError(t, err)
	require.Equal(t, hermesConfigs["hooks"], string(back))
}

// Hermes Agent sorts and writes its settings again when one changes.
func TestHooksThatHermesAgentHasWrittenAgainAreReplacedAndRemoved(t *testing.T) {
	f := hermesFile(t)
	again := "hooks:\n  on_session_end:\n  - command: /old/mneme-hook hermes --url http://x\n    timeout: 10\n  pre_llm_call:\n  - command: /bin/date\n  - timeout: 3\n    command: '''/a folder/mneme-hook'' hermes'\n    matcher: null\n  pre_verify: []\nmcp_servers:\n  mneme:\n    args:\n    - mcp\n    command: /old/mneme\n"
	want := Commands{Hook: []string{"/new/mneme-hook", "hermes"}, MCP: []string{"/new/mneme", "mcp"}}
	moved, err := f.write([]byte(again), want)
	require.NoError(t, err)
	got, events, err := f.read(moved)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, 3, events)
	require.NotContains(t, string(moved), "/old/")
	back, err := f.write(moved, Commands{})
	require.NoError(t, err)
	require.Equal(t, "hooks:\n  pre_llm_call:\n  - command: /bin/date\n  pre_verify: []\n", string(back))
}

func TestAConfigOfHermesAgentThatCanNotBeEditedIsLeftAlone(t *testing.T) {
	for text, says := range map[string]string{
		"hooks: {pre_llm_call: [{command: /bin/date}]}\n":   "by hand",
		"hooks:\n  pre_llm_call: [{command: /bin/date}]\n":  "by hand",
		"hooks:\n  pre_llm_call: /bin/date\n":               "by hand",
		"hooks:\n  pre_llm_call: ~\n":                       "by hand",
		"hooks: [a]\n":                                      "not a mapping",
		"hooks: \"\n":                                       "not valid YAML",
		"- a\n":                                             "not a YAML mapping",
		"model: m\n---\nhooks: {}\n":                        "by hand",
		"mcp_servers:\n  mneme:\n    url: http://x\n":       "mcp_servers.mneme is another server",
		"mcp_servers:\n  mneme:\n    command: /bin/other\n": "mcp_servers.mneme is another server",
	} {
		home, options := machine(t)
		put(t, filepath.Join(home, ".hermes", "config.yaml"), text)
		_, err := Connect(t.Context(), options(Hermes))
		require.ErrorContains(t, err, says, text)
		require.Equal(t, map[string]string{"config.yaml": text}, files(t, filepath.Join(home, ".hermes")))
	}
}

func TestWhatBelongsToOthersStaysInTheConfigOfHermesAgent(t *testing.T) {
	f := hermesFile(t)
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.SampledFrom([]string{
			"hooks:\n", "  pre_llm_call:\n", "  on_session_end:\n", "    - command: /bin/date\n", "    - command: /old/mneme-hook hermes\n      timeout: 3\n", "      timeout: 9\n",
			"  - command: /bin/date\n", "  - command: mneme-hook hermes # mine\n", "  # a comment\n", "\n", "model: m\n", "mcp_servers:\n", "  mneme:\n    command: /old/mneme\n    args: [mcp]\n", "  other: {command: x}\n",
			"  pre_llm_call: [{command: mneme-hook hermes}]\n", "note: |\n", "hooks: {}\n", "  on_session_start: []\n", "    -\n      command: mneme-hook hermes\n",
		})).Draw(t, "lines")
		raw := []byte(strings.Join(lines, ""))
		want := Commands{Hook: []string{"/p/mneme-hook", "hermes"}, MCP: []string{"/p/mneme", "mcp"}}
		connected, err := f.write(raw, want)
		if err != nil {
			return // it says so, and changes nothing
		}
		got, events, err := f.read(connected)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, 3, events)
		require.Equal(t, others(t, f, raw), others(t, f, connected))
		unchanged, err := f.write(connected, want)
		require.NoError(t, err)
		require.Equal(t, string(connected), string(unchanged))
		back, err := f.write(connected, Commands{})
		require.NoError(t, err)
		got, _, err = f.read(back)
		require.NoError(t, err)
		require.Equal(t, Commands{}, got)
		require.Equal(t, strings.Count(string(raw), "# a comment"), strings.Count(string(back), "# a comment"))
	})
}

// others returns what a file holds that is not ours.
func others(t require.TestingT, f hooksYAMLFile, raw []byte) map[string]any {
	all, ok := f.foreign(raw)
	require.True(t, ok)
	servers, _ := all["mcp_servers"].(map[string]any)
	delete(servers, "mneme")
	if len(servers) == 0 {
		delete(all, "mcp_servers")
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

func TestHooksThatHermesAgentDoesNotRunYetAreNamed(t *testing.T) {
	home, options := machine(t)
	_, err := Connect(t.Context(), options(Hermes))
	require.NoError(t, err)
	s := inspected(t, Hermes, "")
	require.Equal(t, []string{"on_session_start", "pre_llm_call", "on_session_end"}, s.Untrusted)
	s.Heard(nil)
	require.Contains(t, s.Missing[len(s.Missing)-1].Remedy, "--accept-hooks")

	line, err := CommandLine([]string{options("").Hook, Hermes})
	require.NoError(t, err)
	put(t, filepath.Join(home, ".hermes", allowedFile), `{"approvals": [{"event": "pre_llm_call", "command": `+quoted(line)+`, "approved_at": "2026-11-30T00:55:10Z"}]}`)
	require.Equal(t, []string{"on_session_start", "on_session_end"}, inspected(t, Hermes, "").Untrusted)
	put(t, filepath.Join(home, ".hermes", "config.yaml"), "hooks_auto_accept: true\n"+get(t, filepath.Join(home, ".hermes", "config.yaml")))
	require.Empty(t, inspected(t, Hermes, "").Untrusted)
}
