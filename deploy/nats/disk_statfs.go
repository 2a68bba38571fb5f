//go:build linux || darwin || freebsd

package natsdeploy

import "syscall"

// FreeBytes is what a process without privileges can still write under dir, if that
// can be told.
func FreeBytes(dir string) (int64, bool) {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil {
		return 0, false
	}
	return int64(uint64(st.Bavail) * uint64(st.Bsize)), true
}
