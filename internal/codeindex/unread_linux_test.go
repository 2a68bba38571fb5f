package codeindex

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// nobody is a user that owns none of the files of a test.
const nobody = 65534

// asNobody lets this goroutine read only what everybody may read, if the test runs as root. It may write the state.
func (b *bench) asNobody(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	for _, folder := range []string{filepath.Dir(b.Root), b.Root, filepath.Dir(filepath.Dir(b.State)), filepath.Dir(b.State)} {
		require.NoError(t, os.Chmod(folder, 0o777))
	}
	require.NoError(t, os.Chown(b.State, nobody, -1))
	runtime.LockOSThread() // never unlocked, so that the thread ends with the test
	require.NoError(t, syscall.Setfsuid(nobody))
	t.Cleanup(func() { require.NoError(t, syscall.Setfsuid(0)) })
}

func TestOfAFolderThatCannotBeReadNothingIsGoneAndOfOthersItIs(t *testing.T) {
	b := setup(t)
	for _, name := range []string{"closed/a.go", "listed/a.go", "open/a.go", "open/b.go"} {
		b.write(t, name, goFile("A"))
	}
	b.run(t)
	for folder, mode := range map[string]os.FileMode{"closed": 0, "listed": 0o444} { // of a folder that is listed, no file can be looked at
		folder = filepath.Join(b.Root, folder)
		require.NoError(t, os.Chmod(folder, mode))
		t.Cleanup(func() { require.NoError(t, os.Chmod(folder, 0o755)) })
	}
	require.NoError(t, os.Remove(filepath.Join(b.Root, "open/b.go")))
	b.asNobody(t)
	r, err := Run(context.Background(), b.Options)
	require.ErrorIs(t, err, ErrUnread)
	require.ErrorIs(t, err, os.ErrPermission)
	require.Equal(t, 1, r.Removed)
	require.Len(t, b.index(), 3)
	require.NotContains(t, b.index(), "open/b.go")
}

func TestAFileWhoseNameIsNotUTF8IsLeftOut(t *testing.T) {
	b := setup(t)
	b.write(t, "caf\xe9.go", goFile("A")) // as in Latin-1
	b.write(t, "café.go", goFile("A"))
	r := b.run(t)
	require.Equal(t, map[string]int{"name not in UTF-8": 1}, r.Skipped)
	require.Equal(t, []int{1, 1}, []int{r.Files, r.Indexed})
}
