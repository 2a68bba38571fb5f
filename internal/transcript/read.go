package transcript

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxUndecided is how many lines [Auto] reads before it gives up.
const maxUndecided = 100

// Read yields the items of one recording in the order of its lines. Gzip and
// Zstandard are recognized by their first bytes. An event's Subject is the conversation, its source is import/ and the
// agent, its id is the recording's own, its Time is as recorded (zero if it is not).
//
// name is the file's name, used in error messages and as the name of a Claude Code session.
// format is one of [Formats], [Auto], or "" for Auto.
//
// The same bytes under the same name give the same items. A recording that has grown gives
// the same items and then more, with one exception: the last message may have been
// incomplete. That message and all items after it have Item.Open set.
//
// A line of a type that this version does not know is left out; see [OnSkip].
//
// Read returns [ErrUnknownFormat] if no format has that name or fits the first lines,
// [ErrBlank], or the error of ctx, the reader or yield. An empty recording is not an error.
func Read(ctx context.Context, r io.Reader, name, format string, yield func(Item) error, options ...Option) error {
	s := session{name: name, yield: yield}
	for _, set := range options {
		set(&s)
	}
	if format != Auto && format != "" {
		f, err := formatNamed(format)
		if err != nil {
			return err
		}
		if f.converter == nil {
			return fmt.Errorf("%s: %w: recordings of %s are databases", name, ErrUnknownFormat, f.Name)
		}
		if s.only = f; !f.documents {
			s.use(f)
		}
	}
	in := newLines(ctx, r)
	defer in.close()
	if (isDocument(name) || IsRecordingOf(vscodeFormat, name)) && (s.only == nil || s.only.documents) {
		in.limit = MaxDocumentBytes // the whole recording may be on one line
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		var l line
		var err error
		in.raw = s.raw
		l.text, l.cut, err = in.next()
		l.no = in.no
		if err == io.EOF {
			return s.end()
		}
		if err != nil && !errors.As(err, &l.bad) {
			return fmt.Errorf("%s: line %d: %w", name, in.no, err)
		}
		if err := s.line(l); err != nil {
			return err
		}
	}
}

// Option changes how [Read] reads.
type Option func(*session)

// OnSkip makes [Read] call skipped for each line that it leaves out because it does not know its type.
func OnSkip(skipped func(Skip)) Option {
	return func(s *session) { s.out.skipped = skipped }
}

type line struct {
	no   int
	text []byte
	cut  bool
	bad  *LineError
}

// session is one run of Read.
type session struct {
	name   string
	format string
	only   *Format   // the only one that comes into question, or nil
	raw    bool      // the format's lines are no JSON
	to     converter // nil until the format is known
	held   []line    // lines read before the format is known
	bytes  int       // size of held
	opens  bool      // the first of held begins a JSON value that continues in the next line
	lines  bool      // it does not, or the lines together are not a document
	out    batch
	yield  func(Item) error
}

func (s *session) use(f *Format) { s.to, s.format, s.raw = f.converter(s.name), f.Name, f.raw }

func (s *session) line(l line) error {
	if s.to != nil {
		return s.convert(l)
	}
	var f *Format
	if l.bad == nil {
		if len(s.held) == 0 && !s.lines {
			s.opens = begins(l.text)
		}
		if f = s.only; f == nil && !s.opens {
			f = detect(s.name, l.text)
		}
		l.text = slices.Clone(l.text)
	}
	s.held = append(s.held, l)
	s.bytes += len(l.text)
	switch {
	case s.opens && s.bytes <= MaxDocumentBytes:
	case s.opens:
		return s.inLines()
	case f != nil:
		s.use(f)
		return s.release()
	case len(s.held) >= maxUndecided || s.bytes > MaxLineBytes:
		return s.undecided()
	}
	return nil
}

// inLines reads the held lines one by one, because together they are not a document.
func (s *session) inLines() error {
	held := s.held
	s.held, s.bytes, s.opens, s.lines = nil, 0, false, true
	for _, l := range held {
		if err := s.line(l); err != nil {
			return err
		}
	}
	return nil
}

// release converts the lines that were held until the format was known.
func (s *session) release() error {
	for _, l := range s.held {
		if err := s.convert(l); err != nil {
			return err
		}
	}
	s.held = nil
	return nil
}

func (s *session) end() error {
	if s.to == nil {
		if len(s.held) == 0 {
			return nil
		}
		if err := s.decide(); err != nil {
			return err
		}
	}
	s.to.end(&s.out)
	return s.flush()
}

// decide picks the format of a recording when no single line shows it: all lines together may be one document.
func (s *session) decide() error {
	if !s.opens {
		return s.undecided()
	}
	if doc := document(s.held); doc != nil {
		f := s.only
		if f == nil {
			f = detect(s.name, doc)
		}
		if f == nil {
			return s.undecided()
		}
		s.held = []line{{no: s.held[0].no, text: doc}}
		s.use(f)
		return s.release()
	}
	if err := s.inLines(); err != nil || s.to != nil {
		return err
	}
	return s.undecided()
}

func (s *session) undecided() error {
	first := s.held[0]
	why := first.bad
	if why == nil {
		// Do not quote the line: it may come from a file that nobody meant to show.
		why = &LineError{Line: first.no, Reason: "is JSON of another kind"}
		switch {
		case s.opens: // a document
		case !json.Valid(first.text):
			why.Reason = "is not JSON"
		}
	}
	return fmt.Errorf("%s: %w: tried %s; %w", s.name, ErrUnknownFormat, strings.Join(Formats(), ", "), why)
}

func (s *session) flush() error {
	defer s.out.clear()
	for _, item := range s.out.items {
		item.Format = s.format
		item.Open = item.Open || item.Err != nil && errors.Is(item.Err, errCut)
		if err := s.yield(item); err != nil {
			return err
		}
	}
	return nil
}

// convert yields the items of one line. A line can hold two values if the agent was stopped
// before the newline and started again.
func (s *session) convert(l line) error {
	s.out.line = l.no
	switch {
	case l.bad != nil:
		return s.refuse(l.bad)
	case !utf8.Valid(l.text) && l.cut && utf8.Valid(withoutPartOfRune(l.text)):
		return s.refuse(errCut)
	case !utf8.Valid(l.text):
		return s.refuse(errors.New("is not UTF-8"))
	}
	err := s.to.value(&s.out, l.text)
	if s.raw {
		if l.cut { // the rest of the line may show that it is another kind of line
			s.out.open(0, false)
		}
		return s.refuse(err)
	}
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) || l.text[0] != '{' {
		return s.refuse(err)
	}
	for d := json.NewDecoder(bytes.NewReader(l.text)); ; {
		var value json.RawMessage
		switch err := d.Decode(&value); {
		case err == io.EOF:
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF) && l.cut:
			return s.refuse(errCut)
		case errors.Is(err, io.ErrUnexpectedEOF):
			return s.refuse(syntax)
		case err != nil:
			return s.refuse(err)
		}
		if err := s.refuse(s.to.value(&s.out, value)); err != nil {
			return err
		}
	}
}

// withoutPartOfRune removes an incomplete character from the end of a text.
func withoutPartOfRune(text []byte) []byte {
	for at := len(text) - 1; at >= 0 && at >= len(text)-utf8.UTFMax; at-- {
		if utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				return text[:at]
			}
			break
		}
	}
	return text
}

// refuse adds a refusal if err is not nil, then yields the batch. What a line that was cut off makes a converter emit is
// open: the whole line may be a new version of it.
func (s *session) refuse(err error) error {
	if err != nil {
		s.to.refuse(&s.out, err)
		if errors.Is(err, errCut) {
			s.out.open(0, false)
		}
	}
	return s.flush()
}
