//go:build linux || darwin || freebsd

package natsdeploy

import "syscall"

// FreeBytes returns how many bytes an unprivileged process can still write under dir,
// and whether that is known.
func FreeBytes(dir string) (int64, bool) {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil {
		return 0, false
	}
	return int64(uint64(st.Bavail) * uint64(st.Bsize)), true
}
