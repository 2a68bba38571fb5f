package storetest

import (
	"context"
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// CacheBackend tells the suite how to use a cache of embeddings.
type CacheBackend struct {
	// Open opens the cache of a directory, and creates it if it does not exist. A backend that
	// keeps nothing in directories has one cache for all.
	Open func(ctx context.Context, dir string) (graph.EmbeddingsCache, error)
	// Prefix begins the keys of all cases. It may take up to half of a key.
	Prefix []byte
}

// RunEmbeddingsCache runs every case for a cache of embeddings.
func RunEmbeddingsCache(t *testing.T, b CacheBackend) {
	for _, c := range []struct {
		name string
		run  func(*cacheBench)
	}{
		{"what was stored is held after a restart, and what was not is nil", (*cacheBench).held},
		{"storing twice is harmless, and what was there stays", (*cacheBench).twice},
		{"an empty vector is held, nil too", (*cacheBench).empty},
		{"nothing is asked for, and nothing stored", (*cacheBench).nothing},
		{"a key without a vector is refused", (*cacheBench).unequal},
		{"5,000 keys at once", (*cacheBench).many},
		{"many store the same at once", (*cacheBench).together},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("", "storetest")
			require.NoError(t, err)
			bench := &cacheBench{T: t, CacheBackend: b, dir: dir}
			bench.cache, err = b.Open(t.Context(), dir)
			require.NoError(t, err)
			t.Cleanup(func() {
				require.NoError(t, bench.cache.Close())
				_ = os.RemoveAll(dir)
			})
			c.run(bench)
		})
	}
}

type cacheBench struct {
	*testing.T
	CacheBackend
	dir   string
	cache graph.EmbeddingsCache
}

// keys returns the first n keys of this bench.
func (b *cacheBench) keys(n int) []graph.EmbeddingKey {
	list := make([]graph.EmbeddingKey, n)
	for i := range list {
		var text [8]byte
		binary.BigEndian.PutUint64(text[:], uint64(i))
		digest := events.DigestOf(b.dir, string(text[:]))
		copy(list[i][copy(list[i][:], b.Prefix):], digest[:])
	}
	return list
}

func (b *cacheBench) load(keys ...graph.EmbeddingKey) [][]byte {
	b.Helper()
	vectors, err := b.cache.Load(b.Context(), keys)
	require.NoError(b, err)
	return vectors
}

func (b *cacheBench) store(keys []graph.EmbeddingKey, vectors ...[]byte) {
	b.Helper()
	require.NoError(b, b.cache.Store(b.Context(), keys, vectors))
}

func (b *cacheBench) held() {
	k := b.keys(3)
	b.store(k[:2], []byte{1, 0, 255}, []byte{4})
	for range 2 {
		require.Equal(b, [][]byte{{4}, nil, {1, 0, 255}, {4}}, b.load(k[1], k[2], k[0], k[1]))
		require.NoError(b, b.cache.Close())
		var err error
		b.cache, err = b.Open(b.Context(), b.dir)
		require.NoError(b, err)
	}
}

func (b *cacheBench) twice() {
	k := b.keys(2)
	b.store(k[:1], []byte{1})
	b.store(k, []byte{9}, []byte{2})
	b.store([]graph.EmbeddingKey{k[1], k[1], k[0]}, []byte{9}, []byte{9}, []byte{1})
	require.Equal(b, [][]byte{{1}, {2}}, b.load(k...))
}

func (b *cacheBench) empty() {
	k := b.keys(3)
	b.store(k[:2], []byte{}, nil)
	require.Equal(b, [][]byte{{}, {}, nil}, b.load(k...))
}

func (b *cacheBench) nothing() {
	b.store(nil)
	require.Empty(b, b.load())
}

func (b *cacheBench) unequal() {
	k := b.keys(2)
	require.Error(b, b.cache.Store(b.Context(), k, [][]byte{{1}}))
	require.Equal(b, [][]byte{nil, nil}, b.load(k...))
}

func (b *cacheBench) many() {
	k := b.keys(5_000)
	vectors := make([][]byte, len(k))
	for i := range vectors {
		vectors[i] = k[i][:]
	}
	b.store(k[1:], vectors[1:]...)
	vectors[0] = nil
	require.Equal(b, vectors, b.load(k...))
}

func (b *cacheBench) together() {
	k := b.keys(200)
	vectors := make([][]byte, len(k))
	for i := range vectors {
		vectors[i] = k[i][:]
	}
	var programs errgroup.Group
	for n := range 8 {
		programs.Go(func() error { // each in a different order
			keys, values := make([]graph.EmbeddingKey, len(k)), make([][]byte, len(k))
			for i := range k {
				from := (i*7 + n*31) % len(k)
				keys[i], values[i] = k[from], vectors[from]
			}
			return b.cache.Store(b.Context(), keys, values)
		})
	}
	require.NoError(b, programs.Wait())
	require.Equal(b, vectors, b.load(k...))
}
