package window

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/recall"
)

// Filter says which messages or tool results a search keeps. The zero value keeps all.
type Filter struct {
	Role, Speaker    string // of messages
	Tool             string // for results: the name of the tool, in any case
	File             string // for results: a file that the call's arguments name, or its last components
	FromSeq, ToSeq   uint64 // both included; 0 means no limit
	FromTurn, ToTurn int    // both included; 0 means no limit

	// From Since on and before Until. If either is set, what has no time is left out.
	Since, Until time.Time

	// Contains are phrases that a text must contain, all of them, and Without those that it must not contain. Case does
	// not count, and white space of any length is a space. A phrase matches whole words; with * at its end, its last
	// word may be the beginning of a longer one.
	Contains, Without []string
}

// Reversed returns the first range that ends before it begins, as the API names it, and why nothing can be found; "" if
// there is none.
func (f *Filter) Reversed() (field, why string) {
	switch {
	case !f.Until.IsZero() && !f.Since.Before(f.Until):
		return "until", "until is not after since: there is nothing between them"
	case f.ToSeq != 0 && f.ToSeq < f.FromSeq:
		return "to_seq", "to_seq is below from_seq: there is nothing between them"
	case f.ToTurn != 0 && f.ToTurn < f.FromTurn:
		return "to_turn", "to_turn is below from_turn: there is nothing between them"
	}
	return "", ""
}

// OfMessages returns which messages are kept; nil means all.
func (f *Filter) OfMessages() func(m *graph.Message) bool {
	if f.Role == "" && f.Speaker == "" && f.FromSeq == 0 && f.ToSeq == 0 && f.FromTurn == 0 && f.ToTurn == 0 &&
		f.Since.IsZero() && f.Until.IsZero() && len(f.Contains) == 0 && len(f.Without) == 0 {
		return nil
	}
	contains, without := phrases(f.Contains), phrases(f.Without)
	return func(m *graph.Message) bool {
		return (f.Role == "" || m.Role == f.Role) && (f.Speaker == "" || m.Speaker == f.Speaker) &&
			m.Seq >= f.FromSeq && (f.ToSeq == 0 || m.Seq <= f.ToSeq) &&
			m.Turn >= f.FromTurn && (f.ToTurn == 0 || m.Turn <= f.ToTurn) &&
			f.inTime(m.Time) && fits(m.Content.Text, contains, without)
	}
}

// inTime reports whether a time, as a message has it, is between Since and Until.
func (f *Filter) inTime(text string) bool {
	if f.Since.IsZero() && f.Until.IsZero() {
		return true
	}
	at, err := events.ParseTime(text)
	return err == nil && !at.Before(f.Since) && (f.Until.IsZero() || at.Before(f.Until))
}

// Within reports whether something that lasted from one time to another may have been between Since and Until. An
// unknown time counts as any.
func (f *Filter) Within(first, last string) bool {
	if at, err := events.ParseTime(last); err == nil && !f.Since.IsZero() && at.Before(f.Since) {
		return false
	}
	at, err := events.ParseTime(first)
	return err != nil || f.Until.IsZero() || at.Before(f.Until)
}

// fits reports whether a text contains all of some phrases and none of others.
func fits(text string, contains, without []phrase) bool {
	if len(contains) == 0 && len(without) == 0 {
		return true
	}
	text = folded(text)
	in := func(p phrase) bool { return p.in(text) }
	missing := func(p phrase) bool { return !p.in(text) }
	return !slices.ContainsFunc(contains, missing) && !slices.ContainsFunc(without, in)
}

// phrase is what a message contains or not.
type phrase struct {
	text string
	open bool // the last word may be the beginning of a longer one
}

// phrases reads phrases, without empty ones.
func phrases(list []string) (out []phrase) {
	for _, text := range list {
		text, open := strings.CutSuffix(folded(text), "*")
		if text != "" {
			out = append(out, phrase{text, open})
		}
	}
	return out
}

// in reports whether a folded text contains the phrase.
func (p phrase) in(text string) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], p.text)
		if at < 0 {
			return false
		}
		at += from
		if bounded(text, at) && (p.open || bounded(text, at+len(p.text))) {
			return true
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		from = at + size
	}
}

// bounded reports whether there is a word boundary at this place of a text.
func bounded(text string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at:])
	return !inWord(before) || !inWord(after)
}

// inWord reports whether a character is part of a word. Characters of scripts without spaces are words of their own.
func inWord(r rune) bool {
	if recall.Unspaced(r) {
		return false
	}
	return r == '_' || unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r)
}

// folded returns a text in lower case, with single spaces between its words.
func folded(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }
