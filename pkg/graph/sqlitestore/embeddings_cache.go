package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"

	"mneme.dev/mneme/pkg/graph"
)

// EmbeddingsCache is a [graph.EmbeddingsCache] in SQLite.
type EmbeddingsCache struct{ *db }

var _ graph.EmbeddingsCache = (*EmbeddingsCache)(nil)

// OpenEmbeddingsCache opens or creates a cache, and locks it for this process. It returns
// [ErrLocked] or projection.ErrRebuild, see the package comment.
func OpenEmbeddingsCache(ctx context.Context, path string) (*EmbeddingsCache, error) {
	d, err := openTables(ctx, path, cacheSchema, cacheVersion)
	if err != nil {
		return nil, err
	}
	return &EmbeddingsCache{d}, nil
}

// Close implements graph.EmbeddingsCache. It is idempotent.
func (c *EmbeddingsCache) Close() error { return c.close() }

// Load implements graph.EmbeddingsCache.
func (c *EmbeddingsCache) Load(ctx context.Context, keys []graph.EmbeddingKey) ([][]byte, error) {
	vectors := make([][]byte, len(keys))
	err := c.Snapshot(ctx, func(q Queryer) error {
		return Selection{"vector", "cached_embedding", []string{"key"}}.lookup(q, len(keys), func(args []any, i int) []any {
			return append(args, keys[i][:])
		}, func(rows *sql.Rows) error {
			var i int
			var vector []byte
			err := rows.Scan(&i, &vector)
			vectors[i] = append([]byte{}, vector...) // an empty one may come as nil
			return err
		})
	})
	return vectors, err
}

// Store implements graph.EmbeddingsCache.
func (c *EmbeddingsCache) Store(ctx context.Context, keys []graph.EmbeddingKey, vectors [][]byte) error {
	if len(keys) != len(vectors) {
		return fmt.Errorf("%d vectors of %d keys", len(vectors), len(keys))
	}
	return c.transact(ctx, func() error {
		_, err := c.writer.insert(ctx, Insertion{"cached_embedding (key, vector)", 2, "ON CONFLICT (key) DO NOTHING"}, len(keys), func(args []any, i int) []any {
			return append(args, keys[i][:], append([]byte{}, vectors[i]...)) // nil would be NULL
		})
		return err
	})
}
