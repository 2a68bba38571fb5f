package capture

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"mneme.dev/mneme/internal/openclaw"
	"mneme.dev/mneme/internal/transcript"
)

// agent is what the receiver knows about an agent.
type agent struct {
	format string                 // of package transcript
	env    string                 // names the folder of its files, or the folder above it if inside is set
	inside string                 // the folder in the one that env names
	home   string                 // the folder of its files without the variable, below the user's home
	folder string                 // of transcripts, in that folder
	find   func() (string, error) // finds the folder of its files instead
	// editor are folders below User in those of the editors, if the agent records there; home may then be empty.
	editor []string
	pieces bool // each event has a file of its own, and their names are in its order
	// enters tells folders that may hold transcripts by their paths below the root; nil takes all.
	enters func(rel string) bool
	// takes tells transcripts from other files by their names; nil takes JSON lines.
	takes func(path string) bool
}

var agents = map[string]agent{
	"claude-code": {format: "claude-code", env: "CLAUDE_CONFIG_DIR", home: ".claude", folder: "projects"},
	"codex":       {format: "codex", env: "CODEX_HOME", home: ".codex", folder: "sessions"},
	"gemini-cli":  {format: "gemini-cli", env: "GEMINI_CLI_HOME", inside: ".gemini", home: ".gemini", folder: "tmp", takes: isChat},
	"qwen-code":   {format: "qwen-code", env: "QWEN_HOME", home: ".qwen", folder: "projects", takes: isQwenChat},
	"opencode":    {format: "opencode", env: "XDG_DATA_HOME", inside: "opencode", home: ".local/share/opencode", takes: isDatabaseOf("opencode")},
	"pi":          {format: "pi", env: "PI_CODING_AGENT_DIR", home: ".pi/agent", folder: "sessions"},
	"openclaw":    {format: "openclaw", find: openclaw.StateDir, home: ".openclaw", folder: "agents", enters: isClaw, takes: isDatabaseOf("openclaw")},
	"kimi-code":   {format: "kimi-code", env: "KIMI_CODE_HOME", home: ".kimi-code", folder: "sessions", takes: isKimi},
	"droid":       {format: "droid", env: "FACTORY_HOME_OVERRIDE", inside: ".factory", home: ".factory", folder: "sessions"},
	"copilot-cli": {format: "copilot-cli", env: "COPILOT_HOME", home: ".copilot", folder: "session-state"},
	"goose":       {format: "goose", env: "XDG_DATA_HOME", inside: "goose", home: ".local/share/goose", folder: "sessions", takes: isDatabaseOf("goose")},
	"hermes":      {format: "hermes", env: "HERMES_HOME", home: ".hermes", enters: isProfile, takes: isDatabaseOf("hermes")},
	"kilo":        {format: "opencode", env: "XDG_DATA_HOME", inside: "kilo", home: ".local/share/kilo", takes: isDatabaseOf("opencode")},
	"cline":       {format: "cline", home: ".cline/data", folder: "sessions", editor: []string{"globalStorage/saoudrizwan.claude-dev/tasks"}, takes: isTask},
	"continue":    {format: "continue", env: "CONTINUE_GLOBAL_DIR", home: ".continue", folder: "sessions", takes: isContinue},
	"openhands":   {format: "openhands", env: "OPENHANDS_PERSISTENCE_DIR", home: ".openhands", folder: "conversations", pieces: true, takes: isEvent},
	"cursor":      {format: "cursor", home: ".cursor", folder: "chats", editor: []string{"globalStorage"}, enters: isCursorFolder, takes: isDatabaseOf("cursor")},
	"roo":         {format: "cline", editor: []string{"globalStorage/rooveterinaryinc.roo-cline/tasks"}, takes: isTask},
	"vscode-chat": {format: "vscode-chat", editor: []string{"workspaceStorage", "globalStorage/emptyWindowChatSessions"}, enters: isChatFolder, takes: isVSCodeChat},
}

// editors are the folders of VS Code and of programs that are made of it, in the folder for settings of the system.
var editors = []string{"Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf"}

// isEvent reports whether a file holds an event of OpenHands.
func isEvent(path string) bool { return transcript.IsRecordingOf("openhands", path) }

// isTask reports whether a file holds the messages of a task of Cline or Roo Code, which keep other files beside it.
func isTask(path string) bool { return transcript.IsRecordingOf("cline", path) }

// isContinue reports whether a file is a session of Continue, which keeps a list of them beside them.
func isContinue(path string) bool { return transcript.IsRecordingOf("continue", path) }

// isChat reports whether a file is a session of Gemini CLI, which keeps other files of JSON beside them.
func isChat(path string) bool {
	return isLines(path) && slices.Contains(strings.Split(filepath.ToSlash(path), "/"), "chats") || transcript.IsRecordingOf("gemini-cli", path)
}

// isQwenChat reports whether a file is a session of Qwen Code or a subagent of one. It keeps other JSON lines beside them.
func isQwenChat(path string) bool {
	folder := filepath.Dir(path)
	return isLines(path) && (filepath.Base(folder) == "chats" || filepath.Base(filepath.Dir(folder)) == "subagents")
}

// isKimi reports whether a file is what an agent of Kimi Code recorded.
func isKimi(path string) bool { return filepath.Base(path) == "wire.jsonl" }

// isProfile reports whether a folder in that of Hermes Agent is a profile. The agent keeps its programs beside them.
func isProfile(rel string) bool {
	return rel == "." || rel == "profiles" || path.Dir(rel) == "profiles"
}

// isClaw reports whether a folder is that of an agent of OpenClaw, or the one in it with its database. The agent's plugins
// keep their files beside it.
func isClaw(rel string) bool {
	return !strings.Contains(rel, "/") || path.Base(rel) == "agent" && strings.Count(rel, "/") == 1
}

// isChatFolder reports whether a folder may hold sessions of VS Code's chat. There is one for each folder that was opened,
// and extensions keep their files there too.
func isChatFolder(rel string) bool {
	return !strings.Contains(rel, "/") || path.Base(rel) == "chatSessions"
}

// isCursorFolder reports whether a folder holds a database of Cursor, or is one of those that its CLI makes: one named by a
// hash for each folder, and one in it for each chat. In the editor's folder, extensions keep their files beside the database.
func isCursorFolder(rel string) bool {
	folder, chat, _ := strings.Cut(rel, "/")
	return rel == "." || cursorHash.MatchString(folder) && !strings.Contains(chat, "/")
}

var cursorHash = regexp.MustCompile("^[0-9a-f]{32}$")

// isVSCodeChat reports whether a file is a session of VS Code's chat.
func isVSCodeChat(path string) bool { return transcript.IsRecordingOf("vscode-chat", path) }

// isDatabaseOf returns a function that reports whether a file is a database of the format.
func isDatabaseOf(format string) func(string) bool {
	return func(path string) bool {
		return isDatabase(path) && transcript.IsRecordingOf(format, path)
	}
}

func isDatabase(path string) bool {
	return strings.HasSuffix(path, ".db") || strings.HasSuffix(path, ".sqlite") || strings.HasSuffix(path, ".vscdb")
}

func isLines(path string) bool {
	return strings.HasSuffix(path, ".jsonl") || strings.HasSuffix(path, ".jsonl.zst")
}

// mayEnter reports whether a folder below a root may hold transcripts.
func (a agent) mayEnter(root, folder string) bool {
	if a.enters == nil {
		return true
	}
	rel, err := filepath.Rel(root, folder)
	return err == nil && a.enters(filepath.ToSlash(rel))
}

// isTranscript reports whether a file of an agent is a transcript, by its name.
func isTranscript(agent, path string) bool {
	if takes := agents[agent].takes; takes != nil {
		return takes(path)
	}
	return isLines(path)
}

// changedFile returns the file that changes when another one does: a database has a log beside it, in which its agent
// writes first.
func changedFile(path string) string {
	if database, ok := strings.CutSuffix(path, "-wal"); ok && isDatabase(database) {
		return database
	}
	return path
}

// withLog is the state of a database together with its log.
type withLog struct {
	fs.FileInfo
	size     int64
	modified time.Time
}

func (w withLog) Size() int64        { return w.size }
func (w withLog) ModTime() time.Time { return w.modified }

// stateOf returns the state of a file, of a database with its log.
func stateOf(path string, info fs.FileInfo) fs.FileInfo {
	if !isDatabase(path) {
		return info
	}
	w := withLog{info, info.Size(), info.ModTime()}
	if log, err := os.Stat(path + "-wal"); err == nil {
		w.size += log.Size()
		w.modified = later(w.modified, log.ModTime())
	}
	return w
}

func agentNamed(name string) (agent, error) {
	a, ok := agents[name]
	if !ok {
		return agent{}, fmt.Errorf("%w: %.64q; those of %s can be read", ErrAgent, name, strings.Join(slices.Sorted(maps.Keys(agents)), ", "))
	}
	return a, nil
}

// Roots returns the folders in which an agent keeps its transcripts, whether or not they exist:
//
//	claude-code   $CLAUDE_CONFIG_DIR/projects, else ~/.claude/projects
//	codex         $CODEX_HOME/sessions, else ~/.codex/sessions
//	gemini-cli    $GEMINI_CLI_HOME/.gemini/tmp, else ~/.gemini/tmp
//	qwen-code     $QWEN_HOME/projects, else ~/.qwen/projects
//	opencode      $XDG_DATA_HOME/opencode, else ~/.local/share/opencode
//	pi            $PI_CODING_AGENT_DIR/sessions, else ~/.pi/agent/sessions
//	openclaw      $OPENCLAW_STATE_DIR/agents, else .openclaw/agents in $OPENCLAW_HOME, else ~/.openclaw/agents
//	kimi-code     $KIMI_CODE_HOME/sessions, else ~/.kimi-code/sessions
//	droid         $FACTORY_HOME_OVERRIDE/.factory/sessions, else ~/.factory/sessions
//	copilot-cli   $COPILOT_HOME/session-state, else ~/.copilot/session-state
//	goose         $XDG_DATA_HOME/goose/sessions, else ~/.local/share/goose/sessions
//	hermes        $HERMES_HOME, else ~/.hermes, and the profiles in it
//	kilo          $XDG_DATA_HOME/kilo, else ~/.local/share/kilo
//	cline         ~/.cline/data/sessions, and tasks in its extension's folder in each editor
//	continue      $CONTINUE_GLOBAL_DIR/sessions, else ~/.continue/sessions
//	openhands     $OPENHANDS_PERSISTENCE_DIR/conversations, else ~/.openhands/conversations
//	cursor        ~/.cursor/chats, and globalStorage in the editor's folder
//	roo           tasks in its extension's folder in each editor
//	vscode-chat   workspaceStorage and globalStorage/emptyWindowChatSessions in each editor
//
// An extension's folder is User/globalStorage/EXTENSION in the editor's folder, which is in [os.UserConfigDir].
// It returns [ErrAgent] for any other agent, and an error if there is no home folder.
func Roots(agent string) ([]string, error) {
	a, err := agentNamed(agent)
	if err != nil {
		return nil, err
	}
	var roots []string
	if a.home != "" {
		root, err := a.root()
		if err != nil {
			return nil, fmt.Errorf("find the transcripts of %s: %w", agent, err)
		}
		roots = append(roots, root)
	}
	if settings, err := os.UserConfigDir(); err == nil { // without the folder no editor has settings
		for _, editor := range editors {
			for _, folder := range a.editor {
				roots = append(roots, filepath.Join(settings, editor, "User", filepath.FromSlash(folder)))
			}
		}
	}
	return roots, nil
}

// root returns the folder of transcripts that the variable names, or else the one in the user's home.
func (a *agent) root() (string, error) {
	if a.find != nil {
		dir, err := a.find()
		if err != nil {
			return "", fmt.Errorf("set HOME: %w", err)
		}
		return filepath.Join(dir, a.folder), nil
	}
	if dir := os.Getenv(a.env); a.env != "" && dir != "" {
		return filepath.Abs(filepath.Join(dir, a.inside, a.folder))
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("set %s: %w", cmp.Or(a.env, "HOME"), err)
	}
	return filepath.Abs(filepath.Join(home, filepath.FromSlash(a.home), a.folder))
}

// maxPath is the longest path of a doorbell, in bytes.
const maxPath = 4096

// check refuses a path that can't be a transcript's, without a look at the disk.
func check(agent, path string) error {
	switch {
	case path == "":
		return fmt.Errorf("%w: the doorbell names no file", ErrPath)
	case len(path) > maxPath:
		return fmt.Errorf("%w: it is longer than %d bytes", ErrPath, maxPath)
	case !filepath.IsAbs(path):
		return fmt.Errorf("%w: it is not an absolute path", ErrPath)
	case !isTranscript(agent, path):
		return fmt.Errorf("%w: transcripts of %s have other names", ErrPath, agent)
	}
	return nil
}

// errMissing means that a file below a root does not exist yet.
var errMissing = errors.New("does not exist")

// resolve returns a file's path without symbolic links, and its state. It returns [ErrPath] if
// the receiver must not read it, errMissing, or the error of the file system.
func (r *Receiver) resolve(agent, path string) (string, fs.FileInfo, error) {
	real, err := filepath.EvalSymlinks(path)
	missing := errors.Is(err, fs.ErrNotExist)
	for parent := filepath.Dir(path); errors.Is(err, fs.ErrNotExist); parent = filepath.Dir(parent) {
		real, err = filepath.EvalSymlinks(parent) // ends at the root of the file system at the latest
		if parent == filepath.Dir(parent) {
			break
		}
	}
	switch {
	case err != nil:
		return "", nil, err
	case missing && slices.ContainsFunc(r.Roots, func(root string) bool { return within(root, path) && !exists(root) }):
		return "", nil, errMissing // the agent makes the folder with its first session
	case !r.below(real):
		return "", nil, fmt.Errorf("%w: it is not in a folder of transcripts (%s)", ErrPath, cmp.Or(strings.Join(r.Roots, ", "), "none is configured"))
	case missing:
		return "", nil, errMissing
	}
	info, err := os.Lstat(real)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil, errMissing
	case err != nil:
		return "", nil, err
	case !info.Mode().IsRegular():
		return "", nil, fmt.Errorf("%w: it is not a regular file", ErrPath)
	case !isTranscript(agent, real):
		return "", nil, fmt.Errorf("%w: it is a link to a file whose name is not one of a transcript of %s", ErrPath, agent)
	}
	return real, stateOf(real, info), nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// below reports whether a path without links is a root or leads into one. Roots are resolved each
// time, because an agent makes its folder with its first session.
func (r *Receiver) below(path string) bool {
	return slices.ContainsFunc(r.Roots, func(root string) bool {
		root, err := filepath.EvalSymlinks(root)
		if err != nil {
			return false
		}
		rel, err := filepath.Rel(root, path)
		return err == nil && filepath.IsLocal(rel)
	})
}

// maxSubagents bounds the files of subagents that are read with a session's.
const maxSubagents = 1000

// subagents lists the transcripts of a Claude Code session's subagents.
func subagents(session string) (paths []string, all bool) {
	stem, ok := strings.CutSuffix(session, ".jsonl")
	if !ok {
		return nil, true
	}
	dir := filepath.Join(stem, "subagents")
	entries, _ := os.ReadDir(dir) // most sessions have none
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "agent-") || !isLines(e.Name()) {
			continue
		}
		if len(paths) == maxSubagents {
			return paths, false
		}
		paths = append(paths, filepath.Join(dir, e.Name()))
	}
	return paths, true
}
