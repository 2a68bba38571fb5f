package service_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/service"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
)

func TestOtherProcessesNoticeAReplacedReadModel(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	first, err := instance.Start(t.Context(), instance.Config{Retention: retention, Data: data, Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: settings.Logger(os.Stderr, "error", "text")})
	require.NoError(t, err)
	last := running{t, first}.fill(3, 5)
	models := service.NewModels(data, worker.NewStores(data, settings.Models{}))
	defer func() { require.NoError(t, models.Close()) }()
	serves := func() (generation int, seq uint64) {
		g, err := models.Graph(t.Context())
		require.NoError(t, err)
		defer g.Release()
		list, err := g.Model.Checkpoints(t.Context())
		if err != nil || len(list) == 0 {
			return g.Generation, 0
		}
		return g.Generation, list[0].Seq
	}
	require.Eventually(t, func() bool {
		generation, seq := serves()
		return generation == 1 && seq == last
	}, patience, 10*time.Millisecond)
	require.NoError(t, first.Close())

	path := sqlitestore.Path(filepath.Join(data, "models"), "graph", 1)
	require.NoError(t, os.Truncate(path, 3*4096)) // while a reader has it open
	require.NoError(t, os.RemoveAll(path+"-wal")) // it still holds what was cut off
	upOn(t, data, settings.Models{})
	require.Eventually(t, func() bool {
		generation, seq := serves()
		return generation == 2 && seq == last
	}, patience, 50*time.Millisecond)
	require.FileExists(t, path+".damaged-1")
}

func TestAReadModelWhoseFileWasDeletedIsRebuiltWithoutARestart(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	i := upOn(t, data, settings.Models{})
	last := i.fill(3, 5)
	i.applied(last)
	before := i.readings(3, last)
	require.NoError(t, os.Remove(sqlitestore.Path(filepath.Join(data, "models"), "graph", 1)))
	require.Eventually(t, func() bool { return i.status("graph").Generation == 2 && i.status("graph").State == "live" }, patience, 10*time.Millisecond)
	last = i.publish(turns(t, "c0", 5, 6))
	i.applied(last)
	require.Equal(t, before, i.readings(3, last-4), "as of before")
	i.rebuild("graph")
	require.Equal(t, 3, i.became("graph", "serving").Generation)
	require.NoError(t, i.Close())
	i = upOn(t, data, settings.Models{})
	require.Equal(t, 3, i.status("graph").Generation)
	i.hashes()
}
