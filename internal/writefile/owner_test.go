//go:build unix

package writefile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFileKeepsItsOwner(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(path, []byte("one"), 0o600))
	owner := func() [2]uint32 {
		info, err := os.Stat(path)
		require.NoError(t, err)
		s := info.Sys().(*syscall.Stat_t)
		return [2]uint32{s.Uid, s.Gid}
	}
	mine := owner()
	if os.Chown(path, 65534, 65534) != nil { // not root, which may give a file only to groups that it is in
		groups, err := os.Getgroups()
		require.NoError(t, err)
		for _, group := range groups {
			if uint32(group) != mine[1] {
				require.NoError(t, os.Chown(path, -1, group))
			}
		}
	}
	given := owner()
	if given == mine {
		t.Skip("NOT RUN: only root, or a user in several groups, can give a file away")
	}
	require.NoError(t, Write(path, strings.NewReader("two")))
	require.Equal(t, given, owner())
}
