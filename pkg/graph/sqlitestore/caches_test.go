package sqlitestore

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Not parallel, because the limit is that of the whole process.
func TestCachesOfAllConnectionsAddUpToTheLimit(t *testing.T) {
	const limit = 96 << 20
	LimitCaches(limit)
	defer LimitCaches(0)
	g, err := OpenGraph(t.Context(), filepath.Join(t.TempDir(), "graph-1.db"))
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Close()) }()
	var writer, reader int64 // in KiB, below zero
	require.NoError(t, g.db.writer.QueryRowContext(t.Context(), "PRAGMA cache_size").Scan(&writer))
	require.NoError(t, g.db.read.QueryRowContext(t.Context(), "PRAGMA cache_size").Scan(&reader))
	took := -(writer + readers*reader) << 10 * 2 * openFiles // the driver takes twice as much
	require.LessOrEqual(t, took, int64(limit))
	require.Greater(t, took, int64(limit*9/10), fmt.Sprint(writer, reader))
}
