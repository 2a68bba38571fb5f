package capture

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// agent is what the receiver knows of an agent.
type agent struct {
	format string // of package transcript
	env    string // names the folder of its files
	home   string // that folder without the variable, below the user's home
	folder string // of transcripts, in that folder
}

var agents = map[string]agent{
	"claude-code": {format: "claude-code", env: "CLAUDE_CONFIG_DIR", home: ".claude", folder: "projects"},
	"codex":       {format: "codex", env: "CODEX_HOME", home: ".codex", folder: "sessions"},
}

func agentNamed(name string) (agent, error) {
	a, ok := agents[name]
	if !ok {
		return agent{}, fmt.Errorf("%w: %.64q; the transcripts of claude-code and codex can be read", ErrAgent, name)
	}
	return a, nil
}

// Roots returns the folders in which an agent keeps its transcripts, whether or not they exist:
//
//	claude-code   $CLAUDE_CONFIG_DIR/projects, else ~/.claude/projects
//	codex         $CODEX_HOME/sessions, else ~/.codex/sessions
//
// It returns [ErrAgent] for any other agent, and an error if there is no home folder.
func Roots(agent string) ([]string, error) {
	a, err := agentNamed(agent)
	if err != nil {
		return nil, err
	}
	dir := os.Getenv(a.env)
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("find the transcripts of %s: set %s: %w", agent, a.env, err)
		}
		dir = filepath.Join(home, a.home)
	}
	root, err := filepath.Abs(filepath.Join(dir, a.folder))
	if err != nil {
		return nil, fmt.Errorf("find the transcripts of %s: %w", agent, err)
	}
	return []string{root}, nil
}

// maxPath is the longest path of a doorbell, in bytes.
const maxPath = 4096

// check refuses a path that can't be a transcript's, without a look at the disk.
func check(path string) error {
	switch {
	case path == "":
		return fmt.Errorf("%w: the doorbell names no file", ErrPath)
	case len(path) > maxPath:
		return fmt.Errorf("%w: it is longer than %d bytes", ErrPath, maxPath)
	case !filepath.IsAbs(path):
		return fmt.Errorf("%w: it is not an absolute path", ErrPath)
	case !isTranscript(path):
		return fmt.Errorf("%w: its name does not end in .jsonl or .jsonl.zst", ErrPath)
	}
	return nil
}

func isTranscript(path string) bool {
	return strings.HasSuffix(path, ".jsonl") || strings.HasSuffix(path, ".jsonl.zst")
}

// errMissing means that a file below a root does not exist yet.
var errMissing = errors.New("does not exist")

// resolve returns a file's path without symbolic links, and its state. It returns [ErrPath] if
// the receiver must not read it, errMissing, or the error of the file system.
func (r *Receiver) resolve(path string) (string, fs.FileInfo, error) {
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
	case !isTranscript(real):
		return "", nil, fmt.Errorf("%w: it is a link to a file whose name does not end in .jsonl or .jsonl.zst", ErrPath)
	}
	return real, info, nil
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
		if !strings.HasPrefix(e.Name(), "agent-") || !isTranscript(e.Name()) {
			continue
		}
		if len(paths) == maxSubagents {
			return paths, false
		}
		paths = append(paths, filepath.Join(dir, e.Name()))
	}
	return paths, true
}
