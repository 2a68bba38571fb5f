package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
)

type summariesShop = workshop[*summary.Unit, summary.Store]

// text returns a message of n characters.
func text(id, role string, chars int) *events.MessageCreated {
	return message(id, role, strings.Repeat("x", chars))
}

// covering returns a summary of a range, with a text of 100 characters.
func covering(id string, level int, first, last uint64, children ...string) *events.SummaryWritten {
	return &events.SummaryWritten{
		SummaryID: id, Level: level, FirstSeq: first, LastSeq: last, Children: children, Conversation: id, Method: "extractive", CharsOut: 100,
		Findings: []string{}, Topics: []string{}, Files: []string{}, Tools: []string{},
	}
}

func summariesCases(w summariesShop) []namedCase {
	return []namedCase{
		{"marks stand where turns and steps begin, and go when they are covered", func(t *testing.T) {
			h := NewHistory()
			h.Add("c", &events.ConversationStarted{MaxContextChars: 5_000, Profile: "small"})
			h.Add("c", text("m1", "user", 10))
			h.Add("c", text("m2", "assistant", 20))
			h.Add("c", read("k1", "/a"))
			h.Add("c", result("k1", strings.Repeat("y", 3_000), true))
			h.Add("d", text("m1", "user", 5))
			h.Add("c", text("m3", "assistant", 30))
			h.Add("c", text("s1", "system", 40))
			h.Add("c", text("m4", "user", 50))
			h.Add("c", text("m5", "assistant", 60))
			called := summary.Count(read("k1", "/a"))
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *bench[*summary.Unit, summary.Store]) {
				marks, err := b.store.Marks(b.ctx, id("c"), 0, 100)
				require.NoError(t, err)
				step := 30 + called + summary.MaxResult
				require.Equal(t, []summary.Mark{{Seq: 2, Turn: 1}, {Seq: 3, Turn: 1, Chars: 10}, {Seq: 7, Turn: 1, Chars: step}, {Seq: 9, Turn: 2, Chars: step + 70}, {Seq: 10, Turn: 2, Chars: step + 120}}, marks)
				c, err := b.store.Conversation(b.ctx, id("c"))
				require.NoError(t, err)
				c.Key = 0
				require.Equal(t, summary.Conversation{
					ConversationState: projection.ConversationState{ID: id("c"), LastSeq: 10}, FirstSeq: 1, Turn: 2, Chars: step + 180, MaxContextChars: 5_000, Profile: "small", FirstUser: 2, Answered: true,
				}, c)
				unknown, err := b.store.Conversation(b.ctx, id("unknown"))
				require.NoError(t, err)
				require.Zero(t, unknown.LastSeq)
			})

			h.Add("c", covering("a", 1, 1, 6))
			h.Add("c", covering("b", 1, 7, 9))
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *bench[*summary.Unit, summary.Store]) {
				marks, err := b.store.Marks(b.ctx, id("c"), 0, 100)
				require.NoError(t, err)
				step := 30 + called + summary.MaxResult
				require.Equal(t, []summary.Mark{{Seq: 10, Turn: 2, Chars: step + 120}}, marks)
				c, err := b.store.Conversation(b.ctx, id("c"))
				require.NoError(t, err)
				require.Equal(t, [2]int{2, step + 120}, [2]int{c.CoveredTurn, c.CoveredChars})
				require.Equal(t, summary.Ledger{Levels: []summary.Level{{Last: 9, Open: 200}}}, c.Ledger)
				require.Equal(t, 200, c.Pending())
			})
		}},
		{"summaries of summaries, revisions, and what is not taken", func(t *testing.T) {
			h := NewHistory()
			for n := range 40 {
				h.Add("c", text(fmt.Sprintf("m%d", n), []string{"user", "assistant"}[n%2], 100))
			}
			h.Add("c", covering("a", 1, 1, 10))
			h.Add("c", covering("b", 1, 11, 20))
			revision := covering("a2", 1, 1, 10)
			revision.Supersedes, revision.CharsOut = "a", 900
			h.Add("c", revision)
			h.Add("c", covering("gap", 1, 25, 30))
			h.Add("c", covering("c", 1, 21, 30))
			h.Add("c", covering("over", 1, 30, 35))
			h.Add("c", covering("ab", 2, 1, 20, "a2", "b"))
			h.Add("c", covering("air", 4, 1, 20, "ab"))
			h.Add("nobody", covering("x", 1, 1, 10))
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *bench[*summary.Unit, summary.Store]) {
				names := func(level int, after uint64) (list []string) {
					taken, err := b.store.Ranges(b.ctx, id("c"), level, after, 100)
					require.NoError(t, err)
					for _, one := range taken {
						list = append(list, fmt.Sprintf("%s %d-%d at %d", one.ID, one.First, one.Last, one.Seq))
					}
					return list
				}
				require.Equal(t, []string{"a 1-10 at 41", "b 11-20 at 42", "c 21-30 at 45"}, names(1, 0))
				require.Equal(t, []string{"c 21-30 at 45"}, names(1, 20))
				require.Equal(t, []string{"ab 1-20 at 47"}, names(2, 0))
				c, err := b.store.Conversation(b.ctx, id("c"))
				require.NoError(t, err)
				require.Equal(t, summary.Ledger{Levels: []summary.Level{{Last: 30, Consolidated: 20, Open: 100}, {Last: 20, Open: 100}}}, c.Ledger, "of a range the first revision counts")
				failed, err := b.store.Failed(b.ctx, projection.FailedQuery{Limit: 10})
				require.NoError(t, err)
				var reasons []string
				for _, f := range failed {
					require.Equal(t, projection.ClassInvalid, f.Class)
					reasons = append(reasons, fmt.Sprintf("%d %s", f.Seq, f.Reason))
				}
				require.Equal(t, []string{
					"44 invalid: begins at sequence 25 and leaves a gap: the next range of level 1 begins at 21",
					"46 invalid: begins at sequence 30, but level 1 is covered up to 30: the next range begins at 31",
					"48 invalid: has level 4, but there is no summary of level 3",
					"49 invalid: the conversation has no events before it",
				}, reasons)
			})
		}},
		{"a summary that comes again is a repeat, not an overlap", func(t *testing.T) {
			h := NewHistory()
			for n := range 10 {
				h.Add("c", text(fmt.Sprintf("m%d", n), "user", 100))
			}
			first := covering("a", 1, 1, 5)
			h.AddAs("c", "s", first)
			h.Add("c", covering("b", 1, 6, 8))
			h.AddAs("c", "s", first)
			h.AddAs("c", "s", covering("other", 1, 9, 10))
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *bench[*summary.Unit, summary.Store]) {
				require.EqualValues(t, 1, b.cp.Duplicates)
				failed, err := b.store.Failed(b.ctx, projection.FailedQuery{Limit: 10})
				require.NoError(t, err)
				require.Len(t, failed, 1)
				require.Contains(t, failed[0].Reason, "the event at sequence 11 has the same identity and other content")
			})
		}},
		{"a summary of very many others is found due", func(t *testing.T) {
			h := NewHistory()
			const n = 600
			for i := range n {
				h.Add("c", text(fmt.Sprintf("m%d", i), "user", 1))
			}
			for i := range uint64(n) {
				h.Add("c", covering(fmt.Sprintf("s%d", i), 1, i+1, i+1))
			}
			b := w.bench(t)
			b.apply(h.Messages)
			settings := summary.DefaultSettings()
			settings.MaxContextChars = 550_000
			_, plan, due, err := summary.Read(b.ctx, b.store, id("c"), settings, false)
			require.NoError(t, err)
			require.True(t, due)
			require.Equal(t, [2]int{2, 550}, [2]int{plan.Level, len(plan.Children)})
			require.Equal(t, [2]uint64{1, 550}, [2]uint64{plan.First, plan.Last})
		}},
		{"what waits is listed in pages", func(t *testing.T) {
			h := NewHistory()
			h.Add("a", text("m1", "user", 50))
			h.Add("a", text("m2", "assistant", 50))
			h.Add("b", text("m1", "user", 5_000))
			h.Add("c", &events.ConversationStarted{Title: "named"})
			h.Add("c", text("m1", "user", 1))
			h.Add("c", text("m2", "assistant", 1))
			for turn := range 4 {
				h.Add("d", text(fmt.Sprint(turn), "user", 1))
			}
			h.Add("e", text("m1", "user", 9_000))
			h.Add("e", &events.ConversationDeleted{})
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *bench[*summary.Unit, summary.Store]) {
				waiting := func(q summary.WaitingQuery) (names string) {
					for q.Limit = 1; ; {
						list, err := b.store.Waiting(b.ctx, q)
						require.NoError(t, err)
						if len(list) == 0 {
							return names
						}
						names += list[0].ID.ID
						q.After = list[0].ID
					}
				}
				require.Equal(t, "b", waiting(summary.WaitingQuery{Pending: 1_000}))
				require.Equal(t, "bd", waiting(summary.WaitingQuery{Pending: 1_000, Turns: 3}))
				require.Equal(t, "ab", waiting(summary.WaitingQuery{Pending: 1_000, Untitled: true}))
			})
		}},
		readersOfSummaries(w),
	}
}
