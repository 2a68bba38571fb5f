package projection_test

import (
	"database/sql"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

func TestAProjectorHaltsAtADamagedReadModelAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.many(100, 3)
	pr := b.start(graph.Projection())
	b.awaitAll(pr)
	pr.Stop()
	require.NoError(t, b.store.Close())

	db, err := sql.Open("sqlite", b.path)
	require.NoError(t, err)
	var offset int64
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT (rootpage - 1) * 4096 FROM sqlite_schema WHERE name = 'checkpoint'").Scan(&offset))
	require.NoError(t, db.Close())
	f, err := os.OpenFile(b.path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, 4096), offset)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	b.openStore()
	pr = b.start(graph.Projection())
	await(t, pr, "is halted", isHalted)
	s := pr.Status()[0]
	require.Contains(t, s.Error, "the read model graph is damaged")
	require.Contains(t, s.Error, "mneme rebuild graph")
	require.Zero(t, s.Retries, "trying again does not help")
	_, err = b.store.Checkpoints(t.Context())
	require.ErrorIs(t, err, projection.ErrDamaged)
}
