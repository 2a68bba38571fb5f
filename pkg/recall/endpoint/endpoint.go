package endpoint

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
	"github.com/sourcegraph/conc/pool"

	"mneme.dev/mneme/internal/modelapi"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/recall"
)

const (
	// DefaultBatch is how many texts one call has. A passage has at most some 600
	// characters, and few servers take more at once.
	DefaultBatch = 64
	// parallel is how many calls of one [Embedder.Embed] are under way at once.
	parallel = 2
	// cacheBatch is how many vectors are looked up at once.
	cacheBatch = 1000
	// maxQuery is how much of a query is embedded, in bytes: models read no more.
	maxQuery = 2_000
)

// Config says where a model is.
type Config struct {
	URL        string // of the API, with /v1
	Model      string
	Key        string        // empty for a server that asks for none
	Dimensions int           // asked for and expected; 0 for those that the model has
	Batch      int           // texts of a call at most; 0 for [DefaultBatch]
	Timeout    time.Duration // of one call for messages
	// QueryTimeout is how long a search waits for the vector of its query.
	QueryTimeout time.Duration
}

// Embedder embeds texts; it implements graph.Embedder. It is safe for concurrent use.
type Embedder struct {
	config  Config
	cache   graph.EmbeddingsCache
	api     modelapi.Endpoint
	breaker *gobreaker.CircuitBreaker[[]recall.Vector]
	queries queries

	works      atomic.Bool  // it has embedded something
	dimensions atomic.Int64 // of its vectors, 0 until one is known

	mu     sync.Mutex
	stats  Stats
	reason error // of the last failure
}

// Stats count what a model was asked for since it was made.
type Stats struct {
	Texts    int64 // that were embedded by the endpoint
	Cached   int64 // that were not, for the cache has them
	Calls    int64
	Failures int64 // of calls
	Tokens   int64 // as the endpoint counts them
}

// New makes a model. Cache may be nil: for queries alone there is no need of one.
func New(c Config, cache graph.EmbeddingsCache) (*Embedder, error) {
	if u, err := url.Parse(c.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the http or https URL of an API", c.URL)
	}
	if c.Model == "" {
		return nil, errors.New("the embedding model has no name")
	}
	if c.Batch == 0 {
		c.Batch = DefaultBatch
	}
	api := modelapi.Endpoint{URL: c.URL, Header: http.Header{}, MaxBody: maxBody}
	if c.Key != "" {
		api.Header.Set("Authorization", "Bearer "+c.Key)
	}
	e := &Embedder{config: c, cache: cache, api: api}
	e.dimensions.Store(int64(c.Dimensions))
	e.breaker = gobreaker.NewCircuitBreaker[[]recall.Vector](gobreaker.Settings{
		Timeout:      30 * time.Second,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= 5 },
		IsSuccessful: func(err error) bool { return err == nil || refusal(err) },
		IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) },
	})
	return e, nil
}

// Model names the model, with its dimensions if they were chosen.
func (e *Embedder) Model() string {
	if e.config.Dimensions == 0 {
		return e.config.Model
	}
	return e.config.Model + "/" + strconv.Itoa(e.config.Dimensions)
}

// Stats are the counters as they are now.
func (e *Embedder) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stats
}

// Embed makes the vectors of texts of a tenant, one of each and of equal length. It keeps
// what it has paid for also if it fails behind that.
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

// Query is the vector of a query. It waits for it as long as a search may.
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
	ctx, cancel := context.WithTimeout(ctx, e.config.QueryTimeout)
	defer cancel()
	made, err := e.call(ctx, []string{text}, 0)
	if err != nil {
		return nil, err
	}
	e.queries.put(text, made[0])
	return made[0], nil
}

// key is that of a text in the cache.
func (e *Embedder) key(tenant, text string) (key graph.EmbeddingKey) {
	h := sha256.New()
	for _, part := range []string{e.Model(), tenant, text} {
		fmt.Fprintf(h, "%d %s", len(part), part)
	}
	copy(key[:], h.Sum(nil))
	return key
}

// load adds what the cache has to known, and returns the other keys.
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

// learn tells whether a vector may have so many dimensions.
func (e *Embedder) learn(dimensions int) error {
	if e.dimensions.CompareAndSwap(0, int64(dimensions)) {
		return nil
	}
	if known := int(e.dimensions.Load()); known != dimensions {
		return fmt.Errorf("the endpoint answers with %d dimensions instead of %d: is it another model? Then give it another name", dimensions, known)
	}
	return nil
}

func (e *Embedder) count(change func(*Stats)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.stats)
}
