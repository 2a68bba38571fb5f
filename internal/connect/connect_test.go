package connect

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// machine is a home directory with the programs of mneme. Tests that use it can't run in parallel, because where agents
// keep their settings is in the environment.
func machine(t *testing.T) (home string, options func(agent string) Options) {
	t.Helper()
	home = t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	for _, a := range agents {
		for _, f := range a.files {
			if moved := cmp.Or(f.moved, a.moved); moved != "" {
				t.Setenv(moved, "")
			}
			if f.named != "" {
				t.Setenv(f.named, "")
			}
		}
	}
	bin := filepath.Join(home, "my programs")
	require.NoError(t, os.Mkdir(bin, 0o700))
	hook := filepath.Join(bin, hookProgram)
	for _, program := range []string{hook, filepath.Join(bin, "mneme")} {
		require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700))
	}
	return home, func(agent string) Options {
		return Options{Agent: agent, Mneme: filepath.Join(bin, "mneme"), Hook: hook}
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o640))
	require.NoError(t, os.Chmod(path, 0o640)) // whatever the umask is
}

func get(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(raw)
}

// files returns the path and the text of each file in a folder.
func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found[path] = get(t, filepath.Join(folder, path))
		}
		return err
	}))
	return found
}

var settingsFiles = map[string]string{
	"ordinary":        "{\n  \"model\": \"opus\",\n  \"permissions\": {\"allow\": [\"Bash(ls:*)\"]}\n}\n",
	"tabs":            "{\n\t\"model\": \"opus\"\n}",
	"one line":        `{"model":"opus","n":1.50}`,
	"empty":           "",
	"blank":           "\n\n",
	"empty object":    "{}",
	"CRLF":            "{\r\n  \"model\": \"opus\"\r\n}\r\n",
	"comments":        "// mine\n{\n  \"model\": \"opus\", // the large one\n  /* and */ \"a\": [1, 2,], // last\n  // nothing follows\n}\n// end\n",
	"no comma":        "{\n  \"a\": 1 // one\n}\n",
	"byte order mark": "\uFEFF{\n  \"a\": \"\\u00e4/\\/\"\n}\n",
	"other hooks":     "{\n  \"hooks\": {\n    \"Stop\": [{\"matcher\": \"\", \"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}],\n    \"PreToolUse\": []\n  },\n  \"z\": null\n}\n",
	"empty hooks":     "{\n  \"hooks\": {},\n  \"z\": null\n}\n",
	"empty event":     "{\n  \"hooks\": {\"SessionStart\": []}\n}\n",
	"servers":         "{\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\", \"args\": []}\n  }\n}\n",
}

// jsonFiles are the files of JSON of all agents.
func jsonFiles() (list []jsonFile) {
	for i := range agents {
		for _, f := range agents[i].files {
			if j, ok := f.format(&agents[i]).(jsonFile); ok {
				list = append(list, j)
			}
		}
	}
	return list
}

// wanted returns our commands that belong in a file, and the number of events at which the agent then runs
// the hook.
func (f jsonFile) wanted(flags ...string) (want Commands, events int) {
	if f.servers {
		want.MCP = []string{"/my programs/mneme", "mcp"}
	}
	if f.hooks {
		want.Hook, events = append([]string{"/my programs/mneme-hook", f.name}, flags...), len(f.events)
	}
	return want, events
}

// inspected returns the state of an agent.
func inspected(t *testing.T, name, projectDir string) State {
	t.Helper()
	list := Inspect(projectDir)
	i := slices.IndexFunc(list, func(s State) bool { return s.Agent == name })
	require.NotEqual(t, -1, i, name)
	return list[i]
}

func TestConnectingIsUndoneByteForByte(t *testing.T) {
	for name, text := range settingsFiles {
		for _, j := range jsonFiles() {
			name := j.name + " " + name
			f := target{path: filepath.Join(t.TempDir(), "settings.json"), format: j}
			put(t, f.path, text)
			want, events := j.wanted()
			c, err := f.connect(want)
			require.NoError(t, err, name)
			require.Equal(t, Changed, c.Action, name)
			got, n, err := f.read(c.after)
			require.NoError(t, err, name)
			require.Equal(t, events, n, name)
			require.Equal(t, want, got, name)
			require.Equal(t, strings.Contains(text, "say done"), strings.Contains(string(c.after), "say done"), name)
			if strings.Contains(text, "\r\n") {
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
}

func TestTheFileIsSavedOnceAndComesBackAsItWas(t *testing.T) {
	home, options := machine(t)
	folder := filepath.Join(home, ".claude")
	path := filepath.Join(folder, "settings.json")
	put(t, path, settingsFiles["comments"])
	before := files(t, folder)
	changes, err := Connect(t.Context(), options(ClaudeCode))
	require.NoError(t, err)
	require.Equal(t, path+backupSuffix, changes[0].Backup)
	require.Equal(t, settingsFiles["comments"], get(t, path+backupSuffix))
	connected := files(t, folder)
	_, err = Connect(t.Context(), options(ClaudeCode))
	require.NoError(t, err)
	require.Equal(t, connected, files(t, folder), "the second time, no byte changes")
	_, err = Disconnect(t.Context(), options(ClaudeCode))
	require.NoError(t, err)
	require.Equal(t, before, files(t, folder))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode())
}

func TestFilesThatConnectMadeAreRemoved(t *testing.T) {
	for _, agent := range agents {
		home, options := machine(t)
		changes, err := Connect(t.Context(), options(agent.name))
		require.NoError(t, err)
		for _, c := range changes {
			require.Equal(t, Created, c.Action)
		}
		_, err = Disconnect(t.Context(), options(agent.name))
		require.NoError(t, err)
		require.Empty(t, files(t, filepath.Join(home, agent.folder)))
		_, err = Disconnect(t.Context(), options(agent.name))
		require.NoError(t, err)
	}
}

// A later version can run the hook at more events. Earlier ones saved their own file when they were followed by one.
func TestAFileThatAnEarlierVersionMadeIsRemoved(t *testing.T) {
	for _, agent := range agents {
		if len(agent.events) < 2 {
			continue
		}
		for _, saved := range []bool{false, true} {
			home, options := machine(t)
			o := options(agent.name)
			earlier := agent
			earlier.events = append(agent.events[:1:1], agent.events[2:]...)
			list, err := earlier.targets("")
			require.NoError(t, err)
			made, err := list[0].write(nil, Commands{Hook: []string{o.Hook, agent.name}, MCP: []string{o.Mneme, "mcp"}})
			require.NoError(t, err)
			put(t, list[0].path, string(made))
			if saved {
				put(t, list[0].path+backupSuffix, string(made))
			}
			changes, err := Connect(t.Context(), o)
			require.NoError(t, err)
			require.Empty(t, changes[0].Backup, "%s: nothing of it is the user's", agent.name)
			_, err = Disconnect(t.Context(), o)
			require.NoError(t, err)
			require.NotContains(t, files(t, filepath.Dir(list[0].path)), filepath.Base(list[0].path), "%s in %s", agent.name, home)
		}
	}
}

func TestWhatWasChangedAfterwardsStays(t *testing.T) {
	home, options := machine(t)
	path := filepath.Join(home, ".claude", "settings.json")
	put(t, path, "{\n  \"model\": \"opus\" // large\n}\n")
	_, err := Connect(t.Context(), options(ClaudeCode))
	require.NoError(t, err)
	put(t, path, strings.Replace(get(t, path), `"opus"`, `"haiku"`, 1))
	changes, err := Disconnect(t.Context(), options(ClaudeCode))
	require.NoError(t, err)
	require.Equal(t, Changed, changes[0].Action)
	require.Equal(t, "{\n  \"model\": \"haiku\" // large\n}\n", get(t, path))
}

func TestAnotherServerReplacesTheOldOneInPlace(t *testing.T) {
	for _, agent := range agents {
		home, options := machine(t)
		folder := filepath.Join(home, agent.folder)
		list, err := agent.targets("")
		require.NoError(t, err)
		if _, ok := list[0].format.(jsonFile); ok {
			put(t, list[0].path, settingsFiles["other hooks"])
		}
		require.NoError(t, os.MkdirAll(folder, 0o700))
		before := files(t, folder)
		_, err = Connect(t.Context(), options(agent.name))
		require.NoError(t, err)
		o := options(agent.name)
		o.Flags = []string{"--url", "https://mneme.example.com/it's"}
		_, err = Connect(t.Context(), o)
		require.NoError(t, err)
		c, n, err := list[0].read([]byte(get(t, list[0].path)))
		require.NoError(t, err)
		require.Len(t, agent.events, n)
		if n > 0 {
			require.Equal(t, append([]string{o.Hook, agent.name}, o.Flags...), c.Hook)
		} else {
			require.Equal(t, append([]string{o.Mneme, "mcp"}, o.Flags...), c.MCP)
		}
		_, err = Disconnect(t.Context(), options(agent.name))
		require.NoError(t, err)
		require.Equal(t, before, files(t, folder))
	}
}

func TestABrokenSettingsFileIsLeftAsItIs(t *testing.T) {
	for _, c := range []struct{ agent, file, text, says string }{
		{ClaudeCode, "settings.json", "{\n  \"a\": \n", "not valid JSON"},
		{ClaudeCode, "settings.json", "[]", "not a JSON object"},
		{ClaudeCode, "settings.json", `{"hooks": []}`, "hooks is not an object"},
		{ClaudeCode, "settings.json", `{"hooks": {"Stop": {}}}`, "hooks.Stop is not a list"},
		{ClaudeCode, "settings.json", `{"hooks": {}, "hooks": {}}`, "hooks is there twice"},
		{ClaudeCode, "settings.json", `{"hooks": {"Stop": [], "Stop": []}}`, "hooks.Stop is there twice"},
		{GeminiCLI, "settings.json", `{"mcpServers": {"mneme": {"command": "other"}}}`, "another server"},
		{Cursor, "hooks.json", `{"hooks": {"sessionStart": {}}}`, "hooks.sessionStart is not a list"},
		{Cursor, "mcp.json", `{"mcpServers": {"mneme": {"url": "http://x"}}}`, "another server"},
		{OpenHands, "hooks.json", `{"SessionStart": {}}`, "SessionStart is not a list"},
		{OpenHands, "mcp.json", `{"mcpServers": []}`, "mcpServers is not an object"},
		{Cline, "settings/cline_mcp_settings.json", "{,}", "not valid JSON"},
		{CopilotCLI, "mcp-config.json", "nothing", "not valid JSON"},
		{Goose, "config.yaml", "a: [", "not valid YAML"},
		{Goose, "config.yaml", "- a\n", "not a YAML mapping"},
		{Goose, "config.yaml", "extensions: [a]\n", "extensions is not a mapping"},
		{Goose, "config.yaml", "extensions:\n  mneme:\n    cmd: other\n", "another server"},
		{Goose, "config.yaml", "extensions: {a: {cmd: b}}\n", "add this by hand\n\nextensions:\n  mneme:\n"},
		{Goose, "config.yaml", "{a: 1}\n", "add this by hand"},
		{Goose, "config.yaml", "a: 1\n---\nb: 2\n", "add this by hand"},
		{Codex, "config.toml", "model = \n", "not valid TOML"},
		{Codex, "config.toml", "[mcp_servers.mneme]\ncommand = \"x\"\n", "did not write"},
		{Codex, "config.toml", "mcp_servers = {a = {command = \"x\"}}\n", "does not fit"},
	} {
		home, options := machine(t)
		a, err := find(c.agent)
		require.NoError(t, err)
		folder := filepath.Join(home, a.folder)
		put(t, filepath.Join(folder, c.file), c.text)
		_, err = Connect(t.Context(), options(c.agent))
		require.ErrorContains(t, err, c.says, c.text)
		require.ErrorContains(t, err, filepath.Join(folder, filepath.FromSlash(c.file)))
		require.Equal(t, map[string]string{c.file: c.text}, files(t, folder), c.text)
	}
}

func TestFilesThatCanNotBeWrittenAreReported(t *testing.T) {
	home, options := machine(t)
	path := filepath.Join(home, ".claude", "settings.json")
	put(t, path, "{}")
	require.NoError(t, os.Chmod(path, 0o400))
	_, err := Connect(t.Context(), options(ClaudeCode))
	require.ErrorContains(t, err, "read-only")
	require.Equal(t, map[string]string{"settings.json": "{}"}, files(t, filepath.Dir(path)))

	if runtime.GOOS == "linux" { // where even root can't write into this folder
		t.Setenv("CLAUDE_CONFIG_DIR", "/proc/self")
		_, err = Connect(t.Context(), options(ClaudeCode))
		require.ErrorContains(t, err, "/proc/self")
	}
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	t.Setenv("HOME", "")
	t.Setenv("USERPROFILE", "")
	_, err = Connect(t.Context(), options(ClaudeCode))
	require.ErrorContains(t, err, "set HOME, or CLAUDE_CONFIG_DIR")
	require.Contains(t, inspected(t, ClaudeCode, "").Missing[0].String(), "set HOME")
}

func TestTwoConnectsAtOnceMakeOne(t *testing.T) {
	home, options := machine(t)
	path := filepath.Join(home, ".gemini", "settings.json")
	put(t, path, settingsFiles["comments"])
	_, err := Connect(t.Context(), options(GeminiCLI))
	require.NoError(t, err)
	want := get(t, path)
	_, err = Disconnect(t.Context(), options(GeminiCLI))
	require.NoError(t, err)
	var all sync.WaitGroup
	failed := make(chan error, 8)
	for range cap(failed) {
		all.Go(func() {
			_, err := Connect(t.Context(), options(GeminiCLI))
			failed <- err
		})
	}
	all.Wait()
	for range cap(failed) {
		require.NoError(t, <-failed)
	}
	require.Equal(t, want, get(t, path))
	require.Equal(t, settingsFiles["comments"], get(t, path+backupSuffix))
}

func TestAFileThatAnotherProgramWritesMeanwhileIsNotOverwritten(t *testing.T) {
	home, options := machine(t)
	path := filepath.Join(home, ".claude", "settings.json")
	put(t, path, "{}")
	list, err := agents[0].targets("")
	require.NoError(t, err)
	c, err := list[0].connect(Commands{Hook: []string{options("").Hook, ClaudeCode}})
	require.NoError(t, err)
	c.Path = path
	put(t, path, `{"model": "opus"}`)
	require.ErrorIs(t, c.make(), errMoved)
	require.Equal(t, `{"model": "opus"}`, get(t, path))
}

func TestALinkIsFollowedAndStays(t *testing.T) {
	home, options := machine(t)
	real := filepath.Join(home, "dotfiles", "claude.json")
	put(t, real, "{}\n")
	link := filepath.Join(home, ".claude", "settings.json")
	require.NoError(t, os.Mkdir(filepath.Dir(link), 0o700))
	require.NoError(t, os.Symlink(real, link))
	_, err := Connect(t.Context(), options(ClaudeCode))
	require.NoError(t, err)
	require.Contains(t, get(t, real), hookProgram)
	_, err = Disconnect(t.Context(), options(ClaudeCode))
	require.NoError(t, err)
	require.Equal(t, "{}\n", get(t, real))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)
}

// A repository can hold a link where the settings are saved.
func TestALinkIsNotFollowedToSaveAFile(t *testing.T) {
	home, options := machine(t)
	o := options(ClaudeCode)
	o.ProjectDir = filepath.Join(home, "work")
	const theirs = `{"a": "of the repository"}`
	settings, victim := filepath.Join(o.ProjectDir, ".claude", "settings.local.json"), filepath.Join(home, ".profile")
	put(t, settings, theirs)
	put(t, victim, "mine")
	require.NoError(t, os.Symlink(victim, settings+backupSuffix))
	_, err := Connect(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, "mine", get(t, victim))
	require.Equal(t, theirs, get(t, settings+backupSuffix))
	_, err = Disconnect(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, theirs, get(t, settings))
}

func TestADryRunShowsTheDiffAndWritesNothing(t *testing.T) {
	home, options := machine(t)
	path := filepath.Join(home, ".codex", "config.toml")
	put(t, path, "model = \"x\"")
	o := options(Codex)
	o.DryRun = true
	changes, err := Connect(t.Context(), o)
	require.NoError(t, err)
	require.Contains(t, changes[0].Diff, "+++ "+filepath.Join(home, ".codex", "hooks.json"))
	require.Contains(t, changes[1].Diff, "+[mcp_servers.mneme]\n")
	require.Equal(t, map[string]string{"config.toml": "model = \"x\""}, files(t, filepath.Dir(path)))
}

func TestCodexsConfigIsUndoneByteForByte(t *testing.T) {
	for _, text := range []string{"", "model = \"x\"", "model = \"x\"\n", "a = 1\r\n[t]\r\nb = 2\r\n", "[mcp_servers.other]\ncommand = \"y\"\n"} {
		home, options := machine(t)
		path := filepath.Join(home, ".codex", "config.toml")
		put(t, path, text)
		_, err := Connect(t.Context(), options(Codex))
		require.NoError(t, err)
		require.Contains(t, get(t, path), tomlMark)
		_, err = Disconnect(t.Context(), options(Codex))
		require.NoError(t, err)
		require.Equal(t, map[string]string{"config.toml": text}, files(t, filepath.Dir(path)))
	}
}

func TestTablesThatCodexAddedBehindOursStay(t *testing.T) {
	home, options := machine(t)
	path := filepath.Join(home, ".codex", "config.toml")
	put(t, path, "model = \"x\"\n")
	_, err := Connect(t.Context(), options(Codex))
	require.NoError(t, err)
	connected := get(t, path)
	put(t, path, connected+"\n[hooks.state.\"a\"]\ntrusted_hash = \"h\"\n")
	_, err = Disconnect(t.Context(), options(Codex))
	require.NoError(t, err)
	require.Equal(t, "model = \"x\"\n\n[hooks.state.\"a\"]\ntrusted_hash = \"h\"\n", get(t, path))

	put(t, path, connected+"startup_timeout_sec = 20\n")
	_, err = Disconnect(t.Context(), options(Codex))
	require.ErrorContains(t, err, "further keys")
	require.Equal(t, connected+"startup_timeout_sec = 20\n", get(t, path))
}

func TestAProjectOfItsOwn(t *testing.T) {
	home, options := machine(t)
	o := options(ClaudeCode)
	o.ProjectDir = filepath.Join(home, "work")
	_, err := Connect(t.Context(), o)
	require.ErrorContains(t, err, "is not a folder")
	require.NoError(t, os.Mkdir(o.ProjectDir, 0o700))
	_, err = Connect(t.Context(), o)
	require.NoError(t, err)
	require.Empty(t, inspected(t, ClaudeCode, "").Files)
	s := inspected(t, ClaudeCode, o.ProjectDir)
	require.True(t, s.Connected)
	require.Equal(t, []string{filepath.Join(o.ProjectDir, ".claude", "settings.local.json")}, s.Files)
	o.Agent = Codex
	_, err = Connect(t.Context(), o)
	require.ErrorContains(t, err, "all projects")
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	home, options := machine(t)
	t.Setenv("PATH", "")
	for _, s := range Inspect("") {
		require.False(t, s.Found)
		require.False(t, s.Connected)
		require.Empty(t, s.Missing)
	}
	for _, a := range agents {
		_, err := Connect(t.Context(), options(a.name))
		require.NoError(t, err)
	}
	for _, s := range Inspect("") {
		require.True(t, s.Found)
		require.True(t, s.Connected)
		require.Equal(t, s.Agent != ClaudeCode && s.Agent != OpenCode && s.Agent != Kilo, s.Tools)
	}
	put(t, filepath.Join(home, ".config", "opencode", "opencode.jsonc"), `{"mcp": {"mneme": {"type": "local"}}, /* mine */}`)
	require.True(t, inspected(t, OpenCode, "").Tools)
	require.Len(t, Next(options(ClaudeCode)), 2)
	put(t, filepath.Join(home, ".claude.json"), `{"mcpServers": {"mneme": {"command": "/x/mneme", "args": ["mcp"]}}}`)
	require.True(t, inspected(t, ClaudeCode, "").Tools)
	require.Len(t, Next(options(ClaudeCode)), 1)
	require.Contains(t, Next(options(ClaudeCode))[0], "now reads all sessions of Claude Code")
	dry := options(ClaudeCode)
	dry.DryRun = true
	require.Contains(t, Next(dry)[0], "would then read all sessions of Claude Code")
	require.Equal(t, "http://127.0.0.1:8420", inspected(t, ClaudeCode, "").Server)
	elsewhere := options(Codex)
	elsewhere.Flags = []string{"--url", "https://mneme.example.com", "--tenant=a"}
	_, failed := Connect(t.Context(), elsewhere)
	require.NoError(t, failed)
	require.Equal(t, "https://mneme.example.com", inspected(t, Codex, "").Server)
	require.Equal(t, "a", inspected(t, Codex, "").Tenant)
	require.Contains(t, Next(elsewhere)[1], " watch --url https://mneme.example.com '--tenant=a' running, which sends them")
	elsewhere.Flags[1] = "http://[::1]:9000"
	require.Contains(t, Next(elsewhere)[1], "if it is mneme up on this machine")
	one := options(ClaudeCode)
	one.ProjectDir = home
	require.Empty(t, Next(one), "one project does not show the others")

	path := filepath.Join(home, ".claude", "settings.json")
	put(t, path, strings.Replace(get(t, path), `"SubagentStop"`, `"PreToolUse"`, 1))
	require.Contains(t, inspected(t, ClaudeCode, "").Missing[0].String(), "at 4 of 5 events")
	require.NoError(t, os.Remove(options("").Hook))
	for _, s := range Inspect("") {
		if !s.ToolsOnly {
			require.False(t, s.Connected)
			require.Contains(t, s.Missing[0].What, "is not there")
		}
	}
	_, err := FindHook(options("").Mneme)
	require.ErrorIs(t, err, errNoHook)
}

func TestProgramsAreNamedByTheLinksThatSurviveAnUpdate(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	cellar, bin, own := filepath.Join(root, "cellar", "1.0"), filepath.Join(root, "bin"), filepath.Join(root, "own")
	for _, folder := range []string{cellar, bin, own} {
		require.NoError(t, os.MkdirAll(folder, 0o700))
	}
	mneme, hook := filepath.Join(cellar, "mneme"), filepath.Join(cellar, "mneme-hook")
	for _, path := range []string{mneme, hook} {
		put(t, path, "#!/bin/sh\n")
		require.NoError(t, os.Chmod(path, 0o700))
	}
	link := func(folder, path string) string {
		to := filepath.Join(folder, filepath.Base(path))
		require.NoError(t, os.Symlink(path, to))
		return to
	}
	t.Setenv("PATH", bin)
	found := func(mneme string) string {
		path, err := FindHook(mneme)
		require.NoError(t, err)
		return path
	}
	require.Equal(t, mneme, Lasting(mneme, "mneme"), "nothing leads to it")
	mine := link(own, mneme)
	require.Equal(t, mine, Lasting(mneme, "mneme", mine), "so it was started")
	require.Equal(t, hook, found(mine), "the hook is only beside what the link leads to")
	linked := link(bin, mneme)
	require.Equal(t, linked, Lasting(mneme, "mneme", mine))
	hookLink := link(bin, hook)
	for _, program := range []string{linked, mneme, mine} {
		require.Equal(t, hookLink, found(program))
	}
	require.NoError(t, os.Remove(linked))
	put(t, linked, "#!/bin/sh\n# another program\n")
	require.NoError(t, os.Chmod(linked, 0o700))
	require.Equal(t, mneme, Lasting(mneme, "mneme"))
}

// anyValue draws a value as JSON.
func anyValue() *rapid.Generator[any] {
	return rapid.Deferred(func() *rapid.Generator[any] {
		return rapid.OneOf(
			rapid.Map(rapid.String(), func(s string) any { return s }),
			rapid.Map(rapid.Int32(), func(n int32) any { return n }),
			rapid.Map(rapid.SliceOfN(rapid.Int8(), 0, 3), func(l []int8) any { return l }),
			rapid.Map(rapid.MapOfN(rapid.StringMatching(`[a-z]{1,4}`), rapid.Bool(), 0, 3), func(m map[string]bool) any { return m }),
		)
	})
}

func TestRemovingIsTheInverseOfAdding(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		object := rapid.MapOfN(rapid.StringMatching(`[a-z]{1,4}`), anyValue(), 1, 4).Draw(t, "object")
		indent := rapid.SampledFrom([]string{"", "  ", "    ", "\t"}).Draw(t, "indent")
		raw, err := json.MarshalIndent(object, "", indent)
		require.NoError(t, err)
		if rapid.Bool().Draw(t, "one line") {
			raw, err = json.Marshal(object)
			require.NoError(t, err)
		}
		if rapid.Bool().Draw(t, "comment") {
			raw = append(bytes.TrimSuffix(raw, []byte("}")), "// the end\n}"...)
		}
		f := rapid.SampledFrom(jsonFiles()).Draw(t, "file")
		want, events := f.wanted(rapid.StringMatching(`[ -~]*`).Draw(t, "flag"))
		connected, err := f.write(raw, want)
		require.NoError(t, err)
		got, n, err := f.read(connected)
		require.NoError(t, err)
		require.Equal(t, events, n)
		require.Equal(t, want, got)
		again, err := f.write(connected, want)
		require.NoError(t, err)
		require.Equal(t, string(connected), string(again))
		back, err := f.write(connected, Commands{})
		require.NoError(t, err)
		require.Equal(t, string(raw), string(back))
	})
}

func FuzzWrite(f *testing.F) {
	for _, text := range settingsFiles {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, file := range jsonFiles() {
			want, events := file.wanted()
			connected, err := file.write(raw, want)
			if err != nil {
				continue
			}
			got, n, err := file.read(connected)
			require.NoError(t, err)
			require.Equal(t, events, n)
			require.Equal(t, want, got)
			again, err := file.write(connected, want)
			require.NoError(t, err)
			require.Equal(t, string(connected), string(again))
			back, err := file.write(connected, Commands{})
			require.NoError(t, err)
			left, _, err := file.read(back)
			require.NoError(t, err)
			require.Equal(t, Commands{}, left)
		}
	})
}
