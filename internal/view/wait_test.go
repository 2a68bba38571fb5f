package view_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/recall"
)

// Wait bounds the wait for events that are not applied yet. If there is nothing to wait for,
// a read may take longer.
func TestAShortWaitBoundsOnlyTheWait(t *testing.T) {
	b := setup(t)
	b.apply(b.publish("c"))
	b.reader.before = func(ctx context.Context, _ string) error { // as on a busy server
		select {
		case <-time.After(60 * time.Millisecond):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	pins := b.views.Pin()
	defer pins.Release()
	_, err := pins.Open(t.Context(), id("c"), view.At{AtLeast: 1, Wait: 20 * time.Millisecond})
	require.NoError(t, err)
	_, inGraph, err := pins.Graph(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.views.AwaitAll(t.Context(), view.At{AtLeast: 1, Wait: 20 * time.Millisecond}, inGraph))

	began := time.Now()
	_, err = pins.Open(t.Context(), id("c"), view.At{AtLeast: b.publish("c"), Wait: 20 * time.Millisecond})
	var behind *view.BehindError
	require.ErrorAs(t, err, &behind)
	require.Equal(t, "graph has not applied sequence 2 within 20ms; see mneme status", behind.Error())
	require.Less(t, time.Since(began), within/2)
}

// A reader that joins the wait of another gets a read of its own: what was read earlier may be old.
func TestAShortWaitBesideALongOneReadsTheCheckpoint(t *testing.T) {
	b := setup(t)
	b.apply(b.publish("c"))
	second, third := b.publish("c"), b.publish("c")
	polled := make(chan struct{}, 100)
	b.reader.before = func(context.Context, string) error {
		polled <- struct{}{}
		time.Sleep(30 * time.Millisecond)
		return nil
	}
	ended := make(chan error, 1)
	go func() {
		pins, _, err := b.open(t.Context(), "c", view.At{AtLeast: third, Wait: time.Minute})
		pins.Release()
		ended <- err
	}()
	<-polled
	<-polled // the first read is over
	b.apply(second)
	pins := b.views.Pin()
	defer pins.Release()
	_, inGraph, err := pins.Graph(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.views.AwaitAll(t.Context(), view.At{AtLeast: second, Wait: time.Millisecond}, inGraph))
	b.apply(third)
	require.NoError(t, <-ended)
}

func TestASequenceBeyondTheLogIsRefused(t *testing.T) {
	b := setup(t)
	b.apply(b.publish("c"))
	for name, at := range map[string]view.At{"at_least": {AtLeast: 2}, "as_of": {AsOf: 2}} {
		pins, _, err := b.open(t.Context(), "c", at)
		pins.Release()
		var beyond *view.BeyondError
		require.ErrorAs(t, err, &beyond)
		require.Equal(t, view.BeyondError{Name: name, Seq: 2, Head: 1}, *beyond)
	}
}

const crowd = 1000

// wait starts a crowd of waiters and returns their errors once all wait.
func (b *bundle) wait(at view.At) <-chan error {
	ended := make(chan error, crowd)
	for range crowd {
		go func() {
			pins := b.views.Pin()
			defer pins.Release()
			_, err := pins.Open(b.t.Context(), id("c"), at)
			ended <- err
		}()
	}
	require.Eventually(b.t, func() bool { return b.waiting.Load() == crowd }, within, time.Millisecond)
	return ended
}

func TestAThousandWaitersCostTheStoreWhatOneCosts(t *testing.T) {
	b := setup(t)
	b.apply(b.publish("c"))
	seq := b.publish("c")
	began := time.Now()
	ended := b.wait(view.At{AtLeast: seq, Wait: time.Minute})
	b.apply(seq)
	for range crowd {
		require.NoError(t, <-ended)
	}
	// At most one read every 50 ms, plus those for announcements and for the comparison with the log.
	require.LessOrEqual(t, b.reader.checkpoints.Load(), int64(time.Since(began)/(50*time.Millisecond))+6)
}

func TestAThousandWaitersForAStalledStoreCostOneRead(t *testing.T) {
	b := setup(t)
	b.apply(b.publish("c"))
	seq := b.publish("c")
	proceed := make(chan struct{})
	b.reader.before = func(ctx context.Context, what string) error {
		select {
		case <-proceed:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	ended := b.wait(view.At{AtLeast: seq, Wait: time.Minute})
	require.Eventually(t, func() bool { return b.reader.checkpoints.Load() > 0 }, within, time.Millisecond)
	time.Sleep(200 * time.Millisecond) // this waits for nothing: the test is that nobody reads again during this time
	require.EqualValues(t, 1, b.reader.checkpoints.Load())
	close(proceed)
	b.apply(seq)
	for range crowd {
		require.NoError(t, <-ended)
	}
}

func TestAStoreThatGoesAwayEndsTheWaitAtOnce(t *testing.T) {
	b := setup(t)
	b.apply(b.publish("c"))
	seq := b.publish("c")
	ended := b.wait(view.At{AtLeast: seq, Wait: time.Minute})
	began := time.Now()
	require.NoError(t, b.graph.Close())
	for range crowd {
		err := <-ended
		require.ErrorContains(t, err, "closed")
		var behind *view.BehindError
		require.False(t, errors.As(err, &behind))
	}
	require.Less(t, time.Since(began), within)
}

func TestAHaltedProjectionEndsNoWaitWithAWrongAnswer(t *testing.T) {
	b := setup(t)
	b.apply(b.publish("c"))
	seq := b.publish("c")
	b.reader.Reader = halted{b.graph}
	pins, _, err := b.open(t.Context(), "c", view.At{AtLeast: seq, Wait: 10 * time.Millisecond})
	defer pins.Release()
	var other *view.OtherLogError
	require.ErrorAs(t, err, &other)
	require.Equal(t, "the read model graph does not follow this log: its log was replaced; see mneme status", other.Error())
}

// Waiters come and go at every moment, at different goals. No wait is lost, none is forgotten.
func TestWaitersComeAndGo(t *testing.T) {
	b := setup(t)
	b.apply(b.publish("c"))
	const rounds, waiters = 40, 8
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			for seq := uint64(2); seq <= rounds; seq++ {
				ctx, cancel := context.WithTimeout(t.Context(), within)
				pins := b.views.Pin()
				for {
					_, err := pins.Open(ctx, id("c"), view.At{AtLeast: seq, Wait: within})
					var beyond *view.BeyondError
					if errors.As(err, &beyond) {
						continue // not published yet
					}
					if err != nil {
						t.Error(err)
					}
					break
				}
				pins.Release()
				cancel()
			}
		})
	}
	for range rounds - 1 {
		b.apply(b.publish("c"))
	}
	all.Wait()
}

// A reader that cancels before, during or after any of its reads leaves nothing behind. In each
// round it cancels one read later, and opens another conversation, whose event is applied while
// it waits and whose index must be loaded.
func TestAReaderMayCancelAtEveryMoment(t *testing.T) {
	b := setup(t)
	for step := 0; ; step++ {
		conversation := fmt.Sprint("c", step)
		seq := b.publish(conversation)
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex // watchers read too
		reads, polls, applied := 0, 0, false
		b.reader.before = func(ctx context.Context, what string) error {
			mu.Lock()
			defer mu.Unlock()
			if what == "checkpoints" {
				if polls++; polls == 3 { // the wait is under way
					b.apply(seq)
					applied = true
				}
			}
			if reads++; reads == step {
				cancel()
			}
			return ctx.Err()
		}
		if step == 0 {
			cancel()
		}
		pins, _, err := b.open(ctx, conversation, view.At{AtLeast: seq, AsOf: seq, Wait: time.Minute})
		cancelled := ctx.Err() != nil
		if cancelled && err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
		pins.Release()
		cancel()
		require.Empty(t, b.models.Leaks(), "after read %d", step)
		mu.Lock()
		b.reader.before = nil
		mu.Unlock()
		if !applied {
			b.apply(seq)
		}
		if !cancelled {
			require.NoError(t, err)
			require.Greater(t, step, 5, "the reads of a wait, of a lineage and of an index")
			break
		}
	}
	var places []func()
	for range 16 {
		leave, err := b.views.Enter(t.Context(), "t")
		require.NoError(t, err)
		places = append(places, leave)
	}
	for _, leave := range places {
		leave()
	}
}

// Loading one conversation's index, however long it takes, leaves all places to other readers.
func TestAColdConversationDoesNotBlockOtherReads(t *testing.T) {
	b := setup(t)
	b.apply(b.publish("c"))
	b.apply(b.publish("other"))
	loading, proceed := make(chan struct{}, 1), make(chan struct{})
	b.reader.before = func(ctx context.Context, what string) error {
		if what != "bags of c" {
			return nil
		}
		select {
		case loading <- struct{}{}:
		default:
		}
		select {
		case <-proceed:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	read := func(ctx context.Context, conversation string) error {
		pins, v, err := b.open(ctx, conversation, view.At{})
		defer pins.Release()
		if err == nil {
			_, err = v.Source(ctx).Recall.Search(ctx, id(conversation), recall.Query{Text: "parser"})
		}
		return err
	}
	const readers = 40 // more than there are places
	for range readers {
		go func() { ended <- read(ctx, "c") }()
		go func() { ended <- read(t.Context(), "c") }()
	}
	<-loading
	for range readers {
		quick, cancel := context.WithTimeout(t.Context(), within)
		require.NoError(t, read(quick, "other"))
		cancel()
	}
	cancel() // half of the clients go away
	for range readers {
		require.ErrorIs(t, <-ended, context.Canceled)
	}
	close(proceed)
	for range readers {
		require.NoError(t, <-ended)
	}
}

func TestAViewThatIsNeverReleasedIsFound(t *testing.T) {
	b := setup(t)
	b.apply(b.publish("c"))
	pins, _, err := b.open(t.Context(), "c", view.At{})
	require.NoError(t, err)
	leaks := b.models.Leaks()
	require.Len(t, leaks, 2)
	require.Contains(t, leaks[0], "files is never released")
	require.Contains(t, leaks[1], "wait_test.go", "who opened it")
	pins.Release()
	require.Empty(t, b.models.Leaks())
}

// halted is a graph whose projector has halted.
type halted struct{ graph.Reader }

func (h halted) Checkpoints(ctx context.Context) ([]projection.Checkpoint, error) {
	cps, err := h.Reader.Checkpoints(ctx)
	for i := range cps {
		cps[i].Halted = "its log was replaced"
	}
	return cps, err
}
