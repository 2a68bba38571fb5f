package view_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/recall"
)

// store is a SQLite read model and what was put into it.
type store struct {
	t     testing.TB
	model *sqlitestore.Graph
	graph projection.Projection[*graph.Unit]
	cp    projection.Checkpoint
	seq   uint64
	name  string // part of event ids
}

func newStore(t testing.TB) *store {
	s := &store{t: t, graph: graph.Projection()}
	var err error
	s.model, err = sqlitestore.OpenGraph(t.Context(), filepath.Join(t.TempDir(), "graph-1.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.model.Close() })
	s.cp, err = s.model.Acquire(t.Context(), 0, s.graph.Fingerprint())
	require.NoError(t, err)
	return s
}

// say appends messages to a conversation, in one batch.
func (s *store) say(conversation string, texts ...string) {
	s.t.Helper()
	var list []events.Payload
	for n, text := range texts {
		list = append(list, &events.MessageCreated{MessageID: fmt.Sprint("m", s.seq+uint64(n)+1), Role: "user", Content: text})
	}
	s.add(s.t, conversation, list...)
}

func id(conversation string) events.ConversationID {
	return events.ConversationID{Tenant: "t", ID: conversation}
}

// found returns the sequences that a search finds, best first.
func found(t *testing.T, c *view.Cache, r graph.RecallReader, conversation, text string, asOf uint64) (seqs []uint64) {
	t.Helper()
	f, err := c.Of(view.Source{Messages: r}).Search(t.Context(), id(conversation), recall.Query{Text: text, AsOf: asOf})
	require.NoError(t, err)
	for _, hit := range f.Hits {
		seqs = append(seqs, hit.Seq)
	}
	return seqs
}

func TestSearchFindsMessagesAddedSinceTheLastOne(t *testing.T) {
	s, c := newStore(t), view.NewCache(1<<20, nil)
	s.say("c", "The parser fails on paths.", "Lunch at noon.")
	require.Equal(t, []uint64{1}, found(t, c, s.model, "c", "parser", 0)[:1])
	s.say("c", "Yes.", "The parser again: quotes now.")
	require.ElementsMatch(t, []uint64{1, 4}, found(t, c, s.model, "c", "parser", 0)[:2])
	require.Equal(t, view.Figures{Indexes: 1, Bytes: c.Figures().Bytes, Hits: 1, Loads: 1}, c.Figures())
	require.Equal(t, found(t, view.NewCache(1<<20, nil), s.model, "c", "parser", 0), found(t, c, s.model, "c", "parser", 0), "same as a new cache")
}

// In any order of searches and appends, a search as of a sequence must answer like an index
// loaded when that sequence was the last.
func TestSearchAsOfASequenceAnswersAsBackThen(t *testing.T) {
	words := strings.Fields("parser path quote lunch noon test fail cache shard index graph log event turn store file")
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var w []string
		for range 1 + random.IntN(8) {
			w = append(w, words[random.IntN(len(words))])
		}
		return strings.Join(w, " ")
	}
	s, kept := newStore(t), view.NewCache(1<<20, view.BuiltIn{})
	then := map[uint64][]uint64{}
	for range 30 {
		var texts []string
		for range 1 + random.IntN(4) {
			texts = append(texts, text())
		}
		s.say("c", texts...)
		then[s.seq] = found(t, view.NewCache(1<<20, view.BuiltIn{}), s.model, "c", "the parser of the log", 0)
		if random.IntN(2) == 0 {
			require.Equal(t, then[s.seq], found(t, kept, s.model, "c", "the parser of the log", 0))
		}
	}
	for seq, want := range then {
		require.Equal(t, want, found(t, kept, s.model, "c", "the parser of the log", seq), "as of %d", seq)
	}
}

func TestCacheKeepsTheLatestSearchedConversations(t *testing.T) {
	s := newStore(t)
	for _, conversation := range []string{"a", "b", "c"} {
		s.say(conversation, strings.Repeat("some words about the parser ", 200))
	}
	one := view.NewCache(1<<30, nil)
	found(t, one, s.model, "a", "parser", 0)
	c := view.NewCache(2*one.Figures().Bytes+one.Figures().Bytes/2, nil) // room for two
	for _, conversation := range []string{"a", "b", "a", "c", "a", "b"} {
		require.NotEmpty(t, found(t, c, s.model, conversation, "parser", 0))
	}
	f := c.Figures()
	require.Equal(t, 2, f.Indexes)
	require.Equal(t, 2, f.Hits, "a, twice")
	require.Equal(t, 4, f.Loads, "a, b, c, and b again")
	require.Equal(t, 2, f.Evicted)
	require.LessOrEqual(t, f.Bytes, 2*one.Figures().Bytes+one.Figures().Bytes/2)
}

// Always evicting the one searched longest ago would find none of them.
func TestCacheServesMoreConversationsInTurnThanItHolds(t *testing.T) {
	s := newStore(t)
	const all, held, rounds = 44, 40, 6
	text := strings.Repeat("some words about the parser ", 20)
	for n := range all {
		s.say(fmt.Sprint("c", n), text)
	}
	one := view.NewCache(1<<30, nil)
	found(t, one, s.model, "c0", "parser", 0)
	c := view.NewCache(held*one.Figures().Bytes+one.Figures().Bytes/2, nil)
	for range rounds {
		for n := range all {
			require.NotEmpty(t, found(t, c, s.model, fmt.Sprint("c", n), "parser", 0))
		}
	}
	f := c.Figures()
	require.Equal(t, held, f.Indexes)
	require.Greater(t, f.Hits, all*(rounds-1)/3)
}

func TestDeletedConversationIsNotFoundAndItsIndexIsDropped(t *testing.T) {
	s, c := newStore(t), view.NewCache(1<<20, nil)
	_, err := c.Of(view.Source{Messages: s.model}).Search(t.Context(), id("nobody"), recall.Query{Text: "x"})
	require.ErrorIs(t, err, graph.ErrNotFound)
	require.Zero(t, c.Figures().Indexes)
	require.Zero(t, c.Figures().Bytes)
}

func TestConcurrentSearchesAgree(t *testing.T) {
	s, c := newStore(t), view.NewCache(1<<20, view.BuiltIn{})
	for i := range 200 {
		s.say("c", fmt.Sprintf("message %d about the parser", i))
	}
	want := found(t, view.NewCache(1<<20, view.BuiltIn{}), s.model, "c", "parser 17", 0)
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			f, err := c.Of(view.Source{Messages: s.model}).Search(t.Context(), id("c"), recall.Query{Text: "parser 17"})
			if err != nil || len(f.Hits) != len(want) || f.Hits[0].Seq != want[0] {
				t.Errorf("%v, %d hits", err, len(f.Hits))
			}
		})
	}
	wait.Wait()
}

// pages counts the pages of bags that are read, and ends the client's context after one.
type pages struct {
	graph.RecallReader
	read   []uint64 // first sequence of each page
	cancel context.CancelFunc
}

func (p *pages) Bags(ctx context.Context, id events.ConversationID, q graph.BagQuery) ([]graph.Bag, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.read = append(p.read, q.From)
	list, err := p.RecallReader.Bags(ctx, id, q)
	p.cancel()
	return list, err
}

func TestAClientThatGoesAwayLeavesWhatWasLoaded(t *testing.T) {
	s, c := newStore(t), view.NewCache(64<<20, nil)
	texts := make([]string, 1500)
	for i := range texts {
		texts[i] = fmt.Sprint("message about topic", i)
	}
	s.say("c", texts...)
	ctx, cancel := context.WithCancel(t.Context())
	reader := &pages{RecallReader: s.model, cancel: cancel}
	search := c.Of(view.Source{Messages: reader})
	_, err := search.Search(ctx, id("c"), recall.Query{Text: "topic7"})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []uint64{1}, reader.read)

	reader.read = nil
	_, err = search.Search(t.Context(), id("c"), recall.Query{Text: "topic7"})
	require.NoError(t, err)
	require.Equal(t, []uint64{1001}, reader.read[:1], "the first page is not read again")
	require.Equal(t, 1, c.Figures().Loads)
	require.Equal(t, found(t, view.NewCache(64<<20, nil), s.model, "c", "topic1400", 0), found(t, c, s.model, "c", "topic1400", 0))
}

func TestASearchThatWaitsForAnotherEndsWithItsClient(t *testing.T) {
	s, c := newStore(t), view.NewCache(1<<20, nil)
	s.say("c", "The parser fails.")
	reading, proceed := make(chan struct{}), make(chan struct{})
	slow := stalled{s.model, reading, proceed}
	var loading sync.WaitGroup
	loading.Go(func() { found(t, c, slow, "c", "parser", 0) })
	<-reading
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Of(view.Source{Messages: s.model}).Search(ctx, id("c"), recall.Query{Text: "parser"})
	require.ErrorIs(t, err, context.Canceled)
	close(proceed)
	loading.Wait()
	require.Equal(t, []uint64{1}, found(t, c, s.model, "c", "parser", 0))
}

// stalled is a store that does not answer until it may.
type stalled struct {
	graph.RecallReader
	reading, proceed chan struct{}
}

func (s stalled) Bags(ctx context.Context, id events.ConversationID, q graph.BagQuery) ([]graph.Bag, error) {
	close(s.reading)
	<-s.proceed
	return s.RecallReader.Bags(ctx, id, q)
}
