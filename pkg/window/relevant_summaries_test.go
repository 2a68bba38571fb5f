package window_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/window"
)

// checkFoundSummaries: a summary in the relevant past has its relevance and confidence, covers
// nothing that is there or whole in the recent turns, and is in the order of the log. checkOnce
// checks that it is not part of the story so far.
func checkFoundSummaries(c *window.Context, _ truth) error {
	place := uint64(0)
	list := sectionOf(c, window.SectionRelevant)
	for i, it := range list {
		if it.Seq > c.AsOf {
			return fmt.Errorf("%d is shown as of %d", it.Seq, c.AsOf)
		}
		if it.Kind != window.KindSummary {
			place = it.Seq
			continue
		}
		s := it.Summary
		if want := map[bool]float64{true: 0.7, false: 0.5}[s.Level == 1]; it.Match == nil || it.Match.Confidence != want || s.Confidence != want || it.Match.Relevance <= 0 || it.Match.Relevance > 1 {
			return fmt.Errorf("summary %s: %+v", s.SummaryID, it.Match)
		}
		if place > s.FirstSeq || len(s.Parts) == 0 {
			return fmt.Errorf("summary %s of %d to %d comes after %d, with %d parts", s.SummaryID, s.FirstSeq, s.LastSeq, place, len(s.Parts))
		}
		for j, other := range list {
			first, last := other.Seq, other.Seq
			if other.Summary != nil {
				first, last = other.Summary.FirstSeq, other.Summary.LastSeq
			}
			if i != j && s.FirstSeq <= last && first <= s.LastSeq {
				return fmt.Errorf("summary %s covers %d to %d, and %d is already there", s.SummaryID, s.FirstSeq, s.LastSeq, other.Seq)
			}
		}
		turns := sectionOf(c, window.SectionTurns)
		for j := len(turns) - 1; j >= 0 && turns[j].Kind != window.KindLeftOut; j-- {
			if turns[j].Seq <= s.LastSeq {
				return fmt.Errorf("summary %s covers up to %d, and %d is a recent turn", s.SummaryID, s.LastSeq, turns[j].Seq)
			}
		}
	}
	return nil
}

// summarise writes a summary of the events from first to last, which are alone in their store. One
// of level 1 begins after the previous one.
func (c *talk) summarise(id string, level int, first, last uint64, text string, findings ...string) *talk {
	c.t.Helper()
	return c.add(&events.SummaryWritten{
		SummaryID: id, Level: level, FirstSeq: first, LastSeq: last, FirstTurn: 1, LastTurn: 1, Children: []string{}, Method: "extractive",
		Conversation: text, Findings: append([]string{}, findings...), Topics: []string{}, Files: []string{}, Tools: []string{},
	})
}

// billing has a long run of tool steps, covered by one summary, and much else after it, covered by others.
func billing(c *talk) {
	c.user("Plan the week.").assistant("Gladly.").user("Go.").summarise("begin", 1, 1, 3, "User: Plan the week.")
	for i := range 10 {
		call := fmt.Sprint("t", i)
		c.assistant("").call(call, "run", args{"command": "migrate"}).result(call, true, "ok")
	}
	end := uint64(len(c.events))
	c.summarise("billing", 1, 4, end, "The billing database was moved to another server. "+strings.Repeat("It went step by step. ", 40), "The invoices of March were lost in the migration.")
	for i := range 4 {
		first := uint64(len(c.events)) // with the previous summary
		for j := range 15 {
			c.user(fmt.Sprintf("Now item %d of list %d for the garden.", j, i)).assistant("Done, the garden grows.")
		}
		c.summarise(fmt.Sprint("garden", i), 1, first, uint64(len(c.events)), strings.Repeat("The garden was planted. ", 20))
	}
	c.user("What else is there to do?")
}

func TestASummaryIsFoundWhereNoneOfItsTurnsIs(t *testing.T) {
	c := newTalk(t, "c")
	billing(c)
	for _, strategy := range []string{window.StrategyHybrid, window.StrategyRelevant} {
		got := c.build(window.Request{MaxChars: 5_000, Strategy: strategy, Query: "Which invoices were lost in the migration of the billing database?"})
		require.NoError(t, checkRules(got, truthOf(c.events, 1, 0)))
		found := slices.DeleteFunc(slices.Clone(sectionOf(got, window.SectionRelevant)), func(it window.Item) bool { return it.Kind != window.KindSummary })
		require.Len(t, found, 1, "of the garden turns tell")
		assert.Equal(t, "billing", found[0].Summary.SummaryID)
		assert.Contains(t, got.Markdown(), fmt.Sprintf("[Turn 1, level 1, %.0f%%, confidence: 0.7]\n**Conversation**: ", 100*found[0].Match.Relevance))
		assert.Contains(t, got.Markdown(), "**Key findings**: The invoices of March were lost in the migration.\n")
		assert.NotZero(t, found[0].WholeChars, "it is cut around what was asked for")
		assert.Less(t, found[0].Chars, 700)
	}
	got := c.build(window.Request{MaxChars: 5_000, Query: "How does the garden grow?"})
	for _, it := range sectionOf(got, window.SectionRelevant) {
		assert.Equal(t, window.KindRelevant, it.Kind, "turns are about the garden, and billing has nothing to do with it")
	}
}

func TestSearchLeavesOutWhatTheStoryTells(t *testing.T) {
	c := newTalk(t, "c").user("Plan the week.").summarise("begin", 1, 1, 1, "The week was planned.")
	for i := range 10 {
		call := fmt.Sprint("t", i)
		c.assistant("").call(call, "run", args{"command": "migrate"}).result(call, true, "ok")
	}
	c.summarise("billing", 1, 2, uint64(len(c.events)), "The billing database was moved, and invoices were lost.")
	for i := range 60 {
		c.user(fmt.Sprintf("Now item %d of the list for the garden.", i)).assistant(strings.Repeat("The garden grows. ", 20))
	}
	for strategy, section := range map[string]string{window.StrategyHybrid: window.SectionStory, window.StrategyRelevant: window.SectionRelevant} {
		got := c.build(window.Request{MaxChars: 6_000, Query: "Which invoices of the billing database were lost?", Strategy: strategy})
		require.NoError(t, checkRules(got, truthOf(c.events, 1, 0)))
		assert.Equal(t, 1, strings.Count(got.Markdown(), "invoices were lost."), strategy)
		assert.True(t, slices.ContainsFunc(sectionOf(got, section), func(it window.Item) bool { return it.Kind == window.KindSummary && it.Summary.SummaryID == "billing" }), strategy)
	}
}

func TestASummaryOfToolsSplitsNoAdjacentMessages(t *testing.T) {
	c := newTalk(t, "c").user("Plan the week.").assistant("Gladly.").user("Move the billing database to another server.")
	for i := range 10 {
		call := fmt.Sprint("t", i)
		c.call(call, "run", args{"command": "migrate"}).result(call, true, "ok")
	}
	c.assistant("The billing database is on another server.")
	c.summarise("begin", 1, 1, 3, "The week was planned.").summarise("billing", 1, 4, 23, "The invoices of the billing database were lost.")
	for i := range 60 {
		c.user(fmt.Sprintf("Now item %d of the list for the garden.", i)).assistant(strings.Repeat("The garden grows. ", 20))
	}
	c.summarise("garden", 1, 24, 120, "The garden was planted.")
	c.add(&events.SummaryWritten{
		SummaryID: "all", Level: 2, FirstSeq: 1, LastSeq: 120, FirstTurn: 1, LastTurn: 40, Method: "extractive", Conversation: "Much was done.",
		Children: []string{"begin", "billing", "garden"}, Findings: []string{}, Topics: []string{}, Files: []string{}, Tools: []string{},
	})
	got := c.build(window.Request{MaxChars: 6_000, Query: "What about the invoices of the billing database?"})
	require.NoError(t, checkRules(got, truthOf(c.events, 1, 0)))
	assert.Contains(t, got.Markdown(), "**User**: Move the billing database to another server.\n\n**Assistant**: The billing database is on another server.")
}

// A search finds the detail of what the story only summarizes.
func TestASummaryThatIsConsolidatedIsFound(t *testing.T) {
	c := newTalk(t, "c")
	billing(c)
	c.add(&events.SummaryWritten{
		SummaryID: "both", Level: 2, FirstSeq: 1, LastSeq: 34, FirstTurn: 1, LastTurn: 1, Method: "extractive", Conversation: "Databases were moved, with invoices lost in the migration of billing.",
		Children: []string{"begin", "billing"}, Findings: []string{}, Topics: []string{}, Files: []string{}, Tools: []string{},
	})
	got := c.build(window.Request{MaxChars: 5_000, Query: "Which invoices were lost in the migration of the billing database?"})
	require.NoError(t, checkRules(got, truthOf(c.events, 1, 0)))
	before, found, _ := strings.Cut(got.Markdown(), "## Relevant Past Context")
	found, story, _ := strings.Cut(found, "## Story So Far")
	assert.Contains(t, story, "[Turn 1, level 2, confidence: 0.5]\n**Conversation**: Databases were moved")
	assert.Contains(t, found, "The invoices of March were lost in the migration.")
	assert.NotContains(t, before+found, "level 2")
}

func TestASummaryIsNotFoundBeforeItWasWritten(t *testing.T) {
	c := newTalk(t, "c")
	billing(c)
	s := newStore(t)
	s.apply(c.events)
	for asOf, found := range map[uint64]bool{34: false, 100: true} {
		got, err := window.Build(t.Context(), s.source(), window.Request{Conversation: idOf("c"), MaxChars: 3_000, Query: "Which invoices were lost in the migration?", AsOf: asOf})
		require.NoError(t, err)
		assert.Equal(t, found, strings.Contains(got.Markdown(), "The invoices of March"), asOf)
	}
}

// summarisedTalk draws a conversation about a few subjects, in words or not, with summaries on two
// levels, many of which are written late. There is one sequence before its first event.
func summarisedTalk(rt *rapid.T, t *testing.T, id string, before uint64) *talk {
	c := newTalk(t, id).user("Begin.")
	subject := rapid.SampledFrom(subjects)
	var ends []uint64 // of summarized events, and of events not summarized yet
	written := 0
	for block := range rapid.IntRange(1, 12).Draw(rt, "blocks") {
		about := subject.Draw(rt, "about")
		words := rapid.Bool().Draw(rt, "in words")
		for i := range rapid.IntRange(1, 12).Draw(rt, "steps") {
			if words {
				c.user(fmt.Sprintf("Tell me more of %s, number %d.", about, i)).assistant(strings.Repeat("So it is with "+about+". ", rapid.IntRange(0, 12).Draw(rt, "long")))
				continue
			}
			call := fmt.Sprintf("t%d-%d", block, i)
			c.assistant("").call(call, "run", args{"of": about}).result(call, true, "ok")
		}
		ends = append(ends, before+uint64(len(c.events)))
		for written < len(ends) && rapid.IntRange(0, 2).Draw(rt, "later") > 0 {
			first := before + 1
			if written > 0 {
				first = ends[written-1] + 1
			}
			text := strings.Repeat("It was all about "+subject.Draw(rt, "told")+". ", rapid.IntRange(1, 50).Draw(rt, "times"))
			c.summarise(fmt.Sprint("a", written), 1, first, ends[written], text, "A finding on "+subject.Draw(rt, "finding")+".")
			if written++; written%3 != 0 {
				continue
			}
			if first = before + 1; written > 3 {
				first = ends[written-4] + 1
			}
			c.add(&events.SummaryWritten{
				SummaryID: fmt.Sprint("b", written), Level: 2, FirstSeq: first, LastSeq: ends[written-1], FirstTurn: 1, LastTurn: 1, Method: "extractive", Conversation: "Of " + about + ", in short.",
				Children: []string{fmt.Sprint("a", written-3), fmt.Sprint("a", written-2), fmt.Sprint("a", written-1)}, Findings: []string{}, Topics: []string{}, Files: []string{}, Tools: []string{},
			})
		}
	}
	return c
}

var subjects = []string{"the billing database", "a garden of roses", "the parser of dates", "trains to Rome", "a cache of shards"}

// Whatever was said and summarized, a context with summaries keeps the rules, and one as of a
// sequence equals the one of that time.
func TestSummariesAmongTheRelevantPastKeepTheRules(t *testing.T) {
	levels := map[int]int{} // of those that were found
	s := newStore(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		first := s.seq + 1
		c := summarisedTalk(rt, t, fmt.Sprint("c", n), s.seq)
		request := func(asOf uint64) window.Request {
			return window.Request{
				Conversation: idOf(c.id), Query: "What do we know of " + rapid.SampledFrom(subjects).Draw(rt, "query") + "?", AsOf: asOf,
				MaxChars: rapid.IntRange(1_000, 10_000).Draw(rt, "max"), Strategy: rapid.SampledFrom([]string{window.StrategyHybrid, window.StrategyRelevant}).Draw(rt, "strategy"),
			}
		}
		build := func(req window.Request) *window.Context {
			got, err := window.Build(t.Context(), s.source(), req)
			require.NoError(rt, err)
			require.NoError(rt, checkRules(got, truthOf(c.events, first, req.AsOf)), "%d\n%s", req.MaxChars, got.Markdown())
			require.NoError(rt, checkSame(t, s.source(), req, got))
			for _, it := range sectionOf(got, window.SectionRelevant) {
				if it.Kind == window.KindSummary {
					levels[it.Summary.Level]++
				}
			}
			return got
		}
		some := rapid.IntRange(1, len(c.events)).Draw(rt, "some")
		s.apply(c.events[:some])
		then := request(s.seq)
		was := build(then)
		s.apply(c.events[some:])
		require.Equal(rt, was.Markdown(), build(then).Markdown(), "as of %d", then.AsOf)
		for range 3 {
			build(request(0))
		}
	})
	assert.GreaterOrEqual(t, levels[1], n/9, "too few summaries were found") // half as many as in the worst of 100 runs
	t.Logf("found by level: %v", levels)
}

// The recent turns show everything from the first event on, which here is a result without a call.
func TestASummaryOfWhatTheRecentTurnsShowIsNotFound(t *testing.T) {
	s := newStore(t)
	c := newTalk(t, "c")
	c.add(&events.ToolReturned{ToolCallID: "unknown", Result: events.TextResult("the parser broke")})
	c.say("system", "the parser")
	c.add(&events.SummaryWritten{
		SummaryID: "L1-1", Level: 1, FirstSeq: 1, LastSeq: 2, Conversation: "The parser broke.",
		Findings: []string{}, Topics: []string{}, Files: []string{}, Tools: []string{}, Children: []string{}, Method: "extractive",
	})
	c.add(&events.ToolCalled{ToolCallID: "c1", ToolName: "run", Arguments: json.RawMessage(`{}`)})
	c.say("user", "Why did the parser break?")
	s.apply(c.events)
	got, err := window.Build(t.Context(), s.source(), window.Request{Conversation: idOf("c"), Strategy: window.StrategyHybrid, MaxChars: 20_000})
	require.NoError(t, err)
	var kinds []string
	for _, it := range sectionOf(got, window.SectionTurns) {
		kinds = append(kinds, it.Kind)
	}
	assert.Equal(t, []string{window.KindToolResult, window.KindMessage, window.KindToolCall, window.KindMessage}, kinds)
	require.NoError(t, checkFoundSummaries(got, truth{}))
	assert.Empty(t, sectionOf(got, window.SectionRelevant))
}
