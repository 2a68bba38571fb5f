package project

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"mneme.dev/mneme/pkg/plain"
)

// Kinds of a [Lesson].
const (
	LessonTaught    = "taught"    // a note, or what the user asked for in general
	LessonCorrected = "corrected" // the user corrected what the agent did
	LessonRefused   = "refused"   // the user refused a call and said why
	LessonSolved    = "solved"    // a failure and its solution
	LessonFound     = "found"     // a finding that a model wrote
	LessonPicked    = "picked"    // a finding that was picked without a model
)

// Lesson is something that a conversation taught.
type Lesson struct {
	Kind  string
	Text  string
	Terms map[string]bool // of the text; not to be changed
	Turn  int             // 0 for the whole conversation
	Seq   uint64
}

// memo holds what readers derive from a digest.
type memo struct {
	once    sync.Once
	lessons []Lesson
}

// Lessons returns what the conversation taught: first corrections and fixes, newest first, then findings. A digest of a
// [Replayer] derives them once.
func (d *Digest) Lessons() []Lesson {
	if d.memo == nil {
		return d.learnt()
	}
	d.memo.once.Do(func() { d.memo.lessons = d.learnt() })
	return d.memo.lessons
}

func (d *Digest) learnt() (list []Lesson) {
	add := func(kind, text string, turn int, seq uint64) {
		terms := map[string]bool{}
		for _, t := range QueryTerms(text) {
			terms[t] = true
		}
		list = append(list, Lesson{kind, text, terms, turn, seq})
	}
	for _, t := range slices.Backward(d.Taught) {
		kind, said := LessonTaught, t.Text
		before, call, refused := strings.Cut(t.Text, refusedCall)
		switch {
		case refused:
			kind, said = LessonRefused, before
		case d.Request != nil && !instructs(said):
			kind = LessonCorrected
		}
		// Without a request it is a note, which says what its writer meant it to.
		if d.Request == nil || correctionStandsAlone(said) && !(refused && ofTheMoment(said, call)) {
			add(kind, t.Text, t.Turn, t.Seq)
		}
	}
	for _, f := range slices.Backward(d.Fixes) {
		if fixStandsAlone(&f) {
			add(LessonSolved, f.text(), f.Turn, f.Seq)
		}
	}
	if d.Insight != nil {
		for _, f := range d.Insight.Findings {
			add(LessonFound, f, 0, d.Insight.Seq) // of the whole conversation
		}
	}
	if d.Summary != nil {
		kind := LessonPicked
		if d.Summary.ByModel {
			kind = LessonFound
		}
		for _, f := range d.Summary.Findings {
			if d.Summary.ByModel || findingStandsAlone(f) {
				add(kind, f, d.Summary.Last, d.Summary.Seq)
			}
		}
	}
	return list
}

// text describes a fix on one line. The read model keeps the names of such lines, see [Forgotten].
func (f *Fix) text() string {
	clip := func(text string, n int) string { return plain.Clip(plain.Flat(text), n) }
	text := fmt.Sprintf("%q when running %s", clip(f.Trouble, 140), clip(cmp.Or(f.Failed, f.Command), 80))
	if f.Failed != "" {
		text += "; " + clip(f.Command, 80) + " succeeded"
	}
	if len(f.Changed) > 0 {
		text += "; it succeeded after a change of " + strings.Join(f.Changed, ", ")
	}
	return text
}
