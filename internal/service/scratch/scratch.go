// Package scratch makes the directories in which read models are verified.
package scratch

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"
)

const (
	// prefix is the prefix of the directories in which verifications work.
	prefix = "verify-"
	// lockFile is the file on which a process holds a shared lock while it works in one
	// of them.
	lockFile = "verify.lock"
)

// Make creates a directory for a verification; remove deletes it.
func Make(data string) (dir string, remove func() error, err error) {
	lock := flock.New(filepath.Join(data, lockFile))
	if err := lock.RLock(); err != nil {
		return "", nil, err
	}
	if dir, err = os.MkdirTemp(data, prefix); err != nil {
		return "", nil, errors.Join(err, lock.Unlock())
	}
	return dir, func() error { return errors.Join(os.RemoveAll(dir), lock.Unlock()) }, nil
}

// Clean removes the directories of verifications whose processes were killed. It
// does nothing while any process runs a verification in the same data directory.
func Clean(data string) error {
	left, err := os.ReadDir(data)
	left = slices.DeleteFunc(left, func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), prefix) })
	if err != nil || len(left) == 0 {
		return err
	}
	lock := flock.New(filepath.Join(data, lockFile))
	alone, err := lock.TryLock()
	if err != nil || !alone {
		return err
	}
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(filepath.Join(data, dir.Name())))
	}
	return errors.Join(err, lock.Unlock())
}
