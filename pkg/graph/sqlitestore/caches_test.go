package sqlitestore

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Not parallel, because the limit is that of the whole process.
func TestCachesOfAllConnectionsAddUpToTheLimit(t *testing.T) {
	const limit = 96 << 20
	LimitCaches(limit)
	defer LimitCaches(0)
	dir := t.TempDir()
	took := int64(0)
	for _, name := range []string{
		GraphCodec.Projection, FilesCodec.Projection, SummariesCodec.Projection, ProjectsCodec.Projection, InsightCodec.Projection,
		CodebaseCodec.Projection, EmbeddingsCodec.Projection, "cache",
	} {
		d, err := openTables(t.Context(), Path(dir, name, 1), cacheSchema, cacheVersion)
		require.NoError(t, err)
		defer func() { require.NoError(t, d.close()) }()
		var writer, reader int64 // in KiB, below zero
		require.NoError(t, d.writer.QueryRowContext(t.Context(), "PRAGMA cache_size").Scan(&writer))
		require.NoError(t, d.read.QueryRowContext(t.Context(), "PRAGMA cache_size").Scan(&reader))
		took -= (writer + readers*reader) << 10 * 2 // the driver takes twice as much
	}
	require.LessOrEqual(t, took, int64(limit))
	require.Greater(t, took, int64(limit*9/10))
}
