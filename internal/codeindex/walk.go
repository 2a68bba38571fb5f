package codeindex

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/scopes"
)

// DefaultMaxFiles is how many files are indexed unless [Options].MaxFiles says otherwise.
const DefaultMaxFiles = 200_000

// ErrTooMany means that a folder holds more files than the limit. Nothing was published.
var ErrTooMany = errors.New("too many files")

// found is a file to index.
type found struct {
	path string // from the root, with slashes
	size int64
	time int64 // of its last change, in ns
}

// walker lists the files of a folder that belong to an index.
type walker struct {
	root     string
	most     int
	excluded func(string) bool
	files    []found
	skip     func(path, reason string) // is called for each file that is left out
	missing  bool                      // there is no such folder
	unread   []unread
}

// unread is a folder or a file that could not be read.
type unread struct {
	path string // as in found; "" is the root
	err  error
}

// hides reports whether a file with this path may be there, unseen.
func (u unread) hides(path string) bool {
	return u.path == "" || path == u.path || strings.HasPrefix(path, u.path+"/")
}

// Limits of .gitignore files: longer ones are cut.
const (
	maxIgnoreBytes = 1 << 20
	maxPatterns    = 10_000 // of a folder and those above it
)

// walk lists the files in a folder below the root, in the order of their paths. It follows no links, so none can lead in a
// circle.
func (w *walker) walk(ctx context.Context, below string) error {
	var patterns []gitignore.Pattern
	var domain []string
	patterns = w.ignored(patterns, filepath.Join(w.root, ".git", "info", "exclude"), nil)
	if below != "" { // folders above it may ignore files in it
		for _, part := range strings.Split(below, "/") {
			patterns = w.ignored(patterns, filepath.Join(w.root, filepath.Join(domain...), ".gitignore"), domain)
			domain = append(domain, part)
		}
		if _, err := os.Lstat(filepath.Join(w.root, filepath.FromSlash(below))); errors.Is(err, fs.ErrNotExist) {
			// Without its .git the whole repository is away, as on a disk that is not mounted, and may come back.
			if _, err := os.Lstat(filepath.Join(w.root, ".git")); err == nil {
				w.missing = true
				return nil
			}
		}
	}
	return w.folder(ctx, domain, patterns)
}

func (w *walker) folder(ctx context.Context, at []string, patterns []gitignore.Pattern) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	folder := filepath.Join(w.root, filepath.Join(at...))
	entries, err := os.ReadDir(folder) // sorted
	if err != nil {
		w.unread = append(w.unread, unread{path.Join(at...), err})
	}
	at = at[:len(at):len(at)]
	patterns = w.ignored(patterns[:len(patterns):len(patterns)], filepath.Join(folder, ".gitignore"), at)
	matcher := gitignore.NewMatcher(patterns)
	for _, e := range entries {
		name := e.Name()
		rel := append(at, name)
		full := path.Join(rel...)
		switch {
		case e.IsDir():
			if name == ".git" || w.excluded(name) || matcher.Match(rel, true) {
				continue
			}
			if _, err := os.Lstat(filepath.Join(folder, name, ".git")); err == nil {
				continue // another repository: a submodule, or a worktree
			}
			if err := w.folder(ctx, rel, patterns); err != nil {
				return err
			}
		case e.Type()&fs.ModeSymlink != 0:
			w.skip(full, "link")
		case !e.Type().IsRegular() || !scopes.Known(name):
			w.skip(full, string(scopes.Unknown))
		case matcher.Match(rel, false) || w.excluded(name):
			w.skip(full, "ignored")
		case len(full) > events.MaxCodePathBytes:
			w.skip(full, "long path")
		case !utf8.ValidString(full):
			w.skip(full, "name not in UTF-8")
		default:
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) { // gone meanwhile
				continue
			}
			if err != nil {
				w.unread = append(w.unread, unread{full, err})
				continue
			}
			if len(w.files) == w.most {
				return fmt.Errorf("%w: %s holds more than %d; raise the limit with --max-files, or leave folders out in a .gitignore", ErrTooMany, w.root, w.most)
			}
			w.files = append(w.files, found{full, info.Size(), info.ModTime().UnixNano()})
		}
	}
	return nil
}

// ignored adds the patterns of a .gitignore file.
func (w *walker) ignored(list []gitignore.Pattern, file string, domain []string) []gitignore.Pattern {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return list
	}
	raw, err := os.Open(file)
	if err != nil {
		return list
	}
	defer func() { _ = raw.Close() }()
	lines := bufio.NewScanner(raw)
	lines.Buffer(nil, maxIgnoreBytes)
	for lines.Scan() && len(list) < maxPatterns {
		if line := strings.TrimSuffix(lines.Text(), "\r"); strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			list = append(list, gitignore.ParsePattern(line, domain))
		}
	}
	return list
}

func newWalker(root string, most int, skip func(path, reason string)) *walker {
	if most <= 0 {
		most = DefaultMaxFiles
	}
	return &walker{root: root, most: most, skip: skip, excluded: files.Exclude(append([]string{"vendor"}, names(files.DefaultExclusions)...))}
}

// names keeps the patterns of single names, because a project may itself be in a folder whose path matches a longer
// pattern, such as one for temporary files.
func names(patterns []string) (list []string) {
	for _, p := range patterns {
		if !strings.Contains(p, "/") {
			list = append(list, p)
		}
	}
	return list
}
