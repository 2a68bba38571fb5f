package salvage

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/summary"
)

// known is what the log says about a conversation, and what a rebuild would make of it.
type known struct {
	description graph.Description

	first, last uint64 // sequences of the conversation's first and last event
	ledger      summary.Ledger
	summaries   map[string]summary.Range // accepted ones, by summary_id
	returned    map[string]bool          // calls that have a result
}

// replay takes the conversation's next event as the read models do: they skip summaries that do not follow each other, and
// condensed texts of results that do not exist.
func (k *known) replay(payload events.Payload, seq uint64) {
	switch p := payload.(type) {
	case *events.SummaryWritten:
		if k.take(p) != nil {
			return
		}
	case *events.ToolCondensed:
		if !k.returned[p.ToolCallID] {
			return
		}
	case *events.ToolReturned:
		if k.returned == nil {
			k.returned = map[string]bool{}
		}
		k.returned[p.ToolCallID] = true
	}
	k.first = cmp.Or(k.first, seq)
	k.last = seq
}

func (k *known) take(p *events.SummaryWritten) error {
	if k.first == 0 {
		return errors.New("is of a conversation without events")
	}
	if _, twice := k.summaries[p.SummaryID]; twice {
		return fmt.Errorf("has the summary_id of another one, %q", p.SummaryID)
	}
	find := func(id string) (summary.Range, bool) {
		r, ok := k.summaries[id]
		return r, ok
	}
	if err := k.ledger.Take(p, k.first, k.last, find); err != nil {
		return err
	}
	if k.summaries == nil {
		k.summaries = map[string]summary.Range{}
	}
	k.summaries[p.SummaryID] = summary.Range{ID: p.SummaryID, Level: p.Level, First: p.FirstSeq, Last: p.LastSeq}
	return nil
}

// place holds the old and the current sequence of a row's event in the log; 0 means nowhere.
type place struct{ was, now uint64 }

// fitting finds the summaries that a rebuild accepts when they are written back, one after the other, at the end of a
// log that holds all events of places again. Summaries refer to ranges of sequences, so their ranges move with the events.
type fitting struct {
	known
	places  []place
	ordered bool // the events of places are still in their old order
}

// fit prepares a fitting for a log in which l.events have these sequences.
func (l *Loss) fit(seqs []uint64) *fitting {
	f := &fitting{known: *l.held, places: slices.Clone(l.places)}
	f.summaries = maps.Clone(f.summaries)
	now := make(map[uint64]uint64, len(seqs))
	for i, seq := range seqs {
		now[l.events[i].seq] = seq
		f.first = cmp.Or(f.first, seq)
		f.last = max(f.last, seq)
	}
	for i := range f.places {
		if p := &f.places[i]; p.now == 0 {
			p.now = now[p.was]
		}
	}
	f.ordered = slices.IsSortedFunc(f.places, func(a, b place) int { return cmp.Compare(a.now, b.now) })
	return f
}

// accept returns the payload with which a summary is accepted, or the reason why there is none. Superseded summaries
// and children come before those that name them.
func (f *fitting) accept(m graph.Summary) (*events.SummaryWritten, error) {
	p := written(m)
	switch at, n := f.covered(m); {
	case n == 0:
		return nil, errors.New("none of the events that it summarizes is left")
	case moved(f.places[at:at+n]) && !f.ordered:
		return nil, errors.New("the events that it summarizes get new sequences, after later events; the summarizer writes a new summary")
	case p.Supersedes != "":
		if r, ok := f.summaries[p.Supersedes]; ok {
			p.FirstSeq, p.LastSeq = r.First, r.Last
		}
	case len(p.Children) > 0:
		begin, ok := f.summaries[p.Children[0]]
		end, also := f.summaries[p.Children[len(p.Children)-1]]
		if ok && also {
			p.FirstSeq, p.LastSeq = begin.First, end.Last
		}
	case f.ordered:
		p.FirstSeq, p.LastSeq = f.rangeOf(at, n, p)
	}
	if err := f.take(p); err != nil {
		return nil, fmt.Errorf("a rebuild would not accept it, because it %w; the summarizer writes a new summary", err)
	}
	return p, nil
}

// rangeOf returns the range of a summary of level 1 that covers n places. Ranges leave no gap: it begins where the one before
// ends, if no event of the conversation is between them.
func (f *fitting) rangeOf(at, n int, p *events.SummaryWritten) (first, last uint64) {
	covered := f.places[at : at+n]
	first, last = p.FirstSeq, min(p.LastSeq, f.last)
	if moved(covered) {
		first, last = covered[0].now, covered[n-1].now
	}
	next := f.ledger.Next(1, f.first)
	if next <= covered[0].now && (at == 0 || f.places[at-1].now < next) {
		first = next
	}
	return first, last
}

// covered returns which places a summary covers: n of them, beginning with the one at an index.
func (f *fitting) covered(m graph.Summary) (at, n int) {
	before := func(p place, seq uint64) int { return cmp.Compare(p.was, seq) }
	at, _ = slices.BinarySearchFunc(f.places, m.FirstSeq, before)
	end, _ := slices.BinarySearchFunc(f.places, m.LastSeq+1, before)
	return at, end - at
}

// moved reports whether an event has another sequence now.
func moved(places []place) bool {
	return slices.ContainsFunc(places, func(p place) bool { return p.was != p.now })
}
