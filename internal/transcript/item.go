package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"mneme.dev/mneme/events"
)

// Item is one event of a recording, or one refused line: either Event is valid (see
// [events.Record]) or Err is set.
type Item struct {
	Line  int // counts from 1; for a message in several pieces, the first
	Event events.Event
	Err   *LineError
	// Seq is the sequence that the event had in the log it was exported from, or 0.
	Seq uint64
	// Open means that the item may change if the agent is still writing the recording,
	// because the recording ends here. All later items are open too.
	Open bool
	// Answered means that the recording ends with an answer of the agent, so that this open item can change only if the
	// agent's turn goes on.
	Answered bool
	// Repeated means that the recording repeats another one with it. That one counts if they differ.
	Repeated bool
	// Cleaned is for importers: they changed the event after it was read.
	Cleaned bool
	// Format is the name of the recording's format.
	Format string
}

// LineError says which line was refused and why. If a rule of the vocabulary refused it,
// errors.Is(err, [events.ErrInvalid]) is true.
type LineError struct {
	Line   int
	Reason string
	Err    error // may be nil
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }
func (e *LineError) Unwrap() error { return e.Err }

// itemBytes is the approximate size of an item without its data.
const itemBytes = 512

// batch collects the items that one step of a converter makes.
type batch struct {
	skipped func(Skip)
	line    int // line number for new items
	items   []Item
	bytes   int // approximate size of the items
}

// event adds an event, or a refusal if the vocabulary rejects it. at is RFC 3339, with or
// without a zone (then UTC); "" and everything else mean that the time is unknown.
func (b *batch) event(conversation, source, id, at string, p events.Payload) {
	e, err := events.New(conversation, source, id, p)
	if err != nil {
		b.refuse(err)
		return
	}
	e.Time, _ = parseTime(at) // what was said is worth more than when
	b.add(e)
}

// add adds a valid event.
func (b *batch) add(e events.Event) {
	b.bytes += len(e.Data) + itemBytes
	b.items = append(b.items, Item{Line: b.line, Event: e})
}

// Skip is a line that was left out because this version does not know its type. That is not an
// error: agents add types with every release.
type Skip struct {
	Format  string // as in [Formats]
	Version string // of the agent, as the recording says, or ""
	Type    string // of the line, at most 64 bytes
}

func (s Skip) String() string {
	return strings.TrimSpace(s.Format+" "+s.Version) + ": " + s.Type
}

const maxSkipBytes = 64

func (b *batch) skip(format, version, kind string) {
	if b.skipped == nil {
		return
	}
	bound := func(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxSkipBytes)], "") }
	b.skipped(Skip{Format: format, Version: bound(version), Type: bound(kind)})
}

// messageOf is the kind of a message of an unknown role.
func messageOf(role string) string {
	if role == "" {
		return "message without a role"
	}
	return "message of " + role
}

func (b *batch) refuse(err error) {
	bad, ok := err.(*LineError)
	if !ok {
		bad = &LineError{Line: b.line, Reason: reason(err), Err: err}
	}
	b.bytes += itemBytes
	b.items = append(b.items, Item{Line: b.line, Err: bad})
}

// repeat marks the items that add adds as repeated.
func (b *batch) repeat(add func() error) error {
	first := len(b.items)
	err := add()
	for i := range b.items[first:] {
		b.items[first+i].Repeated = true
	}
	return err
}

// take moves the items of o to the end of b.
func (b *batch) take(o *batch) {
	b.items = append(b.items, o.items...)
	o.clear()
}

// open marks the items from the first one on as open. They are not answered if a line among them was cut off.
func (b *batch) open(first int, answered bool) {
	open := b.items[first:]
	answered = answered && !slices.ContainsFunc(open, func(i Item) bool { return i.Err != nil && errors.Is(i.Err, errCut) })
	for i := range open {
		open[i].Open, open[i].Answered = true, answered
	}
}

func (b *batch) clear() {
	clear(b.items)
	b.items, b.bytes = b.items[:0], 0
}

// places names the place of a value in a recording, for formats whose values need not have an id.
type places struct {
	line, values int // the last line number, and how many values it had
}

// at returns the id that a value gives itself, else its line number. A second value on a line, after a
// torn write, has a place of its own.
func (p *places) at(line int, own string) string {
	if p.line != line {
		p.line, p.values = line, 0
	}
	p.values++
	switch {
	case own != "":
		return own
	case p.values > 1:
		return strconv.Itoa(line) + "." + strconv.Itoa(p.values)
	}
	return strconv.Itoa(line)
}

func parseTime(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if t, err := events.ParseTime(s); err == nil {
		return t, nil
	}
	if t, err := time.Parse("2006-01-02T15:04:05", s); err == nil {
		return t, nil
	}
	return time.Time{}, fmt.Errorf("time: %.64q is not RFC 3339", s)
}

// reason words an error for somebody who looks at the line.
func reason(err error) string {
	var syntax *json.SyntaxError
	var fit *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return "is not JSON: " + syntax.Error()
	case errors.As(err, &fit) && fit.Field != "":
		return fit.Field + ": a JSON " + fit.Value + " does not fit here"
	case errors.As(err, &fit) && fit.Type.Kind() == reflect.Slice:
		return "is a JSON " + fit.Value + ", not a list"
	case errors.As(err, &fit):
		return "is a JSON " + fit.Value + ", not an object"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}
