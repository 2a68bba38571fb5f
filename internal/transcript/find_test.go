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

func TestFindFollowsNoLinkOutOfAFolderUnlessNamed(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("{}"), 0o600))
	inside := filepath.Join(dir, "a.jsonl")
	require.NoError(t, os.WriteFile(inside, []byte("{}"), 0o600))
	out, stays := filepath.Join(dir, "out.jsonl"), filepath.Join(dir, "stays.jsonl")
	require.NoError(t, os.Symlink(outside, out))
	require.NoError(t, os.Symlink("a.jsonl", stays))

	files, err := Find([]string{dir})
	assert.Equal(t, []File{{Path: inside, Size: 2}, {Path: stays, Size: 2}}, files)
	require.EqualError(t, err, out+": is a link to a file outside "+dir+": name it in the command to import it")

	files, err = Find([]string{out})
	require.NoError(t, err)
	assert.Equal(t, []File{{Path: out, Size: 2, Named: true}}, files)
}

func TestFindNamesUnreadablePathsAndReturnsTheRest(t *testing.T) {
	files, err := Find([]string{"testdata/neutral.jsonl", "testdata/absent.jsonl", os.DevNull})
	assert.Len(t, files, 1)
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "absent.jsonl")
	assert.ErrorContains(t, err, os.DevNull+": is neither a file nor a folder")
}
