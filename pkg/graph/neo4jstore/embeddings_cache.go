package neo4jstore

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"

	"mneme.dev/mneme/pkg/graph"
)

// EmbeddingsCache is a [graph.EmbeddingsCache] in the same Neo4j as the read models. Any
// number of processes may use it at once.
type EmbeddingsCache struct{ *db }

var _ graph.EmbeddingsCache = (*EmbeddingsCache)(nil)

// OpenEmbeddingsCache connects and makes the schema. It returns the errors of the package
// comment.
func OpenEmbeddingsCache(ctx context.Context, c Config) (*EmbeddingsCache, error) {
	d, err := openWriter(ctx, c)
	if err != nil {
		return nil, err
	}
	return &EmbeddingsCache{d}, nil
}

// Close implements graph.EmbeddingsCache.
func (c *EmbeddingsCache) Close() error { return c.close() }

const (
	selectCached = "UNWIND $in.keys AS key MATCH (e:CachedEmbedding {key: key}) RETURN key, e.vector"
	saveCached   = "UNWIND $in.rows AS r MERGE (e:CachedEmbedding {key: r[0]}) ON CREATE SET e.vector = r[1]"
)

// Load implements graph.EmbeddingsCache.
func (c *EmbeddingsCache) Load(ctx context.Context, keys []graph.EmbeddingKey) ([][]byte, error) {
	vectors := make([][]byte, len(keys))
	if len(keys) == 0 {
		return vectors, nil
	}
	asked, places := make([]string, 0, len(keys)), make(map[string][]int, len(keys))
	for i := range keys {
		key := hex.EncodeToString(keys[i][:])
		if places[key] == nil {
			asked = append(asked, key)
		}
		places[key] = append(places[key], i)
	}
	err := c.scan(ctx, selectCached, In("keys", asked), func(v *values) {
		key, vector := v.text(), take[[]byte](v)
		for _, i := range places[key] {
			vectors[i] = vector
		}
	})
	return vectors, err
}

// Store implements graph.EmbeddingsCache. It locks keys in sorted order, so that concurrent
// calls cannot deadlock.
func (c *EmbeddingsCache) Store(ctx context.Context, keys []graph.EmbeddingKey, vectors [][]byte) error {
	if len(keys) != len(vectors) {
		return fmt.Errorf("%d vectors of %d keys", len(vectors), len(keys))
	}
	if len(keys) == 0 {
		return nil
	}
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return bytes.Compare(keys[a][:], keys[b][:]) })
	rows := make([]any, len(keys))
	for i, of := range order {
		rows[i] = []any{hex.EncodeToString(keys[of][:]), append([]byte{}, vectors[of]...)} // never nil, which would be stored as no value
	}
	_, err := c.write(ctx, saveCached, In("rows", rows))
	return err
}
