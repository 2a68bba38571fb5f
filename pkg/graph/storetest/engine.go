package storetest

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
)

var (
	graphData = Data{
		Nth:     func(n int) events.Payload { return message(fmt.Sprintf("m%d", n), "user", "hello") },
		Refused: func(text string) events.Payload { return message(text, "user", "hello") },
		Again:   &events.ConversationStarted{Title: "again"},
	}
	filesData = Data{
		Nth:     func(n int) events.Payload { return read(fmt.Sprintf("k%d", n), fmt.Sprintf("/%d", n)) },
		Refused: func(text string) events.Payload { return read("of "+text, text) },
		Again:   &events.ConversationStarted{Title: "again"},
	}
)

var summariesData = Data{
	Nth:     func(n int) events.Payload { return text(fmt.Sprintf("m%d", n), "user", n+1) },
	Refused: func(text string) events.Payload { return &events.ConversationStarted{Profile: text} },
	Again:   &events.ConversationStarted{Title: "again"},
}

func engineCases[U projection.Unit, S projection.Store[U]](w workshop[U, S], d Data) []namedCase {
	cases := []namedCase{
		{"an empty store has a checkpoint of nothing", func(t *testing.T) {
			b := w.bench(t)
			require.Equal(t, projection.Checkpoint{Epoch: 1, Fingerprint: w.projection.Fingerprint()}, b.cp)
			require.Equal(t, contents{Checkpoint: projection.Checkpoint{Fingerprint: w.projection.Fingerprint()}}, b.contents())
			require.Zero(t, b.hash(id("c")).Hash)
		}},
		{"partitions have checkpoints of their own", func(t *testing.T) {
			b := w.bench(t)
			h := NewHistory()
			h.Add("c", d.Nth(1))
			b.apply(h.Messages)
			other, err := b.store.Acquire(b.ctx, 3, w.projection.Fingerprint())
			require.NoError(t, err)
			require.Equal(t, projection.Checkpoint{Partition: 3, Epoch: 1, Fingerprint: w.projection.Fingerprint()}, other)
			list, err := b.store.Checkpoints(b.ctx)
			require.NoError(t, err)
			require.Equal(t, []projection.Checkpoint{b.cp, other}, list)
		}},
		{"an older owner is fenced and changes nothing", func(t *testing.T) {
			b := w.bench(t)
			h := NewHistory()
			h.Add("c", d.Nth(1))
			b.apply(h.Messages)
			older := b.cp
			b.acquire()
			require.Equal(t, older.Epoch+1, b.cp.Epoch)
			before := b.contents()
			h.Add("c", d.Nth(2))
			_, err := w.projection.Apply(b.ctx, b.store, older, h.Messages)
			require.ErrorIs(t, err, projection.ErrFenced)
			require.ErrorIs(t, b.store.Halt(b.ctx, 0, older.Epoch, "late"), projection.ErrFenced)
			require.Equal(t, before, b.contents())
			b.apply(h.Messages)
			require.NotEqual(t, before, b.contents())
		}},
		{"another fingerprint needs a rebuild", func(t *testing.T) {
			b := w.bench(t)
			_, refused := b.store.Acquire(b.ctx, 0, "another/v1/00000000")
			require.ErrorIs(t, refused, projection.ErrRebuild)
			require.ErrorContains(t, refused, "rebuild needed: mneme rebuild "+w.projection.Name)
			require.ErrorContains(t, refused, w.projection.Fingerprint())
			list, err := b.store.Checkpoints(b.ctx)
			require.NoError(t, err)
			require.Equal(t, []projection.Checkpoint{b.cp}, list, "its owner may be well")
		}},
		{"the reason for a halt is kept until it is cleared", func(t *testing.T) {
			b := w.bench(t)
			require.NoError(t, b.store.Halt(b.ctx, 0, b.cp.Epoch, "the log lost its tail"))
			b.reopen()
			require.Equal(t, "the log lost its tail", b.cp.Halted)
			require.NoError(t, b.store.Halt(b.ctx, 0, b.cp.Epoch, ""))
			require.Empty(t, b.contents().Checkpoint.Halted)
		}},
		{"what is dropped is counted, and nothing else changes the count", func(t *testing.T) {
			b := w.bench(t)
			h := NewHistory()
			h.Add("c", d.Nth(1))
			h.Add("d", d.Nth(2))
			b.apply(h.Messages)
			require.Zero(t, b.contents().Checkpoint.Repairs)
			b.drop(id("c"))
			b.drop(id("nobody"))
			b.rewind(0)
			b.apply(h.Messages)
			b.reopen()
			require.EqualValues(t, 2, b.contents().Checkpoint.Repairs)
		}},
		{"an error leaves nothing behind", func(t *testing.T) {
			b := w.bench(t)
			h := NewHistory()
			h.Add("c", d.Nth(1))
			before := b.contents()
			enough := errors.New("enough")
			err := b.store.Update(b.ctx, 0, func(tx projection.Tx[U]) error {
				require.NoError(t, tx.Fail(b.ctx, []projection.Failed{{Seq: 1, Conversation: id("c")}}))
				require.NoError(t, tx.Advance(b.ctx, projection.Checkpoint{Epoch: b.cp.Epoch, Seq: 9}))
				_, err := tx.Claim(b.ctx, []projection.Claim{{Conversation: id("c"), Key: events.DigestOf("key"), Seq: 1}})
				require.NoError(t, err)
				return enough
			})
			require.ErrorIs(t, err, enough)
			require.Equal(t, before, b.contents())
			b.apply(h.Messages)
			require.EqualValues(t, 1, b.cp.Applied)
		}},
		{"data that the store refuses is bisected down to its event", func(t *testing.T) {
			b := w.bench(t)
			undo, err := b.backend.Refuse(b.ctx, b.dir, "/refused")
			require.NoError(t, err)
			h := NewHistory()
			for n := range 50 {
				h.Add("c", d.Nth(n))
			}
			seq := h.Add("c", d.Refused("/refused"))
			for n := range 50 {
				h.Add("d", d.Nth(n))
			}
			b.apply(h.Messages)
			failed := b.failed()
			require.Len(t, failed, 1)
			require.Equal(t, seq, failed[0].Seq)
			require.Equal(t, projection.ClassError, failed[0].Class)
			require.ErrorContains(t, errors.New(failed[0].Reason), "refuse")
			require.EqualValues(t, 100, b.cp.Applied)
			require.Equal(t, h.Next-1, b.cp.Seq)

			// Once the backend accepts it, a repair of its conversation applies it.
			require.NoError(t, undo())
			other := w.bench(t)
			other.apply(h.Messages)
			require.NotEqual(t, other.hash(id("c")).Hash, b.hash(id("c")).Hash)
			b.drop(id("c"))
			b.rewind(0)
			b.apply(h.Messages[:51])
			require.Empty(t, b.failed())
			require.Equal(t, other.hash(id("c")), b.hash(id("c")))
		}},
		{"a conversation is repaired in one transaction, also around an event that is refused", func(t *testing.T) {
			b, whole := w.bench(t), w.bench(t)
			undo, err := b.backend.Refuse(b.ctx, b.dir, "/refused")
			require.NoError(t, err)
			h := NewHistory()
			for n := range 20 {
				h.Add("c", d.Nth(n))
			}
			h.Add("c", d.Refused("/refused"))
			for n := range 20 {
				h.Add("c", d.Nth(20+n))
			}
			b.apply(h.Messages)
			whole.apply(h.Messages)
			before := b.contents()
			repair := func(applied, failed int) {
				t.Helper()
				a, f, err := b.projection.Reapply(b.ctx, b.store, b.cp, id("c"), h.Messages)
				require.NoError(t, err)
				require.Equal(t, []int{applied, failed}, []int{a, f})
			}
			repair(40, 1)
			before.Checkpoint.Repairs++
			require.Equal(t, before, b.contents())
			require.NoError(t, undo())
			repair(41, 0)
			require.Equal(t, whole.contents().Hashes, b.contents().Hashes)
			require.Empty(t, b.failed())
		}},
		{"an event whose reducer fails or panics is listed and the rest applied", func(t *testing.T) {
			b := w.bench(t)
			b.projection = failing(w.projection)
			h := NewHistory()
			for n := range 30 {
				eventID := fmt.Sprintf("e%d", n)
				switch n {
				case 7:
					eventID = "fail"
				case 19:
					eventID = "panic"
				}
				h.AddAs("c", eventID, d.Nth(n))
			}
			b.apply(h.Messages)
			failed := b.failed()
			require.Len(t, failed, 2)
			require.Equal(t, projection.Failed{
				Projection: w.projection.Name, Seq: 8, Conversation: id("c"), EventID: "fail", Type: d.Nth(0).EventType(),
				Class: projection.ClassError, Reason: "this can't be applied",
			}, failed[0])
			require.Contains(t, failed[1].Reason, "a defect")
			require.EqualValues(t, 28, b.cp.Applied)
			require.EqualValues(t, 30, b.cp.Seq)

			// An event that was not applied holds no identity, so it is not a duplicate of itself.
			b.projection = w.projection
			h.AddAs("c", "fail", d.Nth(7))
			b.apply(h.Messages)
			require.EqualValues(t, 29, b.cp.Applied)
			require.Zero(t, b.cp.Duplicates)
		}},
		{"a message that is not an event is listed with the reason", func(t *testing.T) {
			b := w.bench(t)
			h := NewHistory()
			h.Add("c", d.Nth(1))
			h.AddRaw("ev.0.t.c.message_created", nil, []byte("\xff\x00"))
			h.AddRaw("ev.0.t.%zz.message_created", map[string][]string{"ce-id": {"\xff"}}, nil)
			h.Add("c", d.Nth(2))
			b.apply(h.Messages)
			failed := b.failed()
			require.Len(t, failed, 2)
			require.Equal(t, id("c"), failed[0].Conversation)
			require.Equal(t, projection.ClassInvalid, failed[0].Class)
			require.Contains(t, failed[0].Reason, "content-type")
			require.Zero(t, failed[1].Conversation)
			require.Contains(t, failed[1].Reason, "subject token")
			require.EqualValues(t, 2, b.cp.Applied)
		}},
		{"of what could not be read a beginning is listed", func(t *testing.T) {
			b := w.bench(t)
			h := NewHistory()
			long := strings.Repeat("x", 1<<20)
			h.Add("c", &events.MessageCreated{MessageID: "m", Role: "user", Content: "x"})
			m := &h.Messages[0]
			m.Header["ce-id"], m.Header["ce-type"] = []string{long}, []string{long}
			b.apply(h.Messages)
			failed := b.failed()
			require.Len(t, failed, 1)
			require.Less(t, len(failed[0].Reason)+len(failed[0].EventID)+len(failed[0].Type), 4<<10)
		}},
		{"failed events are read in pages", func(t *testing.T) {
			b := w.bench(t)
			h := NewHistory()
			for range 5 {
				h.AddRaw("ev.0.t.c.message_created", nil, nil)
			}
			b.apply(h.Messages)
			page, err := b.store.Failed(b.ctx, projection.FailedQuery{After: 2, Limit: 2})
			require.NoError(t, err)
			require.Len(t, page, 2)
			require.EqualValues(t, 3, page[0].Seq)
			require.EqualValues(t, 4, page[1].Seq)
			for _, after := range []uint64{5, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64} {
				page, err := b.store.Failed(b.ctx, projection.FailedQuery{After: after, Limit: 2})
				require.NoError(t, err)
				require.Empty(t, page, "after %d", after)
			}
		}},
		{"failed events are read by tenant", func(t *testing.T) {
			b := w.bench(t)
			h := NewHistory()
			h.AddRaw("ev.0.t.c.message_created", nil, nil)
			h.AddRaw("ev.0.other.c.message_created", nil, nil)
			h.AddRaw("ev.0.t.%zz.message_created", nil, nil)
			h.AddRaw("ev.0.t.d.message_created", nil, nil)
			b.apply(h.Messages)
			require.Len(t, b.failed(), 4)
			for want, query := range map[string]projection.FailedQuery{
				"[1 4]": {Tenant: "t", Limit: 9}, "[2]": {Tenant: "other", Limit: 9}, "[4]": {Tenant: "t", After: 1, Limit: 9}, "[1]": {Tenant: "t", Limit: 1}, "[]": {Tenant: "nobody", Limit: 9},
			} {
				requireFailed(b, want, query)
			}
		}},
		{"failed events are read by conversation and class", func(t *testing.T) {
			b := w.bench(t)
			h := NewHistory()
			h.AddRaw("ev.0.t.c.message_created", nil, nil)
			h.AddRaw("ev.0.other.c.message_created", nil, nil)
			h.AddRaw("ev.0.t.d.message_created", nil, nil)
			h.AddRaw("ev.0.t.c.message_created", nil, nil)
			b.apply(h.Messages)
			for want, query := range map[string]projection.FailedQuery{
				"[1 4]": {Tenant: "t", Conversation: "c", Limit: 9}, "[4]": {Tenant: "t", Conversation: "c", Class: projection.ClassInvalid, After: 1, Limit: 9},
				"[2]": {Tenant: "other", Conversation: "c", Limit: 9}, "[]": {Tenant: "t", Conversation: "c", Class: projection.ClassError, Limit: 9},
				"[1 2 3 4]": {Class: projection.ClassInvalid, Limit: 9}, "[1]": {Tenant: "t", Conversation: "c", Limit: 1},
			} {
				requireFailed(b, want, query)
			}
		}},
		{"a drop takes rows, claims, failed events and the tombstone of one conversation", func(t *testing.T) {
			b := w.bench(t)
			h := NewHistory()
			h.Add("c", d.Nth(1))
			h.Add("d", d.Nth(1))
			h.AddRaw("ev.0.t.c.message_created", nil, nil)
			h.Add("c", &events.ConversationDeleted{})
			h.Add("c", d.Nth(2))
			b.apply(h.Messages)
			require.Len(t, b.failed(), 2)
			kept := b.hash(id("d"))
			b.drop(id("c"))
			require.Empty(t, b.failed())
			require.Equal(t, []projection.ConversationHash{kept}, b.contents().Hashes)
			require.Zero(t, b.tombstone(id("c")))
			b.drop(id("never seen"))
			require.Equal(t, []projection.ConversationHash{kept}, b.contents().Hashes)
		}},
		{"events of other types move the checkpoint only", func(t *testing.T) {
			b := w.bench(t)
			h := NewHistory()
			h.Add("c", &events.ToolCondensed{ToolCallID: "k", Content: "x", Model: "m"})
			b.apply(h.Messages)
			require.EqualValues(t, 1, b.cp.Seq)
			require.Zero(t, b.cp.Applied)
			require.Empty(t, b.contents().Hashes)
		}},
		{"the hash depends on the order", func(t *testing.T) {
			a, b := w.bench(t), w.bench(t)
			one, two := NewHistory(), NewHistory()
			one.AddAs("c", "e1", d.Nth(1))
			one.AddAs("c", "e2", d.Nth(2))
			two.AddAs("c", "e2", d.Nth(2))
			two.AddAs("c", "e1", d.Nth(1))
			a.apply(one.Messages)
			b.apply(two.Messages)
			require.NotEqual(t, a.hash(id("c")).Hash, b.hash(id("c")).Hash)
		}},
		{"a batch of any size is one batch", func(t *testing.T) {
			b := w.bench(t)
			h := NewHistory()
			for n := range 2345 {
				h.Add(fmt.Sprint(n%7), d.Nth(n))
			}
			b.apply(h.Messages)
			require.EqualValues(t, 2345, b.cp.Applied)
			require.Len(t, b.contents().Hashes, 7)
		}},
	}
	cases = append(append(cases, identityCases(w, d)...), lawCases(w)...)
	if w.backend.SharedEngine {
		cases = slices.DeleteFunc(cases, func(c namedCase) bool { return !ofCodec[c.name] && !strings.HasPrefix(c.name, "law: ") })
	}
	return cases
}

// requireFailed checks which failed events a query finds.
func requireFailed[U projection.Unit, S projection.Store[U]](b *bench[U, S], want string, q projection.FailedQuery) {
	b.t.Helper()
	page, err := b.store.Failed(b.ctx, q)
	require.NoError(b.t, err)
	seqs := []uint64{}
	for _, f := range page {
		seqs = append(seqs, f.Seq)
	}
	require.Equal(b.t, want, fmt.Sprint(seqs), "%+v", q)
}

// ofCodec lists the engine's cases, in addition to its laws, that a read model's codec can fail.
var ofCodec = map[string]bool{
	"an error leaves nothing behind":                                                        true,
	"data that the store refuses is bisected down to its event":                             true,
	"a conversation is repaired in one transaction, also around an event that is refused":   true,
	"an event whose reducer fails or panics is listed and the rest applied":                 true,
	"a drop takes rows, claims, failed events and the tombstone of one conversation":        true,
	"the hash depends on the order":                                                         true,
	"a batch of any size is one batch":                                                      true,
	"a deleted conversation leaves a tombstone, and what comes later is refused and listed": true,
	"ids may hold anything":                                                                 true,
}

// failing is a projection whose reducers fail for the event ids "fail" and "panic".
func failing[U projection.Unit](p projection.Projection[U]) projection.Projection[U] {
	reducers := maps.Clone(p.Reducers)
	for eventType, reduce := range reducers {
		reducers[eventType] = func(u U, e *events.Recorded) error {
			if err := reduce(u, e); err != nil {
				return err
			}
			switch e.ID {
			case "fail":
				return errors.New("this can't be applied")
			case "panic":
				panic("a defect")
			}
			return nil
		}
	}
	p.Reducers = reducers
	return p
}
