// Package writefile writes files completely or not at all.
package writefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Write writes a regular file completely or not at all. An existing file keeps its
// permissions and its owner, or is not changed; a new one is readable only by its owner. It follows links and writes their
// target. Anything else, such as a device, a FIFO or an open file of this process
// (/dev/fd/N), is opened and written to, never replaced.
func Write(path string, content io.Reader) error {
	info, err := os.Stat(path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a folder: name a file", path)
	case err == nil && (!info.Mode().IsRegular() || isOpenFile(path)):
		return writeInto(path, content)
	}
	if path, err = Follow(path); err != nil {
		return err
	}
	return replace(path, info, content)
}

// isOpenFile reports whether a path names a file that this process already has open.
func isOpenFile(path string) bool {
	return strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/dev/std") || strings.HasPrefix(path, "/proc/")
}

// maxLinks is the maximum number of consecutive links to follow.
const maxLinks = 40

// Follow resolves the links of a path; the last target need not exist.
func Follow(path string) (string, error) {
	for range maxLinks {
		folder, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "", err
		}
		path = filepath.Join(folder, filepath.Base(path))
		to, err := os.Readlink(path)
		if err != nil { // not a link, or it does not exist
			return path, nil
		}
		if !filepath.IsAbs(to) {
			to = folder + string(filepath.Separator) + to
		}
		path = to
	}
	return "", fmt.Errorf("%s: more than %d consecutive links", path, maxLinks)
}

// writeInto writes to the existing file. Appending makes no difference to a device or a
// FIFO; a regular file that /dev/fd names keeps what was written to it before.
func writeInto(path string, content io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

// replace replaces a regular file; before describes the old one, nil if there is none.
func replace(path string, before fs.FileInfo, content io.Reader) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if before != nil {
		if err = keepOwner(f, before); err != nil {
			return err
		}
		if err = f.Chmod(before.Mode().Perm()); err != nil {
			return err
		}
	}
	if _, err = io.Copy(f, content); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
