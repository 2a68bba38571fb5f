package summary_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/summary"
)

func TestLedgerAcceptsConsecutiveRanges(t *testing.T) {
	t.Parallel()
	known := map[string]summary.Range{}
	find := func(id string) (summary.Range, bool) { r, ok := known[id]; return r, ok }
	var l summary.Ledger
	take := func(id string, level int, first, last uint64, children ...string) error {
		p := &events.SummaryWritten{SummaryID: id, Level: level, FirstSeq: first, LastSeq: last, Children: children, CharsOut: 100}
		err := l.Take(p, 5, 100, find)
		if err == nil {
			known[id] = summary.Range{ID: id, Level: level, First: first, Last: last, Chars: 100}
		}
		return err
	}
	require.NoError(t, take("a", 1, 5, 20))
	require.NoError(t, take("b", 1, 21, 30))
	require.NoError(t, take("c", 1, 31, 40))
	require.NoError(t, take("ab", 2, 5, 30, "a", "b"))
	before := l

	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"an overlap":                     {take("x", 1, 35, 50), "begins at sequence 35, but level 1 is covered up to 40: the next range begins at 41"},
		"a gap":                          {take("x", 1, 45, 50), "leaves a gap"},
		"the same again":                 {take("x", 2, 5, 30, "a", "b"), "level 2 is covered up to 30"},
		"an end beyond the conversation": {take("x", 1, 41, 101), "ends at sequence 101, but the conversation ends at 100"},
		"a level without the one below":  {take("x", 4, 5, 30, "ab"), "there is no summary of level 3"},
		"no children":                    {take("x", 2, 31, 40), "has no children"},
		"children of level 1":            {take("x", 1, 41, 50, "a"), "level 1 has none"},
		"an unknown child":               {take("x", 2, 31, 40, "z"), "which the conversation does not have"},
		"a child of another level":       {take("x", 3, 5, 30, "a", "b"), "of level 1, but has level 3 itself"},
		"children that start elsewhere":  {take("x", 2, 31, 40, "a"), "begins at sequence 5 and not at 31"},
		"children that end early":        {take("x", 2, 31, 45, "c"), "but its children at 40"},
	} {
		require.ErrorContains(t, c.err, c.says, name)
	}
	require.Equal(t, before, l, "a rejected summary changes nothing")
	require.Equal(t, summary.Ledger{Levels: []summary.Level{{Last: 40, Consolidated: 30, Open: 100}, {Last: 30, Open: 100}}}, l)
}

func TestRevisionMustKeepTheSupersededRange(t *testing.T) {
	t.Parallel()
	old := summary.Range{ID: "a", Level: 1, First: 1, Last: 9}
	find := func(id string) (summary.Range, bool) { return old, id == "a" }
	l := summary.Ledger{Levels: []summary.Level{{Last: 9}}}
	revision := events.SummaryWritten{SummaryID: "a2", Level: 1, FirstSeq: 1, LastSeq: 9, Supersedes: "a"}
	require.NoError(t, l.Take(&revision, 1, 50, find))
	require.Equal(t, summary.Ledger{Levels: []summary.Level{{Last: 9}}}, l)
	revision.LastSeq = 10
	require.ErrorContains(t, l.Take(&revision, 1, 50, find), `supersedes "a" of level 1 and sequences 1 to 9, but has level 1 and sequences 1 to 10`)
	revision.Supersedes = "b"
	require.ErrorContains(t, l.Take(&revision, 1, 50, find), `supersedes "b", which the conversation does not have`)
}

// A writer may say anything.
func TestSumsOfCharactersDoNotOverflow(t *testing.T) {
	t.Parallel()
	known := map[string]summary.Range{}
	var l summary.Ledger
	take := func(id string, level int, first, last uint64, children ...string) {
		t.Helper()
		p := &events.SummaryWritten{SummaryID: id, Level: level, FirstSeq: first, LastSeq: last, Children: children, CharsOut: math.MaxInt}
		require.NoError(t, l.Take(p, 1, 100, func(id string) (summary.Range, bool) { r, ok := known[id]; return r, ok }))
		known[id] = summary.Range{ID: id, Level: level, First: first, Last: last, Chars: math.MaxInt}
	}
	take("a", 1, 1, 10)
	take("b", 1, 11, 20)
	take("c", 1, 21, 30)
	require.Equal(t, 3*events.MaxEventBytes, l.Levels[0].Open)
	require.Equal(t, l.Levels[0].Open, (&summary.Conversation{Ledger: l}).Pending())

	state := summary.State{FirstSeq: 1, Ledger: l, Open: [][]summary.Range{{known["a"], known["b"], known["c"]}}}
	plan, due, _ := summary.Due(state, summary.Settings{}, false)
	require.True(t, due)
	require.Equal(t, []int{2, 1, 20, 2 * events.MaxEventBytes}, []int{plan.Level, int(plan.First), int(plan.Last), plan.Chars})

	take("ab", 2, 1, 20, "a", "b")
	require.Equal(t, []summary.Level{{Last: 30, Consolidated: 20, Open: events.MaxEventBytes}, {Last: 20, Open: events.MaxEventBytes}}, l.Levels)
}

// Units of work load copies of a ledger, which share one list with room for more levels.
func TestALedgerDoesNotWriteIntoTheLevelsThatCopiesShare(t *testing.T) {
	t.Parallel()
	shared := []summary.Level{{Last: 20, Open: 200}, {Last: 10}}
	before := slices.Clone(shared)
	find := func(id string) (summary.Range, bool) {
		return summary.Range{ID: id, Level: 1, First: 1, Last: 20, Chars: 200}, true
	}
	l := summary.Ledger{Levels: shared[:1]}
	require.NoError(t, l.Take(&events.SummaryWritten{SummaryID: "1", Level: 2, FirstSeq: 1, LastSeq: 20, Children: []string{"a"}}, 1, 20, find))
	require.EqualValues(t, 20, l.Last(2))
	require.Equal(t, before, shared)
}
