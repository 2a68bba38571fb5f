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

// moves maps sequences of an export's log to those of this log, by conversation.
type moves map[string]*moved

// moved holds the sequences that a conversation's events had in the log of the export,
// ascending, and those that they have in this log. ends maps the ends of ranges.
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

// reaches reports whether an event with this old sequence, or a later one, is in this log.
func (m *moved) reaches(was uint64) bool {
	return len(m.was) > 0 && m.was[len(m.was)-1] >= was
}

// span maps a range of the export's log to this log. It ends at the range's last event, and
// begins after the preceding range or, without one, after the preceding event. Ends at
// events that did not move, because the export came from this log, keep their exact
// sequences, since ranges may also end between events. ok is false if this log has no
// event of the range.
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

// isMoved reports whether an item is a summary from an export. Such a summary is published at once, because a
// summarizer may be about to write summaries that it makes unnecessary.
func isMoved(item *transcript.Item) bool {
	return item.Seq > 0 && item.Event.Type == events.TypeSummaryWritten
}

// settle converts the range of a summary from an export to this log, after it has published
// the events in the range. refused says why the range can't be converted.
func (r *run) settle(ctx context.Context, item *transcript.Item) (refused *transcript.LineError, err error) {
	if !isMoved(item) {
		return nil, nil
	}
	if err := r.settled(ctx); err != nil {
		return nil, err
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
		return nil, nil // flush leaves it out like the conversation's other events
	}
	first, last, ok := of.span(p.FirstSeq, p.LastSeq)
	if !ok {
		return refuse("summary %q covers sequences %d to %d of the exported log, but none of their events was imported", p.SummaryID, p.FirstSeq, p.LastSeq)
	}
	if first == p.FirstSeq && last == p.LastSeq {
		return nil, nil
	}
	e.Data, err = withNumbers(e.Data, map[string]uint64{"first_seq": first, "last_seq": last})
	return nil, err
}

// withNumbers returns a JSON object with some members replaced; everything else is unchanged.
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
