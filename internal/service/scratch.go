package service

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

const (
	// scratchPrefix begins the names of the directories that a verification works in.
	scratchPrefix = "verify-"
	// scratchLock is the file that a process has locked, with others, while it works in
	// one of them.
	scratchLock = "verify.lock"
)

// makeScratch makes a directory for a verification, until remove is called.
func makeScratch(data string) (dir string, remove func() error, err error) {
	lock := flock.New(filepath.Join(data, scratchLock))
	if err := lock.RLock(); err != nil {
		return "", nil, err
	}
	if dir, err = os.MkdirTemp(data, scratchPrefix); err != nil {
		return "", nil, errors.Join(err, lock.Unlock())
	}
	return dir, func() error { return errors.Join(os.RemoveAll(dir), lock.Unlock()) }, nil
}

// removeScratch removes what verifications left behind whose processes were killed,
// unless one goes on, of this process or of another one on the same directory.
func removeScratch(data string) error {
	left, err := filepath.Glob(filepath.Join(data, scratchPrefix+"*"))
	if err != nil || len(left) == 0 {
		return err
	}
	lock := flock.New(filepath.Join(data, scratchLock))
	alone, err := lock.TryLock()
	if err != nil || !alone {
		return err
	}
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return errors.Join(err, lock.Unlock())
}
