//go:build linux || darwin || freebsd

package natsdeploy

import "syscall"

// freeBytes is what a process without privileges can still write under dir.
func freeBytes(dir string) (int64, bool) {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil {
		return 0, false
	}
	return int64(uint64(st.Bavail) * uint64(st.Bsize)), true
}
