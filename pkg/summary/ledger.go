package summary

import (
	"errors"
	"fmt"
	"slices"

	"mneme.dev/mneme/events"
)

// Range is the range of one summary: it covers its conversation's events with sequences
// from First to Last.
type Range struct {
	ID        string // summary_id
	Level     int
	First     uint64
	Last      uint64
	FirstTurn int
	LastTurn  int
	Chars     int // of its text, from chars_out, which is what its writer said
}

// counted returns how many characters of a text count, given what its writer said. No text has more characters than an
// event has bytes; without a limit, sums of what was said could overflow.
func counted(said int) int { return min(said, events.MaxEventBytes) }

// Ledger records what the summaries of a conversation cover, in a size that does not grow
// with their number. It alone decides whether another summary is accepted. The zero value
// is the ledger of a conversation without summaries.
type Ledger struct {
	Levels []Level `json:"levels,omitempty"` // Levels[0] is level 1.
}

// Level is the progress of one level.
type Level struct {
	Last         uint64 `json:"last"`                   // End of the newest range.
	Consolidated uint64 `json:"consolidated,omitempty"` // End of what the next level covers.
	Open         int    `json:"open,omitempty"`         // Characters of texts that the next level does not cover.
}

// Last returns the end of what a level covers, 0 for nothing.
func (l *Ledger) Last(level int) uint64 {
	if level < 1 || level > len(l.Levels) {
		return 0
	}
	return l.Levels[level-1].Last
}

// Next returns where the next range of a level begins. first is the sequence of the
// conversation's first event.
func (l *Ledger) Next(level int, first uint64) uint64 {
	if last := l.Last(level); last > 0 {
		return last + 1
	}
	return first
}

// Take accepts a summary. first and last are the sequences of the conversation's first
// event and of its last event before the summary. known finds accepted summaries of the
// conversation by summary_id.
//
// If the summary is rejected, the error says why and the ledger does not change. The rules:
// ranges of a level follow each other without overlap or gap, inside the conversation; a
// summary of a higher level covers exactly the ranges of its children, which are
// consecutive and of the level below; a summary that supersedes another has the same level
// and range.
func (l *Ledger) Take(p *events.SummaryWritten, first, last uint64, known func(id string) (Range, bool)) error {
	if p.Supersedes != "" {
		old, ok := known(p.Supersedes)
		switch {
		case !ok:
			return fmt.Errorf("supersedes %q, which the conversation does not have", p.Supersedes)
		case old.Level != p.Level || old.First != p.FirstSeq || old.Last != p.LastSeq:
			return fmt.Errorf("supersedes %q of level %d and sequences %d to %d, but has level %d and sequences %d to %d", p.Supersedes, old.Level, old.First, old.Last, p.Level, p.FirstSeq, p.LastSeq)
		}
		return nil
	}
	if p.Level > len(l.Levels)+1 {
		return fmt.Errorf("has level %d, but there is no summary of level %d", p.Level, p.Level-1)
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
	l.Levels = slices.Clone(l.Levels) // copies of the ledger share them
	if p.Level > len(l.Levels) {
		l.Levels = append(l.Levels, Level{})
	}
	level := &l.Levels[p.Level-1]
	level.Last, level.Open = p.LastSeq, level.Open+counted(p.CharsOut)
	if p.Level > 1 {
		below := &l.Levels[p.Level-2]
		below.Consolidated, below.Open = p.LastSeq, below.Open-consolidated
	}
	return nil
}

// covers checks that the children of a summary make up its range, and counts the characters
// of their texts.
func covers(p *events.SummaryWritten, known func(id string) (Range, bool)) (chars int, err error) {
	switch {
	case p.Level == 1 && len(p.Children) > 0:
		return 0, errors.New("has children, but level 1 has none")
	case p.Level == 1:
		return 0, nil
	case len(p.Children) == 0:
		return 0, fmt.Errorf("has no children although it has level %d", p.Level)
	}
	next := p.FirstSeq
	for _, id := range p.Children {
		child, ok := known(id)
		switch {
		case !ok:
			return 0, fmt.Errorf("has the child %q, which the conversation does not have", id)
		case child.Level != p.Level-1:
			return 0, fmt.Errorf("has the child %q of level %d, but has level %d itself", id, child.Level, p.Level)
		case child.First != next:
			return 0, fmt.Errorf("has the child %q, which begins at sequence %d and not at %d", id, child.First, next)
		}
		next = child.Last + 1
		chars += counted(child.Chars)
	}
	if next != p.LastSeq+1 {
		return 0, fmt.Errorf("ends at sequence %d, but its children at %d", p.LastSeq, next-1)
	}
	return chars, nil
}
