package writefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestAFileIsWrittenCompletelyOrNotAtAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	broken := io.MultiReader(strings.NewReader("a part"), iotest.ErrReader(errors.New("broke off")))
	require.ErrorContains(t, Write(path, broken), "broke off")
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, list)

	require.NoError(t, Write(path, strings.NewReader("one")))
	require.NoError(t, os.Chmod(path, 0o640))
	require.NoError(t, Write(path, strings.NewReader("two")))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode(), "it keeps its permissions")
	require.ErrorContains(t, Write(dir, strings.NewReader("x")), "is a folder")
}

func TestTheTargetOfALinkIsWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755))
	require.NoError(t, os.Symlink("a/b", filepath.Join(dir, "folder")))
	require.NoError(t, os.Symlink("../target", filepath.Join(dir, "a", "b", "link"))) // a/target, not ./target
	require.NoError(t, os.Symlink("link", filepath.Join(dir, "a", "b", "again")))
	link, target := filepath.Join(dir, "folder", "again"), filepath.Join(dir, "a", "target")
	for _, text := range []string{"made by a link to nothing", "replaced"} {
		require.NoError(t, Write(link, strings.NewReader(text)))
		got, err := os.ReadFile(target)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
	for _, name := range []string{"again", "link"} {
		info, err := os.Lstat(filepath.Join(dir, "a", "b", name))
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&os.ModeSymlink, "%s is still a link", name)
	}
	loop := filepath.Join(dir, "loop")
	require.NoError(t, os.Symlink("loop", loop))
	require.Error(t, Write(loop, strings.NewReader("x")))
}

func TestAFileInSharedMemoryIsReplaced(t *testing.T) {
	t.Parallel()
	folder, err := os.MkdirTemp("/dev/shm", "")
	if err != nil {
		t.Skip("NOT RUN: this system has no /dev/shm that can be written to")
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	path := filepath.Join(folder, "f")
	require.NoError(t, Write(path, strings.NewReader("one")))
	require.NoError(t, Write(path, strings.NewReader("two")))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "two", string(content))
}
