package embedded

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sync/errgroup"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

// minStream is the smallest stream worth creating: some of the largest events.
const minStream int64 = 64 << 20

// storeShare returns how many bytes the server may store in dir: 80 % of the free space plus
// the bytes already stored, or the default if the free space is unknown.
func storeShare(dir string) (int64, error) {
	free, ok := natsdeploy.FreeBytes(dir)
	if !ok {
		return natsdeploy.DefaultMaxBytes + storeHeadroom, nil
	}
	dir, err := filepath.EvalSymlinks(dir) // WalkDir does not follow a link
	if err != nil {
		return 0, err
	}
	var held int64
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return ignoreMissing(err)
		}
		fi, err := d.Info()
		if err == nil {
			held += fi.Size()
		}
		return ignoreMissing(err)
	})
	return max((free+held)/5*4, 1), err // 0 would mean "the default" to the server
}

// newStreamSize returns the size of a new stream on a server with this share of the disk:
// half of it, because the read models need about as much.
func newStreamSize(share int64) (int64, error) {
	size := min(natsdeploy.DefaultMaxBytes, share/2)
	if size < minStream {
		return 0, fmt.Errorf("%w: a new stream would get %d MiB, it needs at least %d", natsdeploy.ErrNoSpace, size>>20, minStream>>20)
	}
	return size, nil
}

// holdsEvents reports whether there are non-empty message blocks.
func holdsEvents(streamDir string) (bool, error) {
	files, err := os.ReadDir(filepath.Join(streamDir, "msgs"))
	if err != nil {
		return false, ignoreMissing(err)
	}
	for _, file := range files {
		if fi, err := file.Info(); err == nil && filepath.Ext(file.Name()) == ".blk" && fi.Size() > 0 {
			return true, nil
		}
	}
	return false, nil
}

// openable returns an error if a file of a stream can't be opened, or its end not be read, or if the stream's directory
// takes no new file. The server must not start then, because it removes the stream with all its events: for example when
// another user wrote one of the files, or the file system has no inode left.
func openable(streamsDir string) error {
	var files errgroup.Group
	files.SetLimit(filesAtOnce)
	var check fs.WalkDirFunc
	check = func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, syscall.ENOTDIR) {
			return nil // the server's own error says more
		}
		if err != nil {
			return ignoreMissing(err)
		}
		if d.Type() == fs.ModeSymlink {
			if info, err := os.Stat(path); err == nil && info.IsDir() { // on another disk
				return filepath.WalkDir(path+string(filepath.Separator), check)
			}
		}
		if d.IsDir() {
			if filepath.Dir(filepath.Clean(path)) != streamsDir {
				return nil
			}
			f, err := os.CreateTemp(path, "_test_") // as the server does
			if err != nil {
				return err
			}
			return errors.Join(f.Close(), os.Remove(f.Name()))
		}
		files.Go(func() error { return readable(path) })
		return nil
	}
	err := filepath.WalkDir(streamsDir, check)
	return errors.Join(err, files.Wait())
}

// filesAtOnce is how many files are tried at the same time: a large log has thousands, and each is a request of its own to a
// disk that answers many at once.
const filesAtOnce = 64

// readable returns an error if a file can't be opened, or its end not be read.
func readable(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil && size > 0 {
		_, err = f.ReadAt(make([]byte, 1), size-1)
	}
	return err
}

// syncMetadata makes the stream's existence durable: its files except the
// message blocks (synced on each write), and every directory from dir's parent
// down.
func syncMetadata(dir, streamDir string) error {
	rel, err := filepath.Rel(dir, streamDir)
	if err != nil {
		return err
	}
	for rel != "." {
		rel = filepath.Dir(rel)
		if err := syncFile(filepath.Join(dir, rel)); err != nil {
			return err
		}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := syncFile(filepath.Dir(abs)); err != nil && !errors.Is(err, fs.ErrPermission) { // we may have access to dir only
		return err
	}
	return filepath.WalkDir(streamDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) == ".blk" {
			return ignoreMissing(err)
		}
		return ignoreMissing(syncFile(path))
	})
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || fi.IsDir() && runtime.GOOS == "windows" { // Windows cannot sync directories
		return err
	}
	return f.Sync()
}

// ignoreMissing ignores missing files, because the server renames and removes files while we walk.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func isAddrInUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }
