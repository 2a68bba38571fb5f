package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/projection"
)

// manyBatches is how many batches a history is split into, if it has so many events.
const manyBatches = 50

// inOneBatchAndInMany runs a check with the history applied in one batch and in many.
func inOneBatchAndInMany[U projection.Unit, S projection.Store[U]](t *testing.T, w workshop[U, S], h *History, check func(t *testing.T, b *bench[U, S])) {
	t.Helper()
	t.Run("in one batch", func(t *testing.T) {
		b := w.bench(t)
		b.apply(h.Messages)
		check(t, b)
	})
	t.Run("in many batches", func(t *testing.T) {
		b := w.bench(t)
		for batch := range slices.Chunk(h.Messages, 1+len(h.Messages)/manyBatches) {
			b.apply(batch)
		}
		check(t, b)
	})
}

func identityCases[U projection.Unit, S projection.Store[U]](w workshop[U, S], d Data) []namedCase {
	return []namedCase{
		{"a known event is dropped and counted", func(t *testing.T) {
			h := NewHistory()
			h.AddAs("c", "e1", d.Nth(1))
			h.AddAs("c", "e2", d.Nth(2))
			h.AddAs("c", "e1", d.Nth(1))
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *bench[U, S]) {
				require.EqualValues(t, 2, b.cp.Applied)
				require.EqualValues(t, 1, b.cp.Duplicates)
				require.Empty(t, b.failed())
			})
		}},
		{"a known event with other content is dropped and listed", func(t *testing.T) {
			h := NewHistory()
			h.AddAs("c", "e1", d.Nth(1))
			h.AddAs("c", "e1", d.Nth(2))
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *bench[U, S]) {
				require.EqualValues(t, 1, b.cp.Applied)
				require.Zero(t, b.cp.Duplicates)
				failed := b.failed()
				require.Len(t, failed, 1)
				require.EqualValues(t, 2, failed[0].Seq)
				require.Equal(t, projection.ClassInvalid, failed[0].Class)
				require.Contains(t, failed[0].Reason, "sequence 1")
			})
		}},
		{"a known payload under another event id is dropped and counted", func(t *testing.T) {
			h := NewHistory()
			h.AddAs("c", "e1", d.Nth(1))
			h.AddAs("c", "e2", d.Nth(1))
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *bench[U, S]) {
				require.EqualValues(t, 1, b.cp.Applied)
				require.EqualValues(t, 1, b.cp.Duplicates)
			})
		}},
		{"an event that is refused takes no id from those after it", func(t *testing.T) {
			h := NewHistory()
			h.AddAs("c", "e1", d.Nth(1))
			h.AddAs("c", "e1", d.Nth(2)) // refused: e1 has other content
			h.AddAs("c", "e3", d.Nth(2)) // the payload is new
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *bench[U, S]) {
				require.EqualValues(t, 2, b.cp.Applied)
				require.Zero(t, b.cp.Duplicates)
				require.Len(t, b.failed(), 1)
			})
		}},
		{"an id passes from invalid events to the first valid one", func(t *testing.T) {
			strict := w
			strict.projection.Reducers = maps.Clone(w.projection.Reducers)
			for eventType, reduce := range strict.projection.Reducers {
				strict.projection.Reducers[eventType] = func(u U, e *events.Recorded) error {
					if e.Seq != 3 {
						return fmt.Errorf("%w: it is not the third", projection.ErrInvalid)
					}
					return reduce(u, e)
				}
			}
			h := NewHistory()
			for range 4 {
				h.AddAs("c", "e1", d.Nth(1))
			}
			h.AddAs("c", "e2", d.Nth(2))
			inOneBatchAndInMany(t, strict, h, func(t *testing.T, b *bench[U, S]) {
				require.EqualValues(t, 1, b.cp.Applied)
				require.EqualValues(t, 1, b.cp.Duplicates)
				failed := b.failed()
				require.Len(t, failed, 3)
				for i, seq := range []uint64{1, 2, 5} {
					require.Equal(t, seq, failed[i].Seq)
					require.Contains(t, failed[i].Reason, "it is not the third")
				}
			})
		}},
		{"a refused event is told the holder of its event id before that of its payload", func(t *testing.T) {
			h := NewHistory()
			h.AddAs("c", "e1", d.Nth(1))
			h.AddAs("c", "e2", d.Nth(2))
			h.AddAs("c", "e1", d.Nth(2)) // both are taken, by different events
			for _, batch := range []int{1, 2, 3} {
				b := w.bench(t)
				b.apply(h.Messages[:batch-1]) // stored before the last batch
				b.apply(h.Messages[batch-1:])
				failed := b.failed()
				require.Len(t, failed, 1)
				require.Contains(t, failed[0].Reason, "sequence 1 ", "%d stored before", batch-1)
			}
		}},
		{"ids are unique within their conversation and tenant only", func(t *testing.T) {
			h := NewHistory()
			h.AddAs("c", "e1", d.Nth(1))
			h.AddAs("d", "e1", d.Nth(1))
			h.Tenant = "u"
			h.AddAs("c", "e1", d.Nth(1))
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *bench[U, S]) {
				require.EqualValues(t, 3, b.cp.Applied)
				require.Len(t, b.contents().Hashes, 3)
			})
		}},
		{"the same id from another source is another event", func(t *testing.T) {
			h := NewHistory()
			for i, source := range []string{"a", "b"} {
				e, err := events.New("c", source, "e1", d.Nth(i))
				require.NoError(t, err)
				h.AddEvent(e)
			}
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *bench[U, S]) { require.EqualValues(t, 2, b.cp.Applied) })
		}},
		{"white space, time and extensions do not make other content", func(t *testing.T) {
			h := NewHistory()
			h.AddAs("c", "e1", d.Nth(1))
			e, err := events.New("c", "storetest", "e1", d.Nth(1))
			require.NoError(t, err)
			e.Data = append([]byte(" "), e.Data...)
			e.Extensions["traceparent"] = "x"
			h.AddEvent(e)
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *bench[U, S]) { require.EqualValues(t, 1, b.cp.Duplicates) })
		}},
		{"holders of keys can be asked for", func(t *testing.T) {
			b := w.bench(t)
			h := NewHistory()
			h.AddAs("c", "e1", d.Nth(1))
			b.apply(h.Messages)
			m := eventlog.Message{Seq: 1, Subject: h.Messages[0].Subject, Header: h.Messages[0].Header, Data: h.Messages[0].Data}
			e, _, err := m.Decode()
			require.NoError(t, err)
			claims := []projection.Claim{
				{Conversation: id("c"), Key: events.DigestOf("free")},
				{Conversation: id("c"), Key: e.Identity("t")},
				{Conversation: id("c"), Key: projection.PayloadKey(id("c"), e.Payload.Key())},
				{Conversation: id("nobody"), Key: e.Identity("t")},
			}
			for range 100 { // more than a store looks up at once
				claims = append(claims, claims[0])
			}
			claims = append(claims, claims[1])
			held, err := b.store.Holders(b.ctx, claims)
			require.NoError(t, err)
			require.Len(t, held, 3)
			require.Equal(t, held[1], held[len(claims)-1])
			require.Equal(t, projection.Claim{Conversation: id("c"), Key: e.Identity("t"), Content: e.Content(), Seq: 1}, held[1])
			require.EqualValues(t, 1, held[2].Seq)
		}},
		{"a deleted conversation leaves a tombstone, and what comes later is refused and listed", func(t *testing.T) {
			h := NewHistory()
			h.Add("c", d.Nth(1))
			h.Add("d", d.Nth(1))
			h.Add("c", &events.ConversationDeleted{Reason: "asked for"})
			h.Add("c", d.Nth(2))
			h.Add("c", d.Again)
			h.Add("d", d.Nth(2))
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *bench[U, S]) {
				require.EqualValues(t, 3, b.tombstone(id("c")))
				require.EqualValues(t, 4, b.cp.Applied)
				failed := b.failed()
				require.Len(t, failed, 2)
				for i, f := range failed {
					require.EqualValues(t, 4+i, f.Seq)
					require.Equal(t, projection.ClassInvalid, f.Class)
					require.Contains(t, f.Reason, "deleted at sequence 3")
				}
				h := b.hash(id("c"))
				require.NotZero(t, h.Hash)
				require.EqualValues(t, 3, h.LastSeq)
				require.EqualValues(t, 6, b.hash(id("d")).LastSeq)
			})
		}},
		{"a known event is known too in the batch that deletes its conversation", func(t *testing.T) {
			b := w.bench(t)
			h := NewHistory()
			h.AddAs("c", "e1", d.Nth(1))
			h.AddAs("d", "e1", d.Nth(1))
			b.apply(h.Messages)
			h.AddAs("c", "e1", d.Nth(1))
			h.AddAs("c", "e1", d.Nth(2))
			h.Add("c", &events.ConversationDeleted{})
			h.AddAs("d", "e1", &events.ConversationDeleted{}) // refused: e1 has other content
			b.apply(h.Since(3))
			require.EqualValues(t, 3, b.cp.Applied)
			require.EqualValues(t, 1, b.cp.Duplicates)
			require.Len(t, b.failed(), 2)
			require.EqualValues(t, 5, b.tombstone(id("c")))
			require.Zero(t, b.tombstone(id("d")))
		}},
		{"a conversation that was never seen can be deleted", func(t *testing.T) {
			h := NewHistory()
			h.Add("c", &events.ConversationDeleted{})
			h.Add("c", d.Nth(1))
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *bench[U, S]) {
				require.EqualValues(t, 1, b.tombstone(id("c")))
				require.Len(t, b.failed(), 1)
			})
		}},
		{"ids may hold anything", func(t *testing.T) {
			odd := []string{
				"a.b.c", "with space", "*", ">", "a*b>", "%", "%41", "😀", "é", "e\u0301", "日本語", "\u2028", "A", "a", "'; DROP TABLE conversation; --",
				"back`tick", `"quoted"`, `\`, "line\nbreak", "nul\x00byte", strings.Repeat("x", 500), strings.Repeat("é", 250), "\u202Ertl", "\uFFFD",
			}
			h := NewHistory()
			for i, s := range odd {
				h.AddAs(s, s, d.Nth(i))
				h.AddAs(s, s, d.Nth(i))
			}
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *bench[U, S]) {
				require.EqualValues(t, len(odd), b.cp.Applied, "%v", b.failed())
				require.EqualValues(t, len(odd), b.cp.Duplicates)
				c := b.contents()
				require.Len(t, c.Hashes, len(odd))
				for i, h := range c.Hashes {
					require.Contains(t, odd, h.Conversation.ID)
					require.Equal(t, h, b.hash(h.Conversation))
					if i > 0 {
						require.Less(t, c.Hashes[i-1].Conversation.ID, h.Conversation.ID, "sorted bytewise")
					}
				}
			})
		}},
	}
}
