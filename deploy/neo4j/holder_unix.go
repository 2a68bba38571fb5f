//go:build unix

package neo4jdeploy

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// storeHolder is the process that has the store of a directory open, 0 if none: the
// one that holds the lock which every Neo4j holds while it runs, whoever started it.
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
