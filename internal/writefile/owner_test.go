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
	if os.Chown(path, 65534, 65534) != nil {
		t.Skip("only root can give a file away")
	}
	require.NoError(t, Write(path, strings.NewReader("two")))
	info, err := os.Stat(path)
	require.NoError(t, err)
	owner := info.Sys().(*syscall.Stat_t)
	require.Equal(t, []uint32{65534, 65534}, []uint32{owner.Uid, owner.Gid})
}
