package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

func TestTheCheckedInSchemasAreWhatTheStructsSay(t *testing.T) {
	t.Chdir("../..")
	files, err := generate()
	require.NoError(t, err)
	require.Len(t, files, len(events.Types()), "one schema for each type of the vocabulary")
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("schemas", name))
		require.NoError(t, err, "run go generate ./events")
		require.Equal(t, string(want), string(got), "run go generate ./events")
	}
	onDisk, err := filepath.Glob("schemas/*.json")
	require.NoError(t, err)
	require.Len(t, onDisk, len(files), "a schema without a type")
}
