package importer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/transcript"
)

// moves are the events of an export that are in this log, by conversation.
type moves map[string]*moved

// moved are the sequences that events had in the log of an export, ascending, and those
// that they have in this one; ends are those of ranges.
type moved struct {
	was, is []uint64
	ends    map[uint64]uint64
}

func (m moves) of(conversation string) *moved {
	if m[conversation] == nil {
		m[conversation] = &moved{ends: map[uint64]uint64{}}
	}
	return m[conversation]
}

func (m moves) note(conversation string, was, is uint64) {
	if was == 0 {
		return
	}
	of := m.of(conversation)
	at, noted := slices.BinarySearch(of.was, was)
	if !noted {
		of.was, of.is = slices.Insert(of.was, at, was), slices.Insert(of.is, at, is)
	}
}

// reaches tells whether an event of this sequence, or a later one, is in this log.
func (m *moved) reaches(was uint64) bool {
	return len(m.was) > 0 && m.was[len(m.was)-1] >= was
}

// span is what a range of the other log is in this one. It ends with the last event that
// the range had, and begins behind the range before it, or else behind the last event. In
// the log that the export is of it is what it was: between events ranges end anywhere. ok
// is false if no event of it is here.
func (m *moved) span(first, last uint64) (from, to uint64, ok bool) {
	below, _ := slices.BinarySearch(m.was, first)
	upTo, _ := slices.BinarySearch(m.was, last+1)
	if upTo <= below {
		return 0, 0, false
	}
	if to = m.is[upTo-1]; to == m.was[upTo-1] {
		to = last
	}
	switch end, follows := m.ends[first-1]; {
	case follows:
		from = end + 1
	case below == 0:
		from = m.is[0]
	case m.is[below-1] == m.was[below-1]:
		from = first
	default:
		from = m.is[below-1] + 1
	}
	m.ends[last] = to
	return from, to, from <= to
}

// isMoved tells whether an item is a summary that comes from an export. What it spares
// others may already be about to write: it is published at once.
func isMoved(item *transcript.Item) bool {
	return item.Seq > 0 && item.Event.Type == events.TypeSummaryWritten
}

// settle makes the range of a summary that comes from an export one of this log. What it
// was made of must be there first. refused says why it can't be.
func (r *run) settle(ctx context.Context, item *transcript.Item) (refused *transcript.LineError, err error) {
	if !isMoved(item) {
		return nil, nil
	}
	e := &item.Event
	var p events.SummaryWritten
	refuse := func(reason string, args ...any) (*transcript.LineError, error) {
		return &transcript.LineError{Line: item.Line, Reason: fmt.Sprintf(reason, args...)}, nil
	}
	if err := json.Unmarshal(e.Data, &p); err != nil {
		return refuse("data: %v", err)
	}
	of := r.moves.of(e.Subject)
	if !of.reaches(p.LastSeq) {
		if err := r.flush(ctx); err != nil {
			return nil, err
		}
	}
	if r.deleted[e.Subject] {
		return nil, nil // it is refused with the others
	}
	first, last, ok := of.span(p.FirstSeq, p.LastSeq)
	if !ok {
		return refuse("summary %q is of the sequences %d to %d of the log that it was exported from, and none of their events was imported", p.SummaryID, p.FirstSeq, p.LastSeq)
	}
	if first == p.FirstSeq && last == p.LastSeq {
		return nil, nil
	}
	e.Data, err = withNumbers(e.Data, map[string]uint64{"first_seq": first, "last_seq": last})
	return nil, err
}

// withNumbers is a JSON object with other values of some members; all else stays as it is.
func withNumbers(object []byte, values map[string]uint64) ([]byte, error) {
	in := json.NewDecoder(bytes.NewReader(object))
	if _, err := in.Token(); err != nil {
		return nil, err
	}
	var out []byte
	from := 0
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return nil, err
		}
		if number, ok := values[name.(string)]; ok {
			end := int(in.InputOffset())
			out = strconv.AppendUint(append(out, object[from:end-len(value)]...), number, 10)
			from = end
		}
	}
	return append(out, object[from:]...), nil
}
