package codeindex

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

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
	ignores  string // see [Options]
	anyCase  bool   // see [Options]
	excluded func(string) bool
	files    []found
	skip     func(path, reason string) // is called for each file that is left out
	missing  bool                      // there is no such folder
	ignored  bool                      // the folder is ignored, with all files in it
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

// walk lists the files in a folder below the root, in the order of their paths. It follows no links, so none can lead in a
// circle.
func (w *walker) walk(ctx context.Context, below string) error {
	var at []string
	patterns := w.fold(readOutside(readOutside(nil, w.ignores), excludeFile(w.root)), 0) // the later ones count
	if below != "" {                                                                     // folders above it may ignore it, or files in it
		for part := range strings.SplitSeq(below, "/") {
			patterns = w.read(patterns, filepath.Join(w.root, filepath.Join(at...)), len(at))
			at = append(at, part)
			w.ignored = w.ignored || w.ignore(patterns, at, true)
		}
		if _, err := os.Lstat(filepath.Join(w.root, filepath.FromSlash(below))); errors.Is(err, fs.ErrNotExist) {
			// Without its .git the whole repository is away, as on a disk that is not mounted, and may come back.
			if _, err := os.Lstat(filepath.Join(w.root, ".git")); err == nil {
				w.missing = true
				return nil
			}
		}
	}
	return w.folder(ctx, at, patterns)
}

func (w *walker) folder(ctx context.Context, at []string, patterns []pattern) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	folder := filepath.Join(w.root, filepath.Join(at...))
	entries, err := os.ReadDir(folder) // sorted
	if err != nil {
		w.unread = append(w.unread, unread{path.Join(at...), err})
	}
	at = at[:len(at):len(at)]
	patterns = w.read(patterns[:len(patterns):len(patterns)], folder, len(at))
	for _, e := range entries {
		name := e.Name()
		rel := append(at, name)
		full := path.Join(rel...)
		switch {
		case e.IsDir():
			if name == ".git" || w.excluded(name) || w.ignore(patterns, rel, true) {
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
		case w.ignored || w.excluded(name) || w.ignore(patterns, rel, false):
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

// read adds the patterns of a folder's .gitignore.
func (w *walker) read(list []pattern, folder string, depth int) []pattern {
	return w.fold(readPatterns(list, filepath.Join(folder, ".gitignore"), depth), len(list))
}

// fold makes the patterns from a place on match names in lower case, if the case of names does not count.
func (w *walker) fold(list []pattern, from int) []pattern {
	if w.anyCase {
		for _, p := range list[from:] {
			copy(p.parts, folded(p.parts))
		}
	}
	return list
}

// ignore reports whether patterns ignore a path.
func (w *walker) ignore(list []pattern, parts []string, folder bool) bool {
	if w.anyCase {
		parts = folded(parts)
	}
	return ignored(list, parts, folder)
}

// folded returns texts in lower case as git compares them: only letters of ASCII change.
func folded(texts []string) []string {
	list := make([]string, len(texts))
	for i, s := range texts {
		small := []byte(s)
		for n, c := range small {
			if 'A' <= c && c <= 'Z' {
				small[n] |= 0x20
			}
		}
		list[i] = string(small)
	}
	return list
}

func newWalker(root, ignores string, most int, skip func(path, reason string)) *walker {
	if most <= 0 {
		most = DefaultMaxFiles
	}
	return &walker{root: root, ignores: ignores, most: most, skip: skip, excluded: files.Exclude(append([]string{"vendor"}, names(files.DefaultExclusions)...))}
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
