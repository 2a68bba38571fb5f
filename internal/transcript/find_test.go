package transcript

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFindTakesNamedFilesAndRecordingsInFolders(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.jsonl", "a/.claude/z.jsonl.gz", "a/x.NDJSON", "a/index.json", "notes.txt", "c.ndjson.gz"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o644))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "folder.jsonl"), 0o755))
	require.NoError(t, os.Symlink(filepath.Join(dir, "a"), filepath.Join(dir, "link")))

	t.Chdir(dir)
	files, err := Find([]string{dir, filepath.Join(dir, "notes.txt"), filepath.Join(dir, "b.jsonl"), "./b.jsonl", "link"})
	require.NoError(t, err)
	var names []string
	for _, f := range files {
		assert.Equal(t, int64(2), f.Size)
		names = append(names, f.Path)
	}
	assert.Equal(t, []string{
		filepath.Join(dir, "a/.claude/z.jsonl.gz"), filepath.Join(dir, "a/x.NDJSON"), filepath.Join(dir, "b.jsonl"),
		filepath.Join(dir, "c.ndjson.gz"), filepath.Join(dir, "notes.txt"), "link/.claude/z.jsonl.gz", "link/x.NDJSON",
	}, names)
}

func TestFindNamesUnreadablePathsAndReturnsTheRest(t *testing.T) {
	files, err := Find([]string{"testdata", "testdata/absent.jsonl", os.DevNull})
	assert.Len(t, files, 2)
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "absent.jsonl")
	assert.ErrorContains(t, err, os.DevNull+": is neither a file nor a folder")
}
