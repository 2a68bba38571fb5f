package summary

import (
	"errors"
	"fmt"
	"slices"

	"mneme/events"
)

// Range is what one summary covers: the events of its conversation with sequences from
// First to Last.
type Range struct {
	ID        string // summary_id
	Level     int
	First     uint64
	Last      uint64
	FirstTurn int
	LastTurn  int
	Chars     int // of its text, as chars_out says
}

// Ledger is what the summaries of a conversation cover. It is all that decides whether
// another one is taken, and it is small whatever the number of summaries. The zero value
// is that of a conversation without summaries.
type Ledger struct {
	Levels []Level `json:"levels,omitempty"` // Levels[0] is level 1.
}

// Level is how far the summaries of one level have come.
type Level struct {
	Last         uint64 `json:"last"`                   // The end of the newest range.
	Consolidated uint64 `json:"consolidated,omitempty"` // The end of what the next level covers.
	Open         int    `json:"open,omitempty"`         // Characters of the texts that the next level does not cover.
}

// Last is the end of what a level covers, 0 for nothing.
func (l *Ledger) Last(level int) uint64 {
	if level < 1 || level > len(l.Levels) {
		return 0
	}
	return l.Levels[level-1].Last
}

// Next is where the next range of a level begins, in a conversation whose first event
// is at sequence first.
func (l *Ledger) Next(level int, first uint64) uint64 {
	if last := l.Last(level); last > 0 {
		return last + 1
	}
	return first
}

// Take enters a summary. first and last are the conversation's first event and the one
// before the summary; known finds summaries of the conversation that were taken, by
// summary_id.
//
// The error says why the summary is not taken, and the ledger is then as it was:
// ranges of a level must follow each other, without overlap and gap, inside of the
// conversation; a summary of a higher level covers exactly the ranges of its children,
// which are of the level below and follow each other; one that supersedes another has
// its level and range.
func (l *Ledger) Take(p *events.SummaryWritten, first, last uint64, known func(id string) (Range, bool)) error {
	if p.Supersedes != "" {
		old, ok := known(p.Supersedes)
		switch {
		case !ok:
			return fmt.Errorf("supersedes %q, which the conversation does not have", p.Supersedes)
		case old.Level != p.Level || old.First != p.FirstSeq || old.Last != p.LastSeq:
			return fmt.Errorf("supersedes %q of level %d and sequences %d to %d, but is of level %d and %d to %d", p.Supersedes, old.Level, old.First, old.Last, p.Level, p.FirstSeq, p.LastSeq)
		}
		return nil
	}
	if p.Level > len(l.Levels)+1 {
		return fmt.Errorf("is of level %d, but there is no summary of level %d", p.Level, p.Level-1)
	}
	switch next := l.Next(p.Level, first); {
	case p.FirstSeq < next:
		return fmt.Errorf("begins at sequence %d, but level %d is covered up to %d: the next range begins at %d", p.FirstSeq, p.Level, next-1, next)
	case p.FirstSeq > next:
		return fmt.Errorf("begins at sequence %d and leaves a gap: the next range of level %d begins at %d", p.FirstSeq, p.Level, next)
	case p.LastSeq > last:
		return fmt.Errorf("ends at sequence %d, but the conversation ends at %d", p.LastSeq, last)
	}
	consolidated, err := covers(p, known)
	if err != nil {
		return err
	}
	if p.Level > len(l.Levels) {
		l.Levels = append(l.Levels, Level{})
	}
	l.Levels = slices.Clone(l.Levels)
	level := &l.Levels[p.Level-1]
	level.Last, level.Open = p.LastSeq, level.Open+p.CharsOut
	if p.Level > 1 {
		below := &l.Levels[p.Level-2]
		below.Consolidated, below.Open = p.LastSeq, below.Open-consolidated
	}
	return nil
}

// covers looks whether the children of a summary make up its range, and counts the
// characters of their texts.
func covers(p *events.SummaryWritten, known func(id string) (Range, bool)) (chars int, err error) {
	switch {
	case p.Level == 1 && len(p.Children) > 0:
		return 0, errors.New("has children, but level 1 has none")
	case p.Level == 1:
		return 0, nil
	case len(p.Children) == 0:
		return 0, fmt.Errorf("has no children, but is of level %d", p.Level)
	}
	next := p.FirstSeq
	for _, id := range p.Children {
		child, ok := known(id)
		switch {
		case !ok:
			return 0, fmt.Errorf("has the child %q, which the conversation does not have", id)
		case child.Level != p.Level-1:
			return 0, fmt.Errorf("has the child %q of level %d, but is of level %d", id, child.Level, p.Level)
		case child.First != next:
			return 0, fmt.Errorf("has the child %q, which begins at sequence %d and not at %d", id, child.First, next)
		}
		next = child.Last + 1
		chars += child.Chars
	}
	if next != p.LastSeq+1 {
		return 0, fmt.Errorf("ends at sequence %d, but its children at %d", p.LastSeq, next-1)
	}
	return chars, nil
}
