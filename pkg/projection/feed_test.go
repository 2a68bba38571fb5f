package projection_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

// gated is a store whose transactions first ask a gate.
type gated struct {
	projection.Store[*graph.Unit]
	gate func(ctx context.Context) error
}

func (s gated) Update(ctx context.Context, partition int, fn func(projection.Tx[*graph.Unit]) error) error {
	if err := s.gate(ctx); err != nil {
		return err
	}
	return s.Store.Update(ctx, partition, fn)
}

// openAnother opens a separate empty store.
func (b *bench) openAnother() *sqlitestore.Graph {
	b.t.Helper()
	store, err := sqlitestore.OpenGraph(b.t.Context(), sqlitestore.Path(b.t.TempDir(), "graph", 1))
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = store.Close() })
	return store
}

// drive starts a projector on any store.
func (b *bench) drive(p projection.Projection[*graph.Unit], store projection.Store[*graph.Unit], options ...projection.Option) *projector {
	b.t.Helper()
	pr, err := projection.NewProjector(p, b.log, store, slog.New(slog.DiscardHandler), options...)
	require.NoError(b.t, err)
	pr.Start()
	b.t.Cleanup(pr.Stop)
	return pr
}

// awaitReaders waits until a partition has readers with these numbers of projectors.
func awaitReaders(t *testing.T, feed *projection.Feed, want ...int) {
	t.Helper()
	require.Eventually(t, func() bool {
		return fmt.Sprint(feed.Readers(0)) == fmt.Sprint(append([]int{}, want...))
	}, mnemetest.Patience, time.Millisecond, "want %v, are %v", want, feed.Readers(0))
}

// messages reads the whole log without a consumer.
func (b *bench) messages() (list []eventlog.Message) {
	b.t.Helper()
	state, err := b.log.State(mnemetest.Context(b.t))
	require.NoError(b.t, err)
	for seq := uint64(1); seq <= state.Head; seq++ {
		m, err := b.log.Get(mnemetest.Context(b.t), seq)
		require.NoError(b.t, err)
		list = append(list, m)
	}
	return list
}

// contents is what a read model holds.
type contents struct {
	Checkpoint projection.Checkpoint
	Failed     []projection.Failed
	Hashes     []projection.ConversationHash
}

func contentsOf(t *testing.T, store *sqlitestore.Graph) (c contents) {
	t.Helper()
	list, err := store.Checkpoints(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	c.Checkpoint = list[0]
	c.Checkpoint.Epoch = 0 // counts take-overs
	c.Failed, err = store.Failed(t.Context(), projection.FailedQuery{Limit: 10000})
	require.NoError(t, err)
	require.NoError(t, store.Hashes(t.Context(), func(h projection.ConversationHash) error {
		c.Hashes = append(c.Hashes, h)
		return nil
	}))
	return c
}

// variants are three projections that reduce the same events differently.
func variants() []projection.Projection[*graph.Unit] {
	all, some, fails := graph.Projection(), graph.Projection(), graph.Projection()
	reduce := some.Reducers[events.TypeMessageCreated]
	some.Reducers = map[string]projection.Reducer[*graph.Unit]{events.TypeMessageCreated: reduce}
	fails.Reducers = map[string]projection.Reducer[*graph.Unit]{events.TypeMessageCreated: func(u *graph.Unit, e *events.Recorded) error {
		if e.Seq%7 == 3 {
			return errors.New("seven")
		}
		return reduce(u, e)
	}}
	return []projection.Projection[*graph.Unit]{all, some, fails}
}

// Whatever happens to the projectors that share a feed, each read model holds what its projection
// makes of the log.
func TestSharedReadersMakeTheSameReadModelsAsSeparateOnes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		b := setup(t, 1)
		feed := projection.NewFeed(b.log)
		feed.Window(rapid.IntRange(1, 60).Draw(r, "window"))
		projections := variants()
		stores := make([]*sqlitestore.Graph, len(projections))
		running := make([]*projector, len(projections))
		var mu sync.Mutex
		waits, fails := make([]time.Duration, len(projections)), make([]int, len(projections))
		start := func(i int) {
			store := gated{stores[i], func(ctx context.Context) error {
				mu.Lock()
				wait, fail := waits[i], fails[i] > 0
				fails[i]--
				mu.Unlock()
				select {
				case <-time.After(wait):
				case <-ctx.Done():
					return ctx.Err()
				}
				if fail {
					return errors.New("the store is down")
				}
				return nil
			}}
			running[i] = b.drive(projections[i], store, projection.From(feed), projection.BatchOf(5+20*i))
		}
		for i := range projections {
			stores[i] = b.openAnother()
			start(i)
		}
		for step := range rapid.IntRange(1, 12).Draw(r, "steps") {
			i := rapid.IntRange(0, len(projections)-1).Draw(r, "projection")
			switch rapid.SampledFrom([]string{"events", "events", "invalid", "repeat", "slow", "down", "restart"}).Draw(r, "what") {
			case "events":
				b.many(rapid.IntRange(1, 80).Draw(r, "count"), 3)
			case "invalid":
				b.raw("mneme.t.c1.message_created", map[string]string{"ce-specversion": "1.0", "ce-id": fmt.Sprint("x", step), "ce-source": "s", "ce-type": events.TypeMessageCreated, "ce-subject": "c1"}, "{}")
			case "repeat":
				if b.seq > 0 {
					b.seq-- // the next event has a known identity; its payload is another message
					b.raw("mneme.t.c1.message_created", map[string]string{"ce-specversion": "1.0", "ce-id": fmt.Sprint("e", b.seq), "ce-source": "test", "ce-type": events.TypeMessageCreated, "ce-subject": "c1"}, `{"message_id":"m","role":"user","content":"again"}`)
					b.seq++
				}
			case "slow":
				mu.Lock()
				waits[i] = time.Duration(rapid.IntRange(0, 300).Draw(r, "ms")) * time.Millisecond / 10
				mu.Unlock()
			case "down":
				mu.Lock()
				fails[i] = rapid.IntRange(1, 2).Draw(r, "times")
				mu.Unlock()
			case "restart":
				running[i].Stop()
				start(i)
			}
		}
		b.many(3, 3)
		mu.Lock()
		clear(waits)
		mu.Unlock()
		for _, pr := range running {
			b.awaitAll(pr)
		}
		for _, pr := range running {
			pr.Stop()
		}
		require.Empty(t, feed.Readers(0))
		messages := b.messages()
		for i, p := range projections {
			want := b.openAnother()
			cp, err := want.Acquire(t.Context(), 0, p.Fingerprint())
			require.NoError(t, err)
			_, err = p.Apply(t.Context(), want, cp, messages)
			require.NoError(t, err)
			require.Equal(t, contentsOf(t, want), contentsOf(t, stores[i]), "projection %d", i)
			require.NoError(t, errors.Join(want.Close(), stores[i].Close()))
		}
		require.NoError(t, b.store.Close())
		b.conn.Close()
		b.server.Stop()
	})
}

// spying returns the projection "graph" that notes the address of each event.
func spying(seen *sync.Map) projection.Projection[*graph.Unit] {
	p := graph.Projection()
	reduce := p.Reducers[events.TypeMessageCreated]
	p.Reducers = map[string]projection.Reducer[*graph.Unit]{events.TypeMessageCreated: func(u *graph.Unit, e *events.Recorded) error {
		seen.Store(e.Seq, e)
		return reduce(u, e)
	}}
	return p
}

func TestAnEventIsDecodedOnceForAllProjectorsOfAFeed(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.many(500, 3)
	feed := projection.NewFeed(b.log)
	var first, second sync.Map
	one := b.drive(spying(&first), b.openAnother(), projection.From(feed))
	two := b.drive(spying(&second), b.openAnother(), projection.From(feed))
	b.awaitAll(one)
	b.awaitAll(two)
	awaitReaders(t, feed, 2)
	b.many(100, 3)
	b.awaitAll(one)
	b.awaitAll(two)
	for seq := uint64(1); seq <= 600; seq++ {
		a, _ := first.Load(seq)
		c, _ := second.Load(seq)
		require.NotNil(t, a)
		require.Same(t, a, c, "sequence %d", seq)
		e := a.(*events.Recorded)
		require.Equal(t, "one", events.Memo(e, "found by", func() string { return "one" }))
		require.Equal(t, "one", events.Memo(e, "found by", func() string { return "two" }), "readers share what they find out")
	}
}

func TestAStalledProjectorDoesNotHoldTheOthersAndSharesAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	feed := projection.NewFeed(b.log)
	feed.Window(50)
	open := make(chan struct{})
	stalled := make(chan struct{})
	var once sync.Once
	slowStore := b.openAnother()
	slow := b.drive(graph.Projection(), gated{slowStore, func(ctx context.Context) error {
		list, err := slowStore.Checkpoints(ctx)
		if err != nil || len(list) == 0 || list[0].Seq < 10 {
			return err
		}
		once.Do(func() { close(stalled) })
		select {
		case <-open:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}, projection.From(feed), projection.BatchOf(25))
	fast := b.drive(graph.Projection(), b.store, projection.From(feed), projection.BatchOf(25))
	await(t, slow, "is live", isLive)
	await(t, fast, "is live", isLive)
	awaitReaders(t, feed, 2)
	b.many(10, 2)
	b.awaitSeq(slow, 0, 10)
	b.many(500, 2)
	<-stalled
	b.awaitAll(fast) // although the window holds 50
	require.Less(t, slow.Status()[0].Checkpoint.Seq, uint64(510))
	close(open)
	b.awaitAll(slow)
	b.many(1, 1) // projectors move when they take something
	b.awaitAll(slow)
	b.awaitAll(fast)
	awaitReaders(t, feed, 2)
	slow.Stop()
	awaitReaders(t, feed, 1)
	fast.Stop()
	require.Empty(t, feed.Readers(0))
	require.Equal(t, contentsOf(t, b.store), contentsOf(t, slowStore))
	require.Eventually(t, func() bool { // the server forgets the consumers, too
		stream, err := b.jetstream().Stream(t.Context(), natsdeploy.Stream)
		require.NoError(t, err)
		return stream.CachedInfo().State.Consumers == 0
	}, mnemetest.Patience, 10*time.Millisecond)
}

func TestAnOlderCheckpointGetsAReaderOfItsOwnUntilItHasCaughtUp(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.many(400, 3)
	feed := projection.NewFeed(b.log)
	feed.Window(100)
	ahead := b.drive(graph.Projection(), b.store, projection.From(feed))
	b.awaitAll(ahead)
	pause := make(chan struct{})
	late := b.openAnother()
	behind := b.drive(graph.Projection(), gated{late, func(ctx context.Context) error {
		select {
		case <-pause:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}, projection.From(feed), projection.BatchOf(40))
	awaitReaders(t, feed, 1, 1)
	close(pause)
	b.awaitAll(behind)
	b.many(1, 1)
	b.awaitAll(ahead)
	b.awaitAll(behind)
	b.many(1, 1)
	awaitReaders(t, feed, 2)
	b.awaitAll(ahead)
	b.awaitAll(behind)
	require.Equal(t, contentsOf(t, b.store), contentsOf(t, late))
}

func TestAYieldingProjectorReadsByItselfUntilItServes(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	feed := projection.NewFeed(b.log)
	var mu sync.Mutex
	idle := time.Hour
	pr := b.drive(graph.Projection(), b.store, projection.From(feed), projection.Yield(func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return idle
	}))
	b.many(50, 3)
	b.awaitAll(pr)
	require.Empty(t, feed.Readers(0))
	mu.Lock()
	idle = projection.Forever
	mu.Unlock()
	b.many(50, 3)
	b.awaitAll(pr)
	awaitReaders(t, feed, 1)
	verified := b.verify(graph.Projection())
	require.True(t, verified.Equal())
}
