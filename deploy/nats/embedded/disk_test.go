package embedded

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the server has stored counts as its share, or a log that grows would leave itself less and less room.
func TestTheShareOfTheDiskCountsWhatADirectoryBehindALinkHolds(t *testing.T) {
	t.Parallel()
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	file := filepath.Join(dir, "stored")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	const sparse = 1 << 40
	require.NoError(t, os.Truncate(file, sparse))
	for _, path := range []string{dir, link} {
		share, err := storeShare(path)
		require.NoError(t, err)
		require.Greater(t, share, int64(sparse)/2)
	}
}
