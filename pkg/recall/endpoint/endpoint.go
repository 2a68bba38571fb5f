package endpoint

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc/pool"

	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/recall"
)

const (
	// DefaultBatch is how many texts one call has. A passage has at most about 600 characters, and
	// few servers take more texts at once.
	DefaultBatch = 64
	// parallel is how many calls one [Embedder.Embed] makes at once.
	parallel = 2
	// cacheBatch is how many vectors one lookup reads.
	cacheBatch = 1000
	// maxQuery is how much of a query is embedded, in bytes; models do not read more.
	maxQuery = 2_000
)

// Config describes a model and its endpoint.
type Config struct {
	URL        string // of the API, with /v1
	Model      string
	Key        string        // empty for a server that needs none
	Dimensions int           // to request and expect; 0 for the model's own
	Batch      int           // the most texts of a call; 0 for [DefaultBatch]
	Timeout    time.Duration // of one call for messages
	// QueryTimeout is how long a search waits for the vector of its query.
	QueryTimeout time.Duration
}

// Embedder embeds texts; it implements graph.Embedder. It is safe for concurrent use.
type Embedder struct {
	*guarded[[]recall.Vector, Stats]
	config  Config
	cache   graph.EmbeddingsCache
	queries queries

	works      atomic.Bool  // it has embedded something
	dimensions atomic.Int64 // of its vectors, 0 until the first one
}

// Stats counts calls and texts since the model was made.
type Stats struct {
	Texts    int64 // embedded by the endpoint
	Cached   int64 // found in the cache instead
	Calls    int64
	Failures int64 // of calls
	Tokens   int64 // as the endpoint counts them
}

// New makes a model. Cache may be nil, because queries alone need none.
func New(c Config, cache graph.EmbeddingsCache) (*Embedder, error) {
	guarded, err := newGuarded[[]recall.Vector, Stats](c.URL, c.Key, maxBody)
	if err != nil {
		return nil, err
	}
	if c.Model == "" {
		return nil, errors.New("the embedding model has no name")
	}
	c.Batch = cmp.Or(c.Batch, DefaultBatch)
	e := &Embedder{guarded: guarded, config: c, cache: cache}
	e.dimensions.Store(int64(c.Dimensions))
	return e, nil
}

// Model returns the model's name, with its dimensions if they were configured.
func (e *Embedder) Model() string {
	if e.config.Dimensions == 0 {
		return e.config.Model
	}
	return e.config.Model + "/" + strconv.Itoa(e.config.Dimensions)
}

// Embed returns the vectors of a tenant's texts, one for each and of equal length. The vectors that
// it has paid for are kept even if it fails later.
func (e *Embedder) Embed(ctx context.Context, tenant string, texts []string) ([]recall.Vector, error) {
	keys := make([]graph.EmbeddingKey, 0, len(texts))
	known := make(map[graph.EmbeddingKey]recall.Vector, len(texts))
	of := map[graph.EmbeddingKey]string{}
	for _, text := range texts {
		key := e.key(tenant, text)
		if _, ok := of[key]; !ok {
			keys, of[key] = append(keys, key), text
		}
	}
	missing, err := e.load(ctx, keys, known)
	if err != nil {
		return nil, err
	}
	e.count(func(s *Stats) { s.Cached += int64(len(keys) - len(missing)) })
	var mu sync.Mutex
	calls := pool.New().WithMaxGoroutines(parallel).WithContext(ctx).WithFirstError().WithCancelOnError()
	for first := 0; first < len(missing); first += e.config.Batch {
		part := missing[first:min(first+e.config.Batch, len(missing))]
		calls.Go(func(ctx context.Context) error {
			asked := make([]string, len(part))
			for i, key := range part {
				asked[i] = of[key]
			}
			made, err := e.embed(ctx, asked)
			if err != nil {
				return err
			}
			mu.Lock()
			for i, key := range part {
				known[key] = made[i]
			}
			mu.Unlock()
			return e.store(ctx, part, made)
		})
	}
	if err := calls.Wait(); err != nil {
		return nil, err
	}
	list := make([]recall.Vector, len(texts))
	for i, text := range texts {
		list[i] = known[e.key(tenant, text)]
	}
	return list, nil
}

// Query returns the vector of a query. It waits no longer than a search may.
func (e *Embedder) Query(ctx context.Context, text string) (recall.Vector, error) {
	if len(text) > maxQuery {
		text = strings.ToValidUTF8(text[:maxQuery], "")
	}
	if text == "" {
		return nil, nil
	}
	if v, ok := e.queries.get(text); ok {
		return v, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, e.config.QueryTimeout, errSlow)
	defer cancel()
	made, err := e.vectors(ctx, []string{text}, 0)
	if err != nil {
		return nil, err
	}
	e.queries.put(text, made[0])
	return made[0], nil
}

// key returns the cache key of a text.
func (e *Embedder) key(tenant, text string) (key graph.EmbeddingKey) {
	h := sha256.New()
	for _, part := range []string{e.Model(), tenant, text} {
		fmt.Fprintf(h, "%d %s", len(part), part)
	}
	copy(key[:], h.Sum(nil))
	return key
}

// load adds cached vectors to known, and returns the other keys.
func (e *Embedder) load(ctx context.Context, keys []graph.EmbeddingKey, known map[graph.EmbeddingKey]recall.Vector) (missing []graph.EmbeddingKey, err error) {
	for first := 0; first < len(keys); first += cacheBatch {
		part := keys[first:min(first+cacheBatch, len(keys))]
		held, err := e.cache.Load(ctx, part)
		if err != nil {
			return nil, fmt.Errorf("read the cache of embeddings: %w", err)
		}
		for i, data := range held {
			if len(data) == 0 || e.learn(len(data)) != nil {
				missing = append(missing, part[i])
				continue
			}
			list, err := recall.ParseVectors(data, len(data))
			if err != nil {
				return nil, err
			}
			known[part[i]] = list[0]
		}
	}
	return missing, nil
}

func (e *Embedder) store(ctx context.Context, keys []graph.EmbeddingKey, vectors []recall.Vector) error {
	data := make([][]byte, len(vectors))
	for i, v := range vectors {
		data[i] = recall.AppendVector(nil, v, int(e.dimensions.Load()))
	}
	if err := e.cache.Store(ctx, keys, data); err != nil {
		return fmt.Errorf("write the cache of embeddings: %w", err)
	}
	return nil
}

// learn reports whether a vector may have this many dimensions.
func (e *Embedder) learn(dimensions int) error {
	if e.dimensions.CompareAndSwap(0, int64(dimensions)) {
		return nil
	}
	if known := int(e.dimensions.Load()); known != dimensions {
		return wrongDimensions(dimensions, known)
	}
	return nil
}

func wrongDimensions(got, known int) error {
	return fmt.Errorf("the endpoint answers with %d dimensions instead of %d: if it serves another model, give that one another name", got, known)
}
