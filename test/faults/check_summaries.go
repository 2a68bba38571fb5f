package main

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/summary"
)

// The defaults of a summarizer, from docs/summaries.md.
const (
	thresholdShare = 10    // percent of a budget, of every level
	leastThreshold = 3_000 // characters
	rawShare       = 5     // percent of a budget that may stay uncovered
	mostOfSummary  = 1_500 // characters
)

// Told says how much the summarizers wrote.
type Told struct {
	Summaries []int `json:"summaries"` // on each level, from 1 on
	Titles    int   `json:"titles"`
}

// checkStories checks the summaries and titles of the log: no event of a summarizer is there twice;
// on each level ranges start at the beginning of the conversation and follow each other without
// overlap or gap; each summary states its sources correctly; and none that is due is missing. It
// returns the totals.
func (o *oracle) checkStories(found findings) (done Told) {
	for identity, times := range o.written {
		if times > 1 {
			found("doubled: the log has the event %s of a summarizer %d times", identity, times)
		}
	}
	for id, s := range o.stories {
		if o.graph.deleted[id] {
			continue
		}
		s.check(func(format string, args ...any) { found("%s: %s", id, fmt.Sprintf(format, args...)) })
		for _, t := range s.told {
			for len(done.Summaries) < t.level {
				done.Summaries = append(done.Summaries, 0)
			}
			done.Summaries[t.level-1]++
		}
		done.Titles += s.titles
	}
	return done
}

func (s *story) check(found findings) {
	var levels [][]told
	for _, t := range s.told {
		for len(levels) < t.level {
			levels = append(levels, nil)
		}
		next := s.first
		if n := len(levels[t.level-1]); n > 0 {
			next = levels[t.level-1][n-1].last + 1
		}
		switch {
		case t.first < next:
			found("doubled: the summary %s covers a range that level %d already covers, up to sequence %d", t.id, t.level, next-1)
		case t.first > next:
			found("lost: nothing of level %d covers sequences %d to %d before the summary %s", t.level, next, t.first-1, t.id)
		}
		if t.last >= t.seq || t.last < t.first {
			found("the summary %s of sequence %d covers %d to %d", t.id, t.seq, t.first, t.last)
			continue
		}
		if t.how != "" || t.charsOut < 1 || t.charsOut > mostOfSummary {
			found("the summary %s has %d characters and is written like this: %q", t.id, t.charsOut, t.how)
		}
		if t.level == 1 {
			s.checkRange(t, found)
		} else if t.level > 1 {
			checkChildren(t, levels[t.level-2], found)
		}
		levels[t.level-1] = append(levels[t.level-1], t)
	}
	s.checkNothingIsDue(levels, found)
	switch {
	case s.titles > 1:
		found("doubled: it was given a title %d times", s.titles)
	case s.renamed > 0:
		found("it was given a title although it had one")
	case s.nameless():
		found("lost: nobody gave it a title")
	}
}

// from returns the index of the first line at or after a sequence.
func (s *story) from(seq uint64) int {
	return sort.Search(len(s.lines), func(i int) bool { return s.lines[i].seq >= seq })
}

// checkRange checks the sources that a summary of level 1 states for its range, which must end
// before a step.
func (s *story) checkRange(t told, found findings) {
	begin, end := s.from(t.first), s.from(t.last+1)
	if end == len(s.lines) || s.lines[end].seq != t.last+1 || !s.lines[end].step {
		found("the summary %s ends at sequence %d, within a step", t.id, t.last)
	}
	chars, first, last := 0, 0, 0
	for _, l := range slices.Backward(s.lines[begin:end]) {
		chars += l.chars
		last = max(last, l.turn)
		if l.step || l.chars > 0 {
			first = l.turn
		}
	}
	if t.charsIn != chars || t.firstTurn != first || t.lastTurn != last {
		found("the summary %s was made of %d characters of turns %d to %d, its range has %d of turns %d to %d", t.id, t.charsIn, t.firstTurn, t.lastTurn, chars, first, last)
	}
	if len(t.children) > 0 {
		found("the summary %s of level 1 has children", t.id)
	}
}

// checkChildren checks that a summary consolidates exactly the summaries of the level below in its
// range.
func checkChildren(t told, below []told, found findings) {
	i := slices.IndexFunc(below, func(b told) bool { return b.first == t.first })
	chars := 0
	var made []string
	for ; i >= 0 && i < len(below) && below[i].last <= t.last; i++ {
		made = append(made, below[i].id)
		chars += below[i].charsOut
	}
	switch {
	case !slices.Equal(t.children, made), len(made) < 2, below[i-1].last != t.last:
		found("the summary %s of sequences %d to %d consolidates %q, not %q", t.id, t.first, t.last, t.children, made)
	case t.charsIn != chars, t.firstTurn != below[i-len(made)].firstTurn, t.lastTurn != below[i-1].lastTurn:
		found("the summary %s was made of %d characters of turns %d to %d, its children have %d of turns %d to %d", t.id, t.charsIn, t.firstTurn, t.lastTurn,
			chars, below[i-len(made)].firstTurn, below[i-1].lastTurn)
	}
}

// checkNothingIsDue checks that no summary is missing: on level 1 none that is due regardless of
// how steps are cut, on higher levels none at all.
func (s *story) checkNothingIsDue(levels [][]told, found findings) {
	threshold := max(leastThreshold, s.budget*thresholdShare/100)
	covered := uint64(0)
	if len(levels) > 0 && len(levels[0]) > 0 {
		covered = levels[0][len(levels[0])-1].last
	}
	chars, step, longest := 0, 0, 0
	for _, l := range s.lines[s.from(covered+1):] {
		if l.step {
			step = 0
		}
		chars, step = chars+l.chars, step+l.chars
		longest = max(longest, step)
	}
	if chars >= threshold+s.budget*rawShare/100+2*longest {
		found("lost: %d characters after sequence %d wait for a summary, which was due", chars, covered)
	}
	for n, level := range levels {
		open, above := 0, uint64(0)
		if n+1 < len(levels) && len(levels[n+1]) > 0 {
			above = levels[n+1][len(levels[n+1])-1].last
		}
		list := slices.DeleteFunc(slices.Clone(level), func(t told) bool { return t.last <= above })
		for _, t := range list[:max(0, len(list)-1)] { // the last one of a level is not consolidated
			open += t.charsOut
		}
		if len(list) > 2 && open >= threshold {
			found("lost: %d summaries of level %d with %d characters wait for one of level %d, which was due", len(list)-1, n+1, open, n+2)
		}
	}
}

// checkSummaries checks that both read models with summaries have each summary of the log exactly
// once and unchanged, and nothing else.
func (o *oracle) checkSummaries(ctx context.Context, name string, g graph.Reader, state summary.Reader, found findings) error {
	for id, s := range o.stories {
		if o.graph.deleted[id] {
			continue
		}
		conversation := events.ConversationID{Tenant: tenant, ID: id}
		var want []covering
		levels := 1
		for _, t := range s.told {
			want, levels = append(want, t.covering), max(levels, t.level+1)
		}
		inGraph, err := summariesOf(ctx, g, conversation)
		if err != nil {
			return err
		}
		inState, err := rangesOf(ctx, state, conversation, levels)
		if err != nil {
			return err
		}
		for model, got := range map[string][]covering{o.graph.name: inGraph, o.summaries.name: inState} {
			compareSummaries(want, got, func(format string, args ...any) {
				found("%s: %s: %s: %s", name, model, id, fmt.Sprintf(format, args...))
			})
		}
	}
	return nil
}

// summariesOf returns the summaries of the read model "graph".
func summariesOf(ctx context.Context, g graph.Reader, id events.ConversationID) (got []covering, err error) {
	for from := uint64(0); ; {
		list, err := g.Summaries(ctx, id, graph.SummaryQuery{From: from, Superseded: true, Limit: maxRows, OldestFirst: true})
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			got = append(got, covering{s.Seq, s.SummaryID, s.Level, s.FirstSeq, s.LastSeq, s.CharsOut})
			from = s.Seq + 1
		}
		if len(list) < maxRows {
			return got, nil
		}
	}
}

// rangesOf returns the ranges of the first levels in the read model "summaries".
func rangesOf(ctx context.Context, state summary.Reader, id events.ConversationID, levels int) (got []covering, err error) {
	for level := 1; level <= levels; level++ {
		for after := uint64(0); ; {
			list, err := state.Ranges(ctx, id, level, after, maxRows)
			if err != nil {
				return nil, err
			}
			for _, t := range list {
				got = append(got, covering{t.Seq, t.ID, t.Level, t.First, t.Last, t.Chars})
				after = t.Last
			}
			if len(list) < maxRows {
				break
			}
		}
	}
	return got, nil
}

// compareSummaries names the lost, doubled and foreign summaries.
func compareSummaries(want, got []covering, found findings) {
	times := map[covering]int{}
	for _, c := range got {
		if times[c]++; times[c] == 2 {
			found("doubled: the summary %s", c.id)
		}
		if !slices.Contains(want, c) {
			found("foreign: the summary %s of sequence %d, which differs from the log or is not in it", c.id, c.seq)
		}
	}
	for _, c := range want {
		if times[c] == 0 {
			found("lost: the summary %s of sequence %d", c.id, c.seq)
		}
	}
}
