package transcript

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// File is a recording on disk.
type File struct {
	Path string
	Size int64 // bytes on disk, packed or not
	// Named tells that the file itself was asked for, not a folder that it lies in.
	Named bool
}

// Open opens the file for [Read], which unpacks it.
func (f File) Open() (*os.File, error) { return os.Open(f.Path) }

// suffixes are the names that recordings have in folders.
var suffixes = []string{".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"}

// Find lists the recordings at paths, sorted by path, each once. A file that is
// named is taken whatever it is called; folders are searched to any depth for
// *.jsonl and *.ndjson, plain or .gz. Links that are named are followed. In a folder, links
// to files are followed if they stay in it, links to folders are not.
//
// The error names every path that could not be read, is neither file nor folder, or is a
// link to a file out of the folder it was found in; what was found beside them is returned
// with it.
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
			var inner *fs.PathError // its path is the one below path
			if errors.As(err, &inner) {
				err = inner.Err
			}
			errs = append(errs, fmt.Errorf("%s: %w", full, err))
			return nil
		}
		if !slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(strings.ToLower(name), s) }) {
			return nil
		}
		switch info, err := os.Stat(full); {
		case err != nil:
			errs = append(errs, err)
		case !info.Mode().IsRegular():
		case entry.Type()&fs.ModeSymlink != 0 && !staysIn(root, full):
			errs = append(errs, fmt.Errorf("%s: is a link to a file out of %s: name it, to import it", full, path))
		default:
			files = append(files, File{Path: full, Size: info.Size()})
		}
		return nil
	})
	return files, errors.Join(append(errs, walked)...)
}

// staysIn tells whether a link leads to something below a folder, which has no links in
// its path.
func staysIn(root, link string) bool {
	to, err := filepath.EvalSymlinks(link)
	if err != nil {
		return false
	}
	below, err := filepath.Rel(root, to)
	return err == nil && filepath.IsLocal(below)
}
