//go:build unix

package neo4jdeploy

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// storeHolder returns the process that has a directory's store open, 0 if none. Every
// running Neo4j holds a lock on its store.
func storeHolder(dir string) int {
	file, err := os.Open(filepath.Join(dir, "data", "databases", "store_lock"))
	if err != nil {
		return 0
	}
	defer file.Close()
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	if err := syscall.FcntlFlock(file.Fd(), syscall.F_GETLK, &lock); err != nil || lock.Type == syscall.F_UNLCK {
		return 0
	}
	return int(lock.Pid)
}
