package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// Readers see whole commits, however many happen while they read. One writer commits whole
// turns, and every reader checks that it sees only whole turns.

// readers is the number of readers.
const readers = 4

// commits is the number of commits during the reads.
var commits = func() int {
	if mnemetest.All {
		return 100
	}
	return 24 // every size of a batch twice
}()

// hashedRounds is the number of rounds per read of the hash, which reads everything.
const hashedRounds = 20

// turns are batches of one to twelve turns. Each turn is a title that says its number,
// a user message, an assistant message, a call that reads a file, and its result.
func turns(h *History) (batches [][]eventlog.Message) {
	turn := 0
	for n := range commits {
		from := len(h.Messages)
		for range 1 + n%12 {
			turn++
			title := fmt.Sprint("turn ", turn)
			callID := fmt.Sprint("k", turn)
			h.Add("c", &events.ConversationUpdated{Title: &title})
			h.Add("c", message(fmt.Sprint("u", turn), "user", "hello"))
			h.Add("c", message(fmt.Sprint("a", turn), "assistant", "hello"))
			h.Add("c", read(callID, fmt.Sprintf("/%d", turn%20)))
			h.Add("c", result(callID, "text", true))
		}
		batches = append(batches, h.Messages[from:])
	}
	return batches
}

const rowsOfTurn = 5

// whileReading runs readers while batches are committed. Each reader is called before the
// writer starts and then until it is done; its first error ends it.
func whileReading[U projection.Unit, S projection.Store[U]](t *testing.T, b *bench[U, S], batches [][]eventlog.Message, reader func() func(context.Context) error) {
	t.Helper()
	b.apply(batches[0])
	done := make(chan struct{})
	var ready, wg sync.WaitGroup
	reads := make([]int, readers)
	for i := range readers {
		read := reader()
		ready.Add(1)
		wg.Go(func() {
			for {
				err := read(b.ctx)
				if reads[i]++; reads[i] == 1 {
					ready.Done()
				}
				if err != nil {
					t.Errorf("round %d of reads: %v", reads[i], err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	ready.Wait()
	for _, batch := range batches[1:] {
		b.apply(batch)
	}
	close(done)
	wg.Wait()
	t.Logf("%d commits, rounds of reads: %v", len(batches), reads)
}

func readersOfGraph(w graphShop) namedCase {
	return namedCase{"readers see whole commits only, while a writer commits without pause", func(t *testing.T) {
		b := w.bench(t)
		batches := turns(NewHistory())
		var mu sync.Mutex
		seen := map[uint64]projection.ConversationHash{}
		whileReading(t, b, batches, func() func(context.Context) error {
			var last uint64
			rounds := 0
			return func(ctx context.Context) error {
				for _, look := range []func(context.Context, graph.Reader, *uint64) error{seesConversation, seesMessages, seesTranscript, seesCounts} {
					if err := look(ctx, b.store, &last); err != nil {
						return err
					}
				}
				if rounds++; rounds%hashedRounds != 0 {
					return nil
				}
				h, err := b.store.Hash(ctx, id("c"))
				if err != nil || h.LastSeq < last {
					return errors.Join(err, fmt.Errorf("the hash is of sequence %d after %d", h.LastSeq, last))
				}
				mu.Lock()
				defer mu.Unlock()
				if before, ok := seen[h.LastSeq]; ok && before != h {
					return fmt.Errorf("two hashes at sequence %d", h.LastSeq)
				}
				seen[h.LastSeq] = h
				return nil
			}
		})
		quiet := w.bench(t)
		for _, batch := range batches {
			quiet.apply(batch)
			if h, ok := seen[batch[len(batch)-1].Seq]; ok {
				require.Equal(t, quiet.hash(id("c")), h)
				delete(seen, h.LastSeq)
			}
		}
		require.Empty(t, seen, "hashes of what was never committed")
	}}
}

// grows checks that a reader never sees less than before.
func grows(what string, seq uint64, last *uint64) error {
	if seq < *last {
		return fmt.Errorf("%s: sequence %d after %d", what, seq, *last)
	}
	*last = seq
	return nil
}

// ofTurns checks that counts are those of whole turns, with no turn half counted.
func ofTurns(c graph.Counts) error {
	n := c.TurnCount
	want := graph.Counts{
		MessageCount: 2 * n, TurnCount: n, StepCount: n, ToolCallCount: n, ToolResultCount: n,
		TotalChars: 2 * n * len("hello"), LastSeq: uint64(rowsOfTurn * n),
	}
	if c != want {
		return fmt.Errorf("counts %+v, want %+v", c, want)
	}
	return nil
}

func seesConversation(ctx context.Context, r graph.Reader, last *uint64) error {
	c, err := r.Conversation(ctx, id("c"), graph.Latest)
	if err != nil {
		return err
	}
	if want := fmt.Sprint("turn ", c.TurnCount); c.Title != want {
		return fmt.Errorf("title %q, want %q", c.Title, want)
	}
	list, err := r.Conversations(ctx, "t", graph.ConversationQuery{})
	if err == nil && len(list.Rows) != 1 {
		err = fmt.Errorf("%d conversations are listed", len(list.Rows))
	}
	return errors.Join(err, ofTurns(c.Counts), grows("conversation", c.LastSeq, last))
}

func seesCounts(ctx context.Context, r graph.Reader, last *uint64) error {
	list, err := r.Counts(ctx, id("c"), []uint64{rowsOfTurn, graph.Latest})
	if err != nil {
		return err
	}
	return errors.Join(ofTurns(list[0]), ofTurns(list[1]), grows("counts", list[1].LastSeq, last))
}

func seesMessages(ctx context.Context, r graph.Reader, last *uint64) error {
	for _, role := range []string{"", "user"} {
		list, err := r.Messages(ctx, id("c"), graph.MessageQuery{Limit: 30, Role: role})
		if err != nil {
			return err
		}
		step, first := 1, list[0]
		if role == "user" {
			step = 2
		}
		for i, m := range list {
			if m.N != first.N-i*step {
				return fmt.Errorf("message %d follows %d, %d after the newest", m.N, first.N, i)
			}
		}
		if last := list[len(list)-1].N; len(list) < 30 && last != 1 {
			return fmt.Errorf("%d messages, the oldest is number %d", len(list), last)
		}
		if role == "" {
			err = ofTurn("newest message", first.Seq, 3)
		}
		seq := first.Seq + uint64(rowsOfTurn-3)
		if role == "user" {
			seq++
		}
		if err := errors.Join(err, grows("messages", seq, last)); err != nil {
			return err
		}
	}
	return nil
}

// ofTurn checks the position of a row in its turn.
func ofTurn(what string, seq uint64, row uint64) error {
	if (seq-row)%rowsOfTurn != 0 {
		return fmt.Errorf("%s: sequence %d is not the end of a turn", what, seq)
	}
	return nil
}

func seesTranscript(ctx context.Context, r graph.Reader, last *uint64) error {
	list, err := r.Transcript(ctx, id("c"), graph.TranscriptQuery{Limit: 40})
	if err != nil {
		return err
	}
	seq, calls := list[0].Position().Seq, []graph.Ref{}
	if err := errors.Join(ofTurn("newest of the transcript", seq, rowsOfTurn), grows("transcript", seq, last)); err != nil {
		return err
	}
	for i, e := range list { // every row of each turn except the title
		if want := seq - uint64(i+i/(rowsOfTurn-1)); e.Position().Seq != want {
			return fmt.Errorf("transcript: sequence %d instead of %d", e.Position().Seq, want)
		}
		if e.Call != nil {
			calls = append(calls, e.Call.Ref())
		}
	}
	results, err := r.Results(ctx, id("c"), calls, graph.Latest)
	if err == nil && len(results) != len(calls) {
		err = fmt.Errorf("%d results of %d calls", len(results), len(calls))
	}
	return err
}

func readersOfFiles(w filesShop) namedCase {
	return namedCase{"readers see whole commits only, while a writer commits without pause", func(t *testing.T) {
		b := w.bench(t)
		var mu sync.Mutex
		seen := map[uint64][]graph.FileAccess{}
		whileReading(t, b, turns(NewHistory()), func() func(context.Context) error {
			var last uint64
			var before []graph.FileAccess
			return func(ctx context.Context) error {
				list, err := b.store.Files(ctx, id("c"), graph.FileQuery{})
				if err != nil {
					return err
				}
				total := 0
				for _, a := range list {
					total += a.Count
				}
				newest := list[0].Seq
				if want := int(newest+1) / rowsOfTurn; total != want || len(list) != min(want, 20) {
					return fmt.Errorf("%d accesses of %d files, %d were made up to sequence %d; before: %v, now: %v", total, len(list), want, newest, before, list)
				}
				before = list
				at, _, err := b.store.LastSeq(ctx, id("c"))
				if err := errors.Join(err, ofTurn("last sequence", at, rowsOfTurn), grows("files", newest+1, &last), grows("last sequence", at, &last)); err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				if other, ok := seen[newest+1]; ok && !reflect.DeepEqual(list, other) {
					return fmt.Errorf("two lists at sequence %d", newest+1)
				}
				seen[newest+1] = slices.Clone(list)
				return nil
			}
		})
		for seq, list := range seen {
			require.Equal(t, list, accesses(b, graph.FileQuery{AsOf: seq}), "as of sequence %d", seq)
		}
	}}
}

// retries returns batches that each start with the result of the previous call, which often
// failed, and end with a call that reads one of a few files again.
func retries(h *History) (batches [][]eventlog.Message) {
	for n := range commits {
		from := len(h.Messages)
		if n > 0 {
			h.Add("c", result(fmt.Sprint("k", n-1), "text", n%3 != 0))
		}
		h.Add("c", read(fmt.Sprint("k", n), fmt.Sprintf("/%d", n%5)))
		batches = append(batches, h.Messages[from:])
	}
	return batches
}

func readersOfRetries(w filesShop) namedCase {
	return namedCase{"readers see a file that comes back in the commit that takes its failed access away", func(t *testing.T) {
		b := w.bench(t)
		var mu sync.Mutex
		seen := map[uint64]map[string][]graph.FileAccess{}
		whileReading(t, b, retries(NewHistory()), func() func(context.Context) error {
			return func(ctx context.Context) error {
				before, _, err := b.store.LastSeq(ctx, id("c"))
				if err != nil {
					return err
				}
				list, err := b.store.Files(ctx, id("c"), graph.FileQuery{})
				if err != nil {
					return err
				}
				if after, _, err := b.store.LastSeq(ctx, id("c")); err != nil || after != before {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				if seen[before] == nil {
					seen[before] = map[string][]graph.FileAccess{}
				}
				list = withoutCounts(list)
				seen[before][fmt.Sprint(list)] = list
				return nil
			}
		})
		for seq, lists := range seen {
			for _, list := range lists {
				require.Equal(t, withoutCounts(accesses(b, graph.FileQuery{AsOf: seq})), list, "at sequence %d", seq)
			}
		}
	}}
}

// withoutCounts drops the counts, which a commit in progress may have changed.
func withoutCounts(list []graph.FileAccess) []graph.FileAccess {
	for i := range list {
		list[i].Count = 0
	}
	return list
}
