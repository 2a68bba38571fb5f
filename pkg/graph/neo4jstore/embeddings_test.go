package neo4jstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/storetest"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/recall"
)

func embeddingsBackend(t *testing.T) storetest.Backend[graph.EmbeddingsStore] {
	c := testConfig(t)
	return storetest.Backend[graph.EmbeddingsStore]{
		SharedEngine: sharedEngine,
		Open: func(ctx context.Context, dir string) (graph.EmbeddingsStore, error) {
			s, err := Open(ctx, c, generationOf(dir), EmbeddingsCodec)
			return &Embeddings{s}, err
		},
		Refuse: func(ctx context.Context, dir, text string) (func() error, error) {
			return refuse(ctx, c, dir, "EmbeddingsEvent", "payload_key", events.MessageKey(text))
		},
	}
}

func TestEmbeddingsConformance(t *testing.T) {
	t.Parallel()
	storetest.RunEmbeddings(t, embeddingsBackend(t))
}

func TestEmbeddingsCacheConformance(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	storetest.RunEmbeddingsCache(t, storetest.CacheBackend{
		Open: func(ctx context.Context, _ string) (graph.EmbeddingsCache, error) {
			return OpenEmbeddingsCache(ctx, c)
		},
		Prefix: cachePrefix,
	})
}

// cachePrefix begins this process's keys in the cache, as firstGeneration begins all others.
var cachePrefix = binary.BigEndian.AppendUint64(nil, uint64(firstGeneration))

// sized is a model with this many dimensions. Vectors of different texts are unrelated.
type sized int

func (s sized) Model() string { return fmt.Sprint("a test's, of ", int(s)) }

func (s sized) Embed(_ context.Context, _ string, texts []string) ([]recall.Vector, error) {
	list := make([]recall.Vector, len(texts))
	for i, text := range texts {
		h := fnv.New64a()
		_, _ = h.Write([]byte(text))
		random := rand.New(rand.NewPCG(h.Sum64(), uint64(s)))
		v := make([]float32, s)
		for i := range v {
			v[i] = float32(random.NormFloat64())
		}
		if strings.Contains(text, "meaningless") {
			clear(v)
		}
		list[i] = recall.Quantize(v)
	}
	return list, nil
}

// embeddedStore is a store of embeddings with its history and a spy on its driver.
type embeddedStore struct {
	*Embeddings
	projection projection.Projection[*graph.EmbeddingsUnit]
	cp         projection.Checkpoint
	history    *storetest.History
	spy        *spy
}

func openEmbedded(t *testing.T, c Config, generation, dimensions int) *embeddedStore {
	t.Helper()
	opened, err := Open(t.Context(), c, generation, EmbeddingsCodec)
	require.NoError(t, err)
	store := &Embeddings{opened}
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	s := &embeddedStore{Embeddings: store, projection: graph.EmbeddingsProjection(sized(dimensions)), history: storetest.NewHistory()}
	s.spy = watch(&store.store)
	s.acquire(t)
	return s
}

func (s *embeddedStore) acquire(t *testing.T) {
	t.Helper()
	var err error
	s.cp, err = s.Acquire(t.Context(), 0, s.projection.Fingerprint())
	require.NoError(t, err)
}

// apply applies the events added to the history since the last call, as one batch.
func (s *embeddedStore) apply(t *testing.T) {
	t.Helper()
	var err error
	s.cp, err = s.projection.Apply(t.Context(), s.Embeddings, s.cp, s.history.Messages)
	require.NoError(t, err)
	s.history.Messages = nil
}

// say adds a message and returns its sequence.
func (s *embeddedStore) say(conversation, text string) uint64 {
	return s.history.Add(conversation, &events.MessageCreated{MessageID: fmt.Sprint("m", s.history.Next), Role: "user", Content: text})
}

// long is a text of several passages, some without a vector.
func long(about string) string {
	var text strings.Builder
	for n := range 4 {
		for i := range 100 {
			fmt.Fprintf(&text, "%s %d in part %d ", about, i, n)
		}
		if n == 1 {
			text.WriteString(strings.Repeat(" this is meaningless ", 300))
		}
		text.WriteString("\n\n")
	}
	return text.String()
}

func floats(v recall.Vector) []float64 {
	list := make([]float64, len(v))
	for i, x := range v {
		list[i] = float64(x)
	}
	return list
}

func TestVectorIndexFindsPassagesOfAnyDimensions(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	for _, dimensions := range []int{128, 384} {
		s := openEmbedded(t, c, generationOf(fmt.Sprint(t.Name(), dimensions)), dimensions)
		text := long(fmt.Sprint("of ", s.generation))
		passages := recall.Passages(text)
		require.Greater(t, len(passages), 2)
		for n := range 50 {
			s.say("others", fmt.Sprint("another ", n, " of ", s.generation))
		}
		seq := s.say("c", text)
		s.apply(t)
		failed, err := s.CountFailed(t.Context())
		require.NoError(t, err)
		require.Empty(t, failed)

		vectors, err := sized(dimensions).Embed(t.Context(), "t", passages)
		require.NoError(t, err)
		list, err := s.Embeddings.Embeddings(t.Context(), conversation("c"), graph.BagQuery{})
		require.NoError(t, err)
		require.Len(t, list, 1)
		stored, err := list[0].Decode()
		require.NoError(t, err)
		require.Equal(t, vectors, stored)

		missing := 0
		for part, v := range vectors {
			if v == nil {
				missing++
				continue
			}
			// The index is approximate and shared with other tests: with few vectors it may miss one.
			rows, err := s.Read(t.Context(), `CALL db.index.vector.queryNodes('message_embedding_index', 50, $vector) YIELD node, score
				WHERE node.conversation STARTS WITH $prefix
				RETURN [node.conversation, node.tenant, node.conversation_id, node.seq, node.part, node.message_id], node.embedding, score ORDER BY score DESC`,
				map[string]any{"vector": floats(v), "prefix": s.prefix()})
			require.NoError(t, err)
			require.Greater(t, len(rows), 1)
			require.Equal(t, []any{s.Key(conversation("c")), "t", "c", int64(seq), int64(part), fmt.Sprint("m", seq)}, rows[0][0])
			require.Len(t, rows[0][1], dimensions)
			require.InDelta(t, v[dimensions-1], rows[0][1].([]any)[dimensions-1], 0)
			require.InDelta(t, 1, rows[0][2], 0.03) // the index keeps a byte of each number
			require.Less(t, rows[1][2], rows[0][2])
		}
		require.Positive(t, missing, "a passage without meaning is not there")
		count, err := s.Read(t.Context(), "MATCH (p:Passage) WHERE p.conversation = $key AND p.seq > 0 AND p.part >= 0 RETURN count(*)", map[string]any{"key": s.Key(conversation("c"))})
		require.NoError(t, err)
		require.EqualValues(t, len(vectors)-missing, count[0][0])
	}
}

func TestDeletionAndRemovalLeaveNoVectors(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	s := openEmbedded(t, c, generationOf(t.Name()), 8)
	for range 30 {
		s.say("c", long("c"))
		s.say("d", "short")
	}
	s.apply(t)
	count := func(where string) (n int) {
		for _, label := range []string{"EmbeddingsCheckpoint", "EmbeddingsSettled", "EmbeddingsConversation", "EmbeddingsEvent", "EmbeddingsFailedEvent", "Passage"} {
			rows, err := s.Read(t.Context(), "MATCH (n:"+label+") WHERE "+where+" RETURN count(*)",
				map[string]any{"prefix": s.prefix(), "generation": s.generation, "key": s.Key(conversation("c"))})
			require.NoError(t, err)
			v := &values{list: rows[0]}
			n += v.int()
		}
		return n
	}
	const ofC = "n.conversation = $key"
	require.Greater(t, count(ofC), 60)
	s.history.Add("c", &events.ConversationDeleted{})
	s.apply(t)
	require.Zero(t, count(ofC))
	const ofGeneration = "(coalesce(n.conversation, n.key) STARTS WITH $prefix OR n.generation = $generation)"
	require.Greater(t, count(ofGeneration), 60)
	require.NoError(t, Remove(t.Context(), c, s.generation))
	require.Zero(t, count(ofGeneration))
}

// all makes every kind of write, in batches of one event and of many.
func (s *embeddedStore) all(t *testing.T, c string) {
	t.Helper()
	for range 3 {
		s.say(c, long(c))
		s.apply(t)
		s.say(c, "meaningless")
		s.apply(t)
	}
	s.history.AddAs(c, "again", &events.MessageCreated{MessageID: "again", Role: "user"}) // a duplicate from the second time on
	s.apply(t)
	gone := fmt.Sprint("gone", s.history.Next)
	for range 60 {
		s.say(c, long(c))
		s.say(gone, "short")
		s.say(fmt.Sprint("other", s.history.Next), "meaningless")
	}
	s.history.AddRaw("ev.0.t."+gone+".message_created", nil, nil)
	s.apply(t)
	s.history.Add(gone, &events.ConversationDeleted{})
	s.apply(t)
	require.NoError(t, s.Update(t.Context(), 0, func(tx projection.Tx[*graph.EmbeddingsUnit]) error { return tx.Drop(t.Context(), conversation(gone)) }))
	require.NoError(t, s.Halt(t.Context(), 0, s.cp.Epoch, ""))
	s.acquire(t)
}

// newest reads the end of a conversation.
func (s *embeddedStore) newest(t *testing.T, c string) {
	t.Helper()
	list, err := s.Embeddings.Embeddings(t.Context(), conversation(c), graph.BagQuery{From: 1, Limit: 10})
	require.NoError(t, err)
	require.Len(t, list, 10)
}

// sentByEmbeddings uses everything that store and cache can do, and returns each statement once.
func sentByEmbeddings(t *testing.T, s *embeddedStore) map[string]sent {
	t.Helper()
	ctx, id := t.Context(), conversation("c")
	s.all(t, "c")
	s.all(t, "c")
	s.newest(t, "c")
	_, err := s.Checkpoints(ctx)
	require.NoError(t, err)
	_, err = s.Failed(ctx, projection.FailedQuery{Limit: 10})
	require.NoError(t, err)
	_, err = s.Failed(ctx, projection.FailedQuery{Tenant: "t", Conversation: id.ID, Limit: 10})
	require.NoError(t, err)
	_, err = s.CountFailed(ctx)
	require.NoError(t, err)
	_, err = s.Holders(ctx, []projection.Claim{{Conversation: id}})
	require.NoError(t, err)
	require.NoError(t, s.Hashes(ctx, func(projection.ConversationHash) error { return nil }))
	cacheOne(t, &EmbeddingsCache{s.db})
	byText := map[string]sent{}
	for _, one := range s.spy.since() {
		byText[one.statement] = one
	}
	requireSent(t, byText, embeddingsLayout.dialect())
	return byText
}

// cacheOne stores a vector and reads it back.
func cacheOne(t *testing.T, c *EmbeddingsCache) {
	t.Helper()
	var key graph.EmbeddingKey
	copy(key[copy(key[:], cachePrefix):], t.Name())
	require.NoError(t, c.Store(t.Context(), []graph.EmbeddingKey{key}, [][]byte{{1}}))
	vectors, err := c.Load(t.Context(), []graph.EmbeddingKey{key})
	require.NoError(t, err)
	require.Equal(t, [][]byte{{1}}, vectors)
}

// tellEmbeddings makes a small read model with every kind of row.
func tellEmbeddings(t *testing.T, generation int) {
	t.Helper()
	s := openEmbedded(t, testConfig(t), generation, 8)
	s.say("one", long("one"))
	s.apply(t)
	s.say("gone", "short")
	s.history.Add("gone", &events.ConversationDeleted{})
	s.apply(t)
	cacheOne(t, &EmbeddingsCache{s.db})
}

func TestWarmEmbeddingsSendsAllStatementsAndWritesNothing(t *testing.T) {
	t.Parallel()
	s := openEmbedded(t, testConfig(t), generationOf(t.Name()), 8)
	s.all(t, "c")
	requireWarmed(t, s.spy, &s.store, s.Warm, func() {
		s.all(t, "c")
		s.newest(t, "c")
	})
}

// The cost of an append and a read must not depend on the length of the conversation.
func TestEmbeddingsOfALongConversationCostWhatThoseOfAShortOneCost(t *testing.T) {
	t.Parallel()
	s := openEmbedded(t, testConfig(t), generationOf(t.Name()), 8)
	for n := range 3_000 {
		s.say("long", "short")
		if n%100 == 0 {
			s.say("short", "short")
		}
		if n%500 == 499 {
			s.apply(t)
		}
	}
	s.spy.since()
	s.spy.prefix = "PROFILE "
	costs := map[string]map[string]int64{}
	for _, c := range []string{"short", "long"} {
		costs[c] = map[string]int64{}
		cost := func(name string) { costs[c][name] = hits(t, s.spy.since()) }
		for name, q := range map[string]graph.BagQuery{"the first 10": {Limit: 10}, "10 before a sequence": {From: s.history.Next - 1_500, Limit: 10}} {
			list, err := s.Embeddings.Embeddings(t.Context(), conversation(c), q)
			require.NoError(t, err)
			require.Len(t, list, 10)
			cost(name)
		}
		s.say(c, "short")
		s.apply(t)
		cost("append a message")
		s.say(c, long(c))
		s.apply(t)
		cost("append a long one")
	}
	for _, name := range slices.Sorted(maps.Keys(costs["long"])) {
		short, long := costs["short"][name], costs["long"][name]
		t.Logf("%-25s %5d db hits in the short conversation, %5d in the long one", name, short, long)
		require.Positive(t, short, name)
		require.LessOrEqual(t, float64(long), 1.1*float64(short)+5, name)
	}
}
