package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
)

// summarisedTurns returns batches of one to twelve turns. Every third summarizes everything
// uncovered except itself and the previous batch; every ninth consolidates three of these
// summaries.
func summarisedTurns(h *History) (batches [][]eventlog.Message) {
	next, turn := uint64(1), 0
	var ends []uint64
	var open []string
	for n := range commits {
		from := len(h.Messages)
		for range 1 + n%12 {
			turn++
			h.Add("c", text(fmt.Sprint("u", turn), "user", 10))
			h.Add("c", text(fmt.Sprint("a", turn), "assistant", 20))
		}
		if ends = append(ends, h.Next-1); n%3 == 2 {
			id, last := fmt.Sprint("s", n), ends[n-1]
			h.Add("c", covering(id, 1, next, last))
			open, next = append(open, id), last+1
		}
		if len(open) == 3 {
			first := uint64(1)
			if n >= 9 {
				first = ends[n-10] + 1
			}
			h.Add("c", covering(fmt.Sprint("l", n), 2, first, next-1, open...))
			open = nil
		}
		batches = append(batches, h.Messages[from:])
	}
	return batches
}

// summarising is what readers may see of a conversation after one commit.
type summarising struct {
	conversation summary.Conversation
	marks        []summary.Mark
	ranges       [2][]summary.Taken // by level
	hash         projection.ConversationHash
}

// summarisedAfter returns what is visible after each batch.
func summarisedAfter(w summariesShop, t *testing.T, batches [][]eventlog.Message) (list []summarising) {
	b := w.bench(t)
	for _, batch := range batches {
		b.apply(batch)
		s := summarising{hash: b.hash(id("c"))}
		var err error
		s.conversation, err = b.store.Conversation(b.ctx, id("c"))
		require.NoError(t, err)
		s.marks, err = b.store.Marks(b.ctx, id("c"), 0, 10_000)
		require.NoError(t, err)
		for i := range s.ranges {
			s.ranges[i], err = b.store.Ranges(b.ctx, id("c"), i+1, 0, 10_000)
			require.NoError(t, err)
		}
		list = append(list, s)
	}
	require.Empty(t, b.failed())
	return list
}

func readersOfSummaries(w summariesShop) namedCase {
	return namedCase{"readers see whole commits only, while a writer commits without pause", func(t *testing.T) {
		b := w.bench(t)
		batches := summarisedTurns(NewHistory())
		after := summarisedAfter(w, t, batches)
		whileReading(t, b, batches, func() func(context.Context) error {
			seen := 0 // the newest commit
			// see finds the commit that a read shows, and requires later reads to show none before it.
			see := func(what string, is func(summarising) bool) error {
				for n := seen; n < len(after); n++ {
					if is(after[n]) {
						seen = n
						return nil
					}
				}
				return fmt.Errorf("%s is of no commit from number %d on", what, seen)
			}
			return func(ctx context.Context) error {
				return errors.Join(seesSummarised(ctx, b.store, see), seesRanges(ctx, b.store, see))
			}
		})
	}}
}

func seesSummarised(ctx context.Context, r summary.Reader, see func(string, func(summarising) bool) error) error {
	c, err := r.Conversation(ctx, id("c"))
	if err != nil {
		return err
	}
	is := func(s summarising) bool { return reflect.DeepEqual(c, s.conversation) }
	if err := see(fmt.Sprintf("%+v", c), is); err != nil {
		return err
	}
	marks, err := r.Marks(ctx, id("c"), 0, 10_000)
	if err != nil {
		return err
	}
	if err := see(fmt.Sprintf("a list of %d marks", len(marks)), func(s summarising) bool { return reflect.DeepEqual(marks, s.marks) }); err != nil {
		return err
	}
	list, err := r.Waiting(ctx, summary.WaitingQuery{Pending: 1, After: events.ConversationID{Tenant: "t", ID: "b"}, Limit: 1})
	if err != nil || len(list) != 1 {
		return errors.Join(err, fmt.Errorf("%d conversations wait", len(list)))
	}
	c = list[0]
	return see(fmt.Sprintf("among those that wait %+v", c), is)
}

func seesRanges(ctx context.Context, r summary.Reader, see func(string, func(summarising) bool) error) error {
	for level := range 2 {
		taken, err := r.Ranges(ctx, id("c"), level+1, 0, 10_000)
		if err != nil {
			return err
		}
		if err := see(fmt.Sprintf("a list of %d ranges", len(taken)), func(s summarising) bool { return reflect.DeepEqual(taken, s.ranges[level]) }); err != nil {
			return err
		}
	}
	h, err := r.Hash(ctx, id("c"))
	if err != nil {
		return err
	}
	return see(fmt.Sprintf("a hash at sequence %d", h.LastSeq), func(s summarising) bool { return h == s.hash })
}
