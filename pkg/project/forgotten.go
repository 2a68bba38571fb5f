package project

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/projection"
)

// Forgotten are the lines that were withdrawn in a project. A line that says the same and was taught before is not shown
// either, also of another conversation: before the withdrawal, or, of an event that taught several lines, before that event.
// What repeated one of several lines later is shown in its place, so whoever withdrew another one of them did not mean it.
type Forgotten struct {
	upTo   map[string]uint64 // by name of the line: the last sequence at which it is hidden
	in     map[lineOf]bool   // whatever the sequence, see [Forgotten.HidesLesson]
	newest uint64
}

// lineOf is a line of a conversation.
type lineOf struct {
	conversation events.ConversationID
	name         string
}

// maxForgotten is how many withdrawals of a project hide what says the same elsewhere, the newest.
const maxForgotten = 1_024

// ForgottenIn reads the lines that were withdrawn in a project.
func ForgottenIn(ctx context.Context, r Reader, p Project) (f Forgotten, err error) {
	entries, err := r.Members(ctx, p.Tenant, MemberQuery{Kind: KindForgotten, Names: p.Names, AsOf: p.asOf, Limit: maxForgotten})
	if err != nil || len(entries) == 0 {
		return f, err
	}
	f.upTo, f.in = map[string]uint64{}, map[lineOf]bool{}
	for _, e := range entries {
		f.newest = max(f.newest, e.Seq)
		until, names, _ := strings.Cut(e.Words, " ")
		seq, err := strconv.ParseUint(until, 10, 64)
		if err != nil {
			return Forgotten{}, fmt.Errorf("the withdrawal at sequence %d: %w", e.Seq, err)
		}
		for name := range strings.FieldsSeq(names) {
			f.upTo[name] = max(f.upTo[name], seq)
			f.in[lineOf{e.Conversation, name}] = true
		}
	}
	return f, nil
}

// Hides reports whether a line that the event at a sequence taught was withdrawn after that.
func (f *Forgotten) Hides(line string, seq uint64) bool {
	return len(f.upTo) > 0 && seq <= f.upTo[lineName(line)]
}

// HidesLesson reports whether a line of a conversation is hidden. A finding that was withdrawn there is hidden also if another
// summary or insight finds it again in the same messages, before the withdrawal or later.
func (f *Forgotten) HidesLesson(conversation events.ConversationID, l *Lesson) bool {
	found := l.Kind == LessonFound || l.Kind == LessonPicked
	return f.Hides(l.Text, l.Seq) || found && len(f.in) > 0 && f.in[lineOf{conversation, lineName(l.Text)}]
}

// HidesWhat reports whether a line of the event at a sequence was withdrawn elsewhere.
func (f *Forgotten) HidesWhat(d *Digest, seq uint64) bool {
	if len(f.upTo) == 0 {
		return false
	}
	for _, l := range d.Lessons() {
		if l.Seq == seq && f.Hides(l.Text, seq) {
			return true
		}
	}
	return false
}

// Newest returns the sequence of the newest withdrawal, 0 if there is none.
func (f *Forgotten) Newest() uint64 { return f.newest }

// NoteLine returns the line that a note teaches.
func NoteLine(text string) string { return plain.Clip(plain.Flat(text), maxLesson) }

// SameLine reports whether two lines say the same, whatever their case and spaces are.
func SameLine(a, b string) bool { return lineName(a) == lineName(b) }

// lineName names a line by a hash of it, whatever its case and spaces are.
func lineName(line string) string {
	sum := events.DigestOf(strings.ToLower(strings.Join(strings.Fields(line), " ")))
	return hex.EncodeToString(sum[:8])
}

// forgottenMembers lists the lines that the event with this key taught, which is withdrawn at seq: the last sequence at which
// what says the same is hidden, and the names of the lines.
func forgottenMembers(s *State, key string, seq uint64) []projection.Of[State, Member] {
	names, taught := s.Digest.linesOf(key)
	if len(names) == 0 || s.Digest.Place.Name == "" {
		return nil
	}
	until := seq
	if len(names) > 1 {
		until = taught
	}
	words := strconv.FormatUint(until, 10) + " " + strings.Join(names, " ")
	return []projection.Of[State, Member]{projection.RowOf(s, Member{
		Kind: KindForgotten, Name: s.Digest.Place.Name, Seq: seq, Conversation: s.ID, Words: words,
	})}
}

// Found is what a summary or an insight found.
type Found struct {
	Key   string   `json:"k"` // of the event, see eventKey
	Seq   uint64   `json:"s"`
	Lines []string `json:"l"` // their names
}

// maxReplaced is how many summaries and insights a digest knows that newer ones replaced.
const maxReplaced = 4

func foundBy(key string, seq uint64, findings []string) Found {
	f := Found{Key: key, Seq: seq}
	for _, line := range findings {
		f.Lines = append(f.Lines, lineName(line))
	}
	return f
}

func (d *Digest) replace(f Found) {
	if len(f.Lines) > 0 {
		d.Replaced = newest(append(d.Replaced, f), maxReplaced)
	}
}

// linesOf returns the names of the lines that the event with this key taught, and its sequence. What a summary or an insight
// repeats of the user is shown as the user's line, so to withdraw what it found does not concern that line.
func (d *Digest) linesOf(key string) (names []string, seq uint64) {
	taught := map[string]bool{}
	for _, t := range d.Taught {
		name := lineName(t.Text)
		if taught[name] = true; t.Key == key {
			names, seq = append(names, name), t.Seq
		}
	}
	for i := range d.Fixes {
		if d.Fixes[i].Key == key {
			names, seq = append(names, lineName(d.Fixes[i].text())), d.Fixes[i].Seq
		}
	}
	found := slices.Clone(d.Replaced)
	if s := d.Summary; s != nil {
		found = append(found, foundBy(s.Key, s.Seq, s.Findings))
	}
	if i := d.Insight; i != nil {
		found = append(found, foundBy(i.Key, i.Seq, i.Findings))
	}
	for _, f := range found {
		if f.Key != key {
			continue
		}
		seq = f.Seq
		for _, name := range f.Lines {
			if !taught[name] {
				names = append(names, name)
			}
		}
	}
	return names, seq
}
