package service

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

const (
	// scratchPrefix is the prefix of the directories in which verifications work.
	scratchPrefix = "verify-"
	// scratchLock is the file on which a process holds a shared lock while it works in one
	// of them.
	scratchLock = "verify.lock"
)

// makeScratch creates a directory for a verification; remove deletes it.
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

// RemoveScratch removes the directories of verifications whose processes were killed. It
// does nothing while any process runs a verification in the same data directory.
func RemoveScratch(data string) error {
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
