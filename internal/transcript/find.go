package transcript

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// File is a recording on disk.
type File struct {
	Path string
	Size int64 // size on disk, in bytes, compressed or not
	// Named is true if the caller named the file itself, not a folder that contains it.
	Named bool
}

// Open opens the file for [Read], which decompresses it.
func (f File) Open() (*os.File, error) { return os.Open(f.Path) }

// suffixes are the file name endings of recordings in folders.
var suffixes = []string{".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz", ".jsonl.zst"}

// Find lists the recordings at paths, sorted by path, without repeats. A file is accepted
// under any name. Folders are searched to any depth for *.jsonl and *.ndjson, plain or .gz, *.jsonl.zst, and
// the names under which agents keep recordings of another kind, such as api_conversation_history.json and opencode.db.
// Links in paths are followed. In a folder, links to files are followed if they stay in the
// folder; links to folders are not.
//
// The error names every path that can't be read, is neither a file nor a folder, or is a
// link to a file outside the searched folder. The files found are returned along with it.
func Find(paths []string) ([]File, error) {
	var files []File
	var errs []error
	for _, path := range paths {
		found, err := find(filepath.Clean(path))
		files = append(files, found...)
		errs = append(errs, err)
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	seen := make(map[string]bool, len(files))
	files = slices.DeleteFunc(files, func(f File) bool {
		key, err := filepath.Abs(f.Path)
		again := err == nil && seen[key]
		seen[key] = true
		return again
	})
	return files, errors.Join(errs...)
}

// IsRecording reports whether a file's name is one that [Find] takes in a folder.
func IsRecording(name string) bool {
	base := folderOf(name, 0)
	if slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(strings.ToLower(base), s) }) {
		return true
	}
	return slices.ContainsFunc(formats, func(f Format) bool { return f.matches(name) })
}

// IsRecordingOf reports whether a file's name is one that recordings of a format have and those of others do not.
func IsRecordingOf(format, name string) bool {
	f, err := formatNamed(format)
	return err == nil && f.matches(name)
}

// matches reports whether the end of a path matches one of a format's patterns.
func (f *Format) matches(name string) bool {
	return slices.ContainsFunc(f.files, func(pattern string) bool {
		end := folderOf(name, 0)
		for n := range strings.Count(pattern, "/") {
			end = folderOf(name, n+1) + "/" + end
		}
		ok, err := path.Match(pattern, end)
		return err == nil && ok
	})
}

func find(path string) (files []File, err error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.Mode().IsRegular():
		return []File{{Path: path, Size: info.Size(), Named: true}}, nil
	case !info.IsDir():
		return nil, fmt.Errorf("%s: is neither a file nor a folder", path)
	}
	root, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	var errs []error
	walked := fs.WalkDir(os.DirFS(path), ".", func(name string, entry fs.DirEntry, err error) error {
		full := filepath.Join(path, filepath.FromSlash(name))
		if err != nil {
			var inner *fs.PathError // its path lacks the folder
			if errors.As(err, &inner) {
				err = inner.Err
			}
			errs = append(errs, fmt.Errorf("%s: %w", full, err))
			return nil
		}
		if !IsRecording(full) {
			return nil
		}
		switch info, err := os.Stat(full); {
		case err != nil:
			errs = append(errs, err)
		case !info.Mode().IsRegular():
		case entry.Type()&fs.ModeSymlink != 0 && !staysIn(root, full):
			errs = append(errs, fmt.Errorf("%s: is a link to a file outside %s: name it in the command to import it", full, path))
		default:
			files = append(files, File{Path: full, Size: info.Size()})
		}
		return nil
	})
	return files, errors.Join(append(errs, walked)...)
}

// staysIn reports whether a link leads to something inside root. root itself must not contain
// links.
func staysIn(root, link string) bool {
	to, err := filepath.EvalSymlinks(link)
	if err != nil {
		return false
	}
	below, err := filepath.Rel(root, to)
	return err == nil && filepath.IsLocal(below)
}
