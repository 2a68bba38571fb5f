package codeindex

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Limits of .gitignore files.
const (
	maxIgnoreBytes = 1 << 20 // of a line; a longer one ends the file
	maxPatterns    = 10_000  // of a folder and those above it
)

// pattern is a line of a .gitignore file.
type pattern struct {
	depth    int      // of the folder that has the file, from the root
	parts    []string // components with *, ? and sets such as [a-z], or ** for any number of them
	anywhere bool     // it is one component, for names at any depth
	folders  bool     // it matches only folders
	again    bool     // what it matches is not ignored after all
}

// ignored reports whether a path from the root is ignored: the last pattern that matches it decides. It does not look at
// the folders above it, which the caller has not entered if they are ignored.
func ignored(list []pattern, parts []string, folder bool) bool {
	for _, p := range slices.Backward(list) {
		if p.matches(parts[p.depth:], folder) {
			return !p.again
		}
	}
	return false
}

func (p *pattern) matches(parts []string, folder bool) bool {
	if p.folders && !folder {
		return false
	}
	if p.anywhere {
		return matches(p.parts[0], parts[len(parts)-1])
	}
	// As for the stars of a single name: after a component that does not fit, the last ** takes one more.
	at, after, from := 0, -1, 0 // of the pattern; after its last **; how much that has taken
	for i := 0; i < len(parts); {
		switch {
		case at < len(p.parts) && p.parts[at] == "**":
			if at++; at == len(p.parts) { // everything in the folder
				return true
			}
			after, from = at, i
		case at < len(p.parts) && matches(p.parts[at], parts[i]):
			at++
			i++
		case after >= 0:
			from++
			at, i = after, from
		default:
			return false
		}
	}
	return at == len(p.parts)
}

// parsePattern reads a line of the .gitignore file of a folder that is so deep below the root; nil if it says nothing.
func parsePattern(line string, depth int) *pattern {
	line = strings.TrimSuffix(line, "\r")
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	p := &pattern{depth: depth}
	if strings.HasPrefix(line, "#") {
		return nil
	}
	line, p.again = strings.CutPrefix(line, "!")
	line, p.folders = strings.CutSuffix(line, "/")
	if line == "" {
		return nil
	}
	rest, anchored := strings.CutPrefix(line, "/")
	p.parts = strings.Split(rest, "/")
	p.anywhere = len(p.parts) == 1 && !anchored
	return p
}

// excludeFile returns the file of ignored files that a repository shares with nobody. A linked worktree, whose .git is a file
// that names a folder, has that of its repository.
func excludeFile(root string) string {
	git := filepath.Join(root, ".git")
	if raw, err := os.ReadFile(git); err == nil {
		git = below(root, strings.TrimPrefix(string(raw), "gitdir:"))
		if common, err := os.ReadFile(filepath.Join(git, "commondir")); err == nil {
			git = below(git, string(common))
		}
	}
	return filepath.Join(git, "info", "exclude")
}

// UserIgnores returns the file of what the user ignores in every repository. Where it is can depend on the repository, and
// on files that git's settings include, so git is asked; without git it is where git looks by default.
func UserIgnores(ctx context.Context, root string) string {
	ctx, cancel := context.WithTimeout(ctx, gitWithin)
	defer cancel()
	named, err := exec.CommandContext(ctx, "git", "-C", root, "config", "--type=path", "--get", "core.excludesFile").Output()
	if err == nil {
		return below(root, string(named))
	}
	settings := os.Getenv("XDG_CONFIG_HOME")
	if settings == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		settings = filepath.Join(home, ".config")
	}
	return filepath.Join(settings, "git", "ignore")
}

const gitWithin = 10 * time.Second

// IgnoresCase reports whether to git names that differ only in their case are the same, as on macOS and Windows.
// Without git it is false.
func IgnoresCase(ctx context.Context, root string) bool {
	ctx, cancel := context.WithTimeout(ctx, gitWithin)
	defer cancel()
	is, err := exec.CommandContext(ctx, "git", "-C", root, "config", "--type=bool", "--get", "core.ignoreCase").Output()
	return err == nil && strings.TrimSpace(string(is)) == "true"
}

// readOutside is as readPatterns, of a file outside of the working tree. There git follows links.
func readOutside(list []pattern, file string) []pattern {
	file, err := filepath.EvalSymlinks(file)
	if err != nil {
		return list
	}
	return readPatterns(list, file, 0)
}

// below returns a path that a file of git names, from the folder that it counts from.
func below(folder, named string) string {
	if named = strings.TrimSpace(named); filepath.IsAbs(named) {
		return named
	}
	return filepath.Join(folder, named)
}

// readPatterns adds the patterns of a .gitignore file.
func readPatterns(list []pattern, file string, depth int) []pattern {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return list
	}
	in, err := os.Open(file)
	if err != nil {
		return list
	}
	defer func() { _ = in.Close() }()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxIgnoreBytes)
	for first := true; lines.Scan() && len(list) < maxPatterns; first = false {
		line := lines.Text()
		if first {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		if p := parsePattern(line, depth); p != nil {
			list = append(list, *p)
		}
	}
	return list
}
