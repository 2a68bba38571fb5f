package summary_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/pkg/summary"
)

// history is a conversation: where its steps begin, and its end.
type history struct {
	marks []summary.Mark
	head  summary.Mark
}

func histories(t *rapid.T) history {
	var h history
	seq, turn, chars := uint64(rapid.IntRange(1, 50).Draw(t, "first")), 0, 0
	for range rapid.IntRange(0, 80).Draw(t, "steps") {
		if turn == 0 || rapid.IntRange(0, 3).Draw(t, "turns") == 0 {
			turn++
		}
		h.marks = append(h.marks, summary.Mark{Seq: seq, Turn: turn, Chars: chars})
		seq += uint64(rapid.IntRange(1, 30).Draw(t, "events"))
		chars += rapid.OneOf(rapid.IntRange(0, 400), rapid.IntRange(0, 30_000)).Draw(t, "chars")
	}
	h.head = summary.Mark{Seq: seq, Turn: turn, Chars: chars}
	return h
}

func drawSettings(t *rapid.T) summary.Settings {
	return summary.Settings{
		MaxContextChars:    rapid.IntRange(1, 300_000).Draw(t, "max"),
		L1ThresholdPercent: rapid.IntRange(1, 100).Draw(t, "l1"),
		L2ThresholdPercent: rapid.IntRange(1, 100).Draw(t, "l2"),
		RawPercent:         rapid.IntRange(0, 20).Draw(t, "raw"),
		MaxTurns:           rapid.IntRange(0, 6).Draw(t, "turns before"),
	}
}

// recorder keeps the state of a conversation as a read model would, from the summaries
// written.
type recorder struct {
	history
	state summary.State
	plans []summary.Plan
}

func newRecorder(h history) *recorder {
	r := &recorder{history: h}
	if len(h.marks) > 0 {
		r.state.FirstSeq = h.marks[0].Seq
	}
	return r
}

// write records the summary of a plan with a text of chars characters.
func (r *recorder) write(p summary.Plan, chars int) {
	for len(r.state.Ledger.Levels) < p.Level {
		r.state.Ledger.Levels = append(r.state.Ledger.Levels, summary.Level{})
		r.state.Open = append(r.state.Open, nil)
	}
	r.state.Ledger.Levels[p.Level-1].Last = p.Last
	r.state.Open[p.Level-1] = append(r.state.Open[p.Level-1], summary.Range{Level: p.Level, First: p.First, Last: p.Last, FirstTurn: p.FirstTurn, LastTurn: p.LastTurn, Chars: chars})
	if p.Level > 1 {
		r.state.Open[p.Level-2] = r.state.Open[p.Level-2][len(p.Children):]
	} else {
		r.state.Turn, r.state.Chars = r.head.Turn, r.head.Chars
		for _, m := range r.marks {
			if m.Seq > p.Last {
				r.state.Turn, r.state.Chars = m.Turn, m.Chars
				break
			}
		}
	}
	r.plans = append(r.plans, p)
}

// at returns the state after so many steps, as far as one page of marks shows it.
func (r *recorder) at(steps, page int) summary.State {
	s := r.state
	s.Head = r.head
	if steps < len(r.marks) {
		s.Head = r.marks[steps]
	}
	for _, m := range r.marks[:steps] {
		if m.Seq <= s.Ledger.Last(1) {
			continue
		}
		if len(s.Marks) == page {
			s.More = true
			break
		}
		s.Marks = append(s.Marks, m)
	}
	return s
}

// settle writes every summary that is due after the given number of steps.
func (r *recorder) settle(t require.TestingT, steps int, settings summary.Settings, chars func() int) {
	for n := 0; ; n++ {
		require.Less(t, n, 1000, "Due never ends")
		page := 1
		plan, due, more := summary.Due(r.at(steps, page), settings, false)
		for ; more; page *= 2 {
			plan, due, more = summary.Due(r.at(steps, page), settings, false)
		}
		if !due {
			return
		}
		r.write(plan, chars())
	}
}

func TestPlansDoNotDependOnWhenDueIsCalled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, settings := histories(t), drawSettings(t)
		length := rapid.IntRange(1, summary.MaxText).Draw(t, "text")
		text := func() int { return length }

		live := newRecorder(h)
		for steps := range h.marks {
			live.settle(t, steps+1, settings, text)
		}
		late := newRecorder(h) // a summarizer that is down at times
		for steps := range h.marks {
			if rapid.IntRange(0, 4).Draw(t, "looks") == 0 {
				late.settle(t, steps+1, settings, text)
			}
		}
		late.settle(t, len(h.marks), settings, text)
		require.ElementsMatch(t, byLevel(live.plans), byLevel(late.plans))
	})
}

// span is what two plans for the same summary must agree on.
type span struct {
	level       int
	first, last uint64
	turns       [2]int
	due         uint64
}

func byLevel(plans []summary.Plan) (list []span) {
	for _, p := range plans {
		list = append(list, span{p.Level, p.First, p.Last, [2]int{p.FirstTurn, p.LastTurn}, p.Due})
	}
	return list
}

func TestRangesAreConsecutiveAndLeaveOutTheNewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, settings := histories(t), drawSettings(t)
		r := newRecorder(h)
		for steps := range h.marks {
			if rapid.IntRange(0, 9).Draw(t, "changes") == 0 { // covers nothing more
				settings = drawSettings(t)
			}
			before := len(r.plans)
			r.settle(t, steps+1, settings, func() int { return rapid.IntRange(0, summary.MaxText).Draw(t, "text") })
			for _, p := range r.plans[before:] {
				if p.Level > 1 {
					continue
				}
				// Kept out: the last two turns, or the raw section's share, whichever is smaller.
				now := h.marks[steps]
				end := r.markAfter(p.Last)
				begins := h.head.Chars
				for _, m := range h.marks[:steps+1] {
					if m.Turn >= now.Turn-1 {
						begins = m.Chars
						break
					}
				}
				require.True(t, now.Chars-end.Chars >= min(settings.Raw(), now.Chars-begins), "%d characters are left, of %d and %d", now.Chars-end.Chars, settings.Raw(), now.Chars-begins)
			}
		}
		ends := map[int]uint64{}
		for _, p := range r.plans {
			want := ends[p.Level] + 1
			if ends[p.Level] == 0 {
				want = r.state.FirstSeq
			}
			require.Equal(t, want, p.First, "level %d", p.Level)
			require.LessOrEqual(t, p.First, p.Last)
			ends[p.Level] = p.Last
			if p.Level == 1 {
				require.NotZero(t, r.markAfter(p.Last).Seq, "a range ends between steps")
				continue
			}
			require.GreaterOrEqual(t, len(p.Children), 2)
			require.Equal(t, p.First, p.Children[0].First)
			require.Equal(t, p.Last, p.Children[len(p.Children)-1].Last)
			require.Less(t, p.Last, ends[p.Level-1], "the last summary of the level below is left out")
		}
	})
}

// markAfter returns the mark right after a sequence, zero if there is none.
func (r *recorder) markAfter(seq uint64) summary.Mark {
	for _, m := range r.marks {
		if m.Seq == seq+1 {
			return m
		}
	}
	return summary.Mark{}
}

func TestForceCoversEverythingBeforeTheLastTurns(t *testing.T) {
	t.Parallel()
	h := history{head: summary.Mark{Seq: 40, Turn: 4, Chars: 400}}
	for turn := range 4 {
		h.marks = append(h.marks, summary.Mark{Seq: uint64(turn*10 + 1), Turn: turn + 1, Chars: turn * 100})
	}
	state := newRecorder(h).at(4, 100)
	_, due, _ := summary.Due(state, summary.DefaultSettings(), false)
	require.False(t, due, "nothing is due")
	plan, due, _ := summary.Due(state, summary.DefaultSettings(), true)
	require.True(t, due)
	require.Equal(t, summary.Plan{Level: 1, First: 1, Last: 20, FirstTurn: 1, LastTurn: 2, Chars: 200, Due: 40}, plan)
}

func TestGiantTurnIsCutBetweenItsSteps(t *testing.T) {
	t.Parallel()
	var h history
	for step := range 100 {
		h.marks = append(h.marks, summary.Mark{Seq: uint64(step*3 + 1), Turn: 1, Chars: step * 1_000})
	}
	h.head = summary.Mark{Seq: 301, Turn: 1, Chars: 100_000}
	r := newRecorder(h)
	r.settle(t, 100, summary.DefaultSettings(), func() int { return 1_000 })
	require.NotEmpty(t, r.plans)
	require.Equal(t, summary.Plan{Level: 1, First: 1, Last: 30, FirstTurn: 1, LastTurn: 1, Chars: 10_000, Due: 46}, r.plans[0], "it is followed by 5,000 characters")
	require.Equal(t, uint64(270), r.state.Ledger.Last(1))
}
