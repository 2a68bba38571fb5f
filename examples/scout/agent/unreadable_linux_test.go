package agent

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// nobody is a user that owns none of the files of a test.
const nobody = 65534

func TestUnreadableFileIsReportedAndSkipped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := folder(t, repository())
	path := filepath.Join(dir, "store/closed.go")
	require.NoError(t, os.WriteFile(path, []byte("package store\n"), 0))
	if os.Geteuid() == 0 { // root reads everything: let this thread open files as nobody
		require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
		require.NoError(t, filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error { // whatever the umask is
			if err != nil || name == path {
				return err
			}
			return os.Chmod(name, 0o755)
		}))
		runtime.LockOSThread() // never unlocked, so that the thread ends with the test
		require.NoError(t, syscall.Setfsuid(nobody))
		t.Cleanup(func() { require.NoError(t, syscall.Setfsuid(0)) })
	}
	_, err := os.ReadFile(path)
	require.ErrorIs(t, err, os.ErrPermission)
	answer := b.ask(dir, question)
	require.Equal(t, "store/position.go", answer.Places[0].File)
	require.Contains(t, answer.Text, "1 file could not be read.")
	requirePaired(t, b.recorded())
}
