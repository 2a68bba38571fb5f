package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// writeFile writes a regular file, which is then there whole or not at all; one that was
// there keeps its permissions, a new one is for its owner only. Links are followed: their
// target is written. Anything else, such as a device or a FIFO, and any file of this
// process (/dev/fd/N), is opened and written to, never replaced.
func writeFile(path string, content io.Reader) error {
	info, err := os.Stat(path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err == nil && info.IsDir():
		return fmt.Errorf("%s: is a folder, name a file", path)
	case err == nil && (!info.Mode().IsRegular() || isOpenFile(path)):
		return writeInto(path, content)
	}
	if path, err = followed(path); err != nil {
		return err
	}
	return replace(path, info, content)
}

// isOpenFile tells whether a path names what this process has open already.
func isOpenFile(path string) bool {
	return strings.HasPrefix(path, "/dev/") || strings.HasPrefix(path, "/proc/")
}

// maxLinks is how many links in a row are followed.
const maxLinks = 40

// followed is where a path leads, of which the last link may lead to nothing yet.
func followed(path string) (string, error) {
	for range maxLinks {
		folder, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "", err
		}
		path = filepath.Join(folder, filepath.Base(path))
		to, err := os.Readlink(path)
		if err != nil { // it is no link, or is not there
			return path, nil
		}
		if !filepath.IsAbs(to) {
			to = folder + string(filepath.Separator) + to
		}
		path = to
	}
	return "", fmt.Errorf("%s: more than %d links in a row", path, maxLinks)
}

// writeInto writes to what is there. Appending makes no difference to a device or a FIFO;
// a regular file that /dev/fd names keeps what was written to it before.
func writeInto(path string, content io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

// replace puts a new file in place of a regular one, which before describes, nil if there
// is none.
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
