package sqlitestore_test

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

// nobody is a user that owns none of the files of a test.
const nobody = 65534

// SQLite opens a file that it may not write for reading alone, and the connection stays that way when the file becomes
// writable. The program must end, so that whoever restarts it opens the file again.
func TestAFileThatCanOnlyBeReadIsNotOpenedForWriting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "graph-1.db")
	model, err := sqlitestore.OpenGraph(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, model.Close())

	require.NoError(t, os.Chmod(path, 0o444))
	if os.Geteuid() == 0 { // root writes everything: let this thread open files as nobody
		require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
		require.NoError(t, os.Chmod(dir, 0o777))
		require.NoError(t, os.Chmod(path+".lock", 0o666))
		runtime.LockOSThread() // never unlocked, so that the thread ends with the test
		require.NoError(t, syscall.Setfsuid(nobody))
		t.Cleanup(func() { require.NoError(t, syscall.Setfsuid(0)) })
	}
	_, err = sqlitestore.OpenGraph(t.Context(), path)
	require.ErrorIs(t, err, projection.ErrDisk)
	require.ErrorContains(t, err, "read-only")
}
