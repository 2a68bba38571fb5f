//go:build unix

package writefile

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a file the owner and the group of the one that it replaces. If it can't, the group need only stay if it
// has rights that others have not.
func keepOwner(f *os.File, before fs.FileInfo) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	now, ok := info.Sys().(*syscall.Stat_t)
	was, known := before.Sys().(*syscall.Stat_t)
	if !ok || !known || now.Uid == was.Uid && now.Gid == was.Gid {
		return nil
	}
	perm := before.Mode().Perm()
	ofGroup := perm>>3&7&^(perm&7) != 0
	if err := f.Chown(int(was.Uid), int(was.Gid)); err != nil && (now.Uid != was.Uid || ofGroup) {
		return fmt.Errorf("%s belongs to user %d and group %d, which a new version of it can't be given: %w", before.Name(), was.Uid, was.Gid, err)
	}
	return nil
}
