package connect

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEmptyFoldersThatConnectMadeAreRemoved(t *testing.T) {
	for _, agent := range agents {
		home, options := machine(t)
		o := options(agent.name)
		o.Made = filepath.Join(home, "state", "made")
		before, err := filepath.Glob(filepath.Join(home, ".*"))
		require.NoError(t, err)
		_, err = Connect(t.Context(), o)
		require.NoError(t, err)
		_, err = Connect(t.Context(), o)
		require.NoError(t, err)
		o.DryRun = true
		_, err = Disconnect(t.Context(), o)
		require.NoError(t, err)
		require.FileExists(t, o.Made)
		o.DryRun = false
		_, err = Disconnect(t.Context(), o)
		require.NoError(t, err)
		after, err := filepath.Glob(filepath.Join(home, ".*"))
		require.NoError(t, err)
		require.Equal(t, before, after, agent.name)
		require.NoFileExists(t, o.Made)
		_, err = Disconnect(t.Context(), o)
		require.NoError(t, err)
	}
}

func TestFoldersOfOthersAndThoseInUseStay(t *testing.T) {
	home, options := machine(t)
	theirs := filepath.Join(home, ".claude")
	require.NoError(t, os.Mkdir(theirs, 0o700))
	o := options(ClaudeCode)
	o.Made = filepath.Join(home, "state", "made")
	_, err := Connect(t.Context(), o)
	require.NoError(t, err)
	_, err = Disconnect(t.Context(), o)
	require.NoError(t, err)
	require.DirExists(t, theirs, "it was there before")

	require.NoError(t, os.Remove(theirs))
	_, err = Connect(t.Context(), o)
	require.NoError(t, err)
	history := filepath.Join(theirs, "history.jsonl")
	put(t, history, "{}\n")
	_, err = Disconnect(t.Context(), o)
	require.NoError(t, err)
	require.FileExists(t, history)
	require.NoError(t, os.Remove(history))
	_, err = Disconnect(t.Context(), o)
	require.NoError(t, err)
	require.NoDirExists(t, theirs, "what it made is still known")
}

func TestALinkInThePlaceOfAFolderStays(t *testing.T) {
	home, options := machine(t)
	settings := filepath.Join(home, ".claude")
	o := options(ClaudeCode)
	o.Made = filepath.Join(home, "state", "made")
	_, err := Connect(t.Context(), o)
	require.NoError(t, err)
	moved := filepath.Join(home, "dotfiles")
	require.NoError(t, os.Rename(settings, moved))
	require.NoError(t, os.Symlink(moved, settings))
	_, err = Disconnect(t.Context(), o)
	require.NoError(t, err)
	_, err = os.Lstat(settings)
	require.NoError(t, err, "the user made it")
}
