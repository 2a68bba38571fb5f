package embedded

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

// A kill between writing the two files of the stream's configuration leaves the checksum of the earlier one.
func TestALogWhoseServerWasKilledWhileItsConfigurationWasReplacedStarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, sum := range []string{"", "0123456789abcdef"} {
		e, err := Start(t.Context(), Config{Dir: dir, MaxBytes: minStream})
		require.NoError(t, err)
		info, err := e.Apply(t.Context(), natsdeploy.Settings{Partitions: 2})
		require.NoError(t, err)
		require.Equal(t, 2, info.Partitions)
		path := filepath.Join(e.streamDir(), server.JetStreamMetaFileSum)
		before, err := os.ReadFile(path)
		require.NoError(t, err)
		e.Stop()
		stale := func(age time.Duration) {
			t.Helper()
			config, err := os.Stat(filepath.Join(e.streamDir(), server.JetStreamMetaFile))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, []byte(sum), 0o600))
			at := config.ModTime().Add(-age)
			require.NoError(t, os.Chtimes(path, at, at))
		}
		mended := func() string {
			t.Helper()
			require.NoError(t, mendChecksum(filepath.Dir(path)))
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			return string(after)
		}
		if stale(-time.Second); sum != "" {
			require.Equal(t, sum, mended(), "a configuration that does not fit a later checksum is damaged")
		}
		for _, age := range []time.Duration{time.Second, 0} {
			stale(age)
			require.Equal(t, string(before), mended(), "as the server writes it")
		}
		stale(time.Second) // and now the start of the server repairs it
	}
	e, err := Start(t.Context(), Config{Dir: dir, MaxBytes: minStream})
	require.NoError(t, err)
	defer e.Stop()
	info, err := e.Apply(t.Context(), natsdeploy.Settings{Partitions: 5})
	require.NoError(t, err)
	require.Equal(t, 2, info.Partitions, "it is the same log")
}
