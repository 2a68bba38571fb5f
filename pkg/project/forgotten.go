package project

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/projection"
)

// Forgotten are the lines that were withdrawn in a project, by name: each with the sequence of its newest withdrawal. A
// line that says the same and was taught before that, also in another conversation, is not shown either.
type Forgotten map[string]uint64

// maxForgotten is how many withdrawals of a project hide what says the same elsewhere, the newest.
const maxForgotten = 1_024

// ForgottenIn reads the lines that were withdrawn in a project.
func ForgottenIn(ctx context.Context, r Reader, p Project) (Forgotten, error) {
	entries, err := r.Members(ctx, p.Tenant, MemberQuery{Kind: KindForgotten, Names: p.Names, AsOf: p.asOf, Limit: maxForgotten})
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	f := Forgotten{}
	for _, e := range entries {
		for name := range strings.FieldsSeq(e.Words) {
			f[name] = max(f[name], e.Seq)
		}
	}
	return f, nil
}

// Hides reports whether a line that the event at a sequence taught was withdrawn after that.
func (f Forgotten) Hides(line string, seq uint64) bool { return len(f) > 0 && seq < f[lineName(line)] }

// HidesWhat reports whether a line of the event at a sequence was withdrawn elsewhere.
func (f Forgotten) HidesWhat(d *Digest, seq uint64) bool {
	if len(f) == 0 {
		return false
	}
	for _, l := range d.Lessons() {
		if l.Seq == seq && f.Hides(l.Text, seq) {
			return true
		}
	}
	return false
}

// Newest returns the sequence of the newest withdrawal.
func (f Forgotten) Newest() (seq uint64) {
	for _, at := range f {
		seq = max(seq, at)
	}
	return seq
}

// NoteLine returns the line that a note teaches.
func NoteLine(text string) string { return plain.Clip(plain.Flat(text), maxLesson) }

// SameLine reports whether two lines say the same, whatever their case and spaces are.
func SameLine(a, b string) bool { return lineName(a) == lineName(b) }

// lineName names a line by a hash of it, whatever its case and spaces are.
func lineName(line string) string {
	sum := events.DigestOf(strings.ToLower(strings.Join(strings.Fields(line), " ")))
	return hex.EncodeToString(sum[:8])
}

// forgottenMembers lists the lines that the event with this key taught, which is withdrawn at seq.
func forgottenMembers(s *State, key string, seq uint64) []projection.Of[State, Member] {
	var names []string
	for _, line := range s.Digest.linesOf(key) {
		names = append(names, lineName(line))
	}
	if len(names) == 0 || s.Digest.Place.Name == "" {
		return nil
	}
	return []projection.Of[State, Member]{projection.RowOf(s, Member{
		Kind: KindForgotten, Name: s.Digest.Place.Name, Seq: seq, Conversation: s.ID, Words: strings.Join(names, " "),
	})}
}

// linesOf returns the lines that the event with this key taught. What a summary or an insight repeats of the user is shown as the
// user's line, so to withdraw what it found does not concern that line.
func (d *Digest) linesOf(key string) (lines []string) {
	for _, t := range d.Taught {
		if t.Key == key {
			lines = append(lines, t.Text)
		}
	}
	for i := range d.Fixes {
		if d.Fixes[i].Key == key {
			lines = append(lines, d.Fixes[i].text())
		}
	}
	var found []string
	if d.Summary != nil && d.Summary.Key == key {
		found = append(found, d.Summary.Findings...)
	}
	if d.Insight != nil && d.Insight.Key == key {
		found = append(found, d.Insight.Findings...)
	}
	for _, line := range found {
		if !slices.ContainsFunc(d.Taught, func(t Said) bool { return SameLine(t.Text, line) }) {
			lines = append(lines, line)
		}
	}
	return lines
}
