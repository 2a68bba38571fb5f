package project

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/harness"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/recall"
)

type reducer struct{ table *files.Table }

// reduce makes a reducer of a function that says what an event changes, nil for nothing.
func (r reducer) reduce(change func(d *Digest, e *events.Recorded) *Change) projection.Reducer[*Unit] {
	return func(u *Unit, e *events.Recorded) error {
		s := u.Touch(e)
		c := change(&s.Digest, e)
		if c == nil {
			return nil
		}
		if c.teaches(&s.Digest) {
			c.Key = eventKey(e.Source, e.ID)
		}
		if c.Request != nil || c.Place != nil {
			c.Placed = placed(&s.Digest, c, e.Seq)
		}
		if c.Withdrawn != "" {
			u.Members = append(u.Members, forgottenMembers(s, c.Withdrawn, e.Seq)...)
		}
		step := Step{Seq: e.Seq, Change: Encode(c)}
		before := s.Digest.Place
		s.Digest.Apply(c, e.Seq)
		if s.Since++; s.Since == changesPerBase || s.Digest.FirstSeq == e.Seq {
			step.Base, s.Since = Encode(&s.Digest), 0
		}
		u.Steps = append(u.Steps, projection.RowOf(s, step))
		if root := s.Digest.Place.Root; root != "" && root != before.Root {
			u.Members = append(u.Members, projection.RowOf(s, Member{Kind: KindRoot, Name: root, Seq: e.Seq, Conversation: s.ID}))
		}
		if c.Chapter != nil {
			u.Members = append(u.Members, chapterMembers(s, c.Chapter, e.Seq)...)
		}
		if c.Placed {
			u.Members = append(u.Members, projection.RowOf(s, Member{
				Kind: KindIn, Name: s.Digest.Place.Name, Seq: e.Seq, Conversation: s.ID, Words: aboutWords(&s.Digest),
			}))
		}
		return nil
	}
}

// placed reports whether a change makes a new entry in the list of the project.
func placed(d *Digest, c *Change, seq uint64) bool {
	place := d.Place
	if c.Place != nil {
		place = *c.Place
	}
	if place.Name == "" {
		return false
	}
	return place.Name != d.Place.Name || d.Placed == 0 || c.Request != nil && (d.Requests < earlyRequests || seq-d.Placed >= placedAgain)
}

// maxWords is how many terms of a conversation its entry holds.
const maxWords = 64

func aboutWords(d *Digest) string {
	var list []string
	for _, term := range recall.AppendTerms(nil, d.About()) {
		if len(list) == maxWords {
			break
		}
		if !slices.Contains(list, term) {
			list = append(list, term)
		}
	}
	return strings.Join(list, " ")
}

// timeOf returns the producer's time of an event.
func timeOf(e *events.Recorded) string {
	if e.Time.IsZero() {
		return ""
	}
	return e.Time.UTC().Format(time.RFC3339)
}

func (r reducer) started(d *Digest, e *events.Recorded) *Change {
	p := e.Payload.(*events.ConversationStarted)
	c := &Change{Time: timeOf(e), Agent: plain.Speaker(p.Agent), Title: plain.Clip(plain.Line(plain.NameData(p.Title)), maxTitle)}
	if p.Project != "" || p.Repository != "" || p.Cwd != "" {
		if place := PlaceOf(p.Project, p.Repository, p.Cwd); place != d.Place {
			c.Place = &place
		}
	}
	return c
}

func (r reducer) updated(_ *Digest, e *events.Recorded) *Change {
	p := e.Payload.(*events.ConversationUpdated)
	if p.Title == nil || *p.Title == "" {
		return nil
	}
	return &Change{Title: plain.Clip(plain.Line(plain.NameData(*p.Title)), maxTitle)}
}

func (r reducer) message(d *Digest, e *events.Recorded) *Change {
	p := e.Payload.(*events.MessageCreated)
	text := strings.TrimSpace(plain.Text(plain.NameData(p.Content)))
	switch {
	case text != "" && p.Origin == events.OriginNote && p.Role == "user":
		return &Change{Time: timeOf(e), Turn: true, Taught: []string{NoteLine(text)}}
	case p.Role == "user" && p.Origin == "" && harness.Interrupts(text):
		return &Change{Time: timeOf(e), Turn: true, Stopped: true}
	case p.Role == "user" && !harness.Asks(p.Role, p.Origin, text):
		return &Change{Turn: true}
	case text == "" || p.Origin != "":
		return nil
	case p.Role == "user":
		when := opening
		if d.Request != nil {
			when = later
		}
		said := harness.Said(text)
		words := said
		switch command := strings.HasPrefix(text, "<command-message>"); {
		case said != text && command:
			if _, words, _ = strings.Cut(said, " "); words == "" { // it does not say what the session is about
				return &Change{Turn: true}
			}
		case said != text:
			words = "" // another agent's, which teach nothing
		}
		return &Change{Time: timeOf(e), Turn: true, Request: &Said{Text: plain.Clip(said, maxRequest)}, Taught: lessons(words, when)}
	case p.Role == "assistant":
		return &Change{Time: timeOf(e), Answer: &Said{Text: plain.Clip(text, maxAnswer)}}
	}
	return nil
}

func (r reducer) called(d *Digest, e *events.Recorded) *Change {
	p := e.Payload.(*events.ToolCalled)
	c := &Called{ID: p.ToolCallID}
	did := r.table.Did(e, d.Place.Folder)
	for _, a := range did.Accesses {
		if a.Kind == files.KindRead || a.Kind == files.KindWrite {
			c.Touched = append(c.Touched, Touch{Path: d.Place.Relative(a.Path), Write: a.Kind == files.KindWrite})
		}
	}
	c.Touched = newest(c.Touched, maxTouched)
	for _, ran := range did.Ran {
		if command := Command(ran, d.Place); command != "" && !slices.ContainsFunc(c.Runs, func(r RunOf) bool { return r.Command == command }) {
			c.Runs = append(c.Runs, RunOf{command, ran.Decides})
		}
	}
	c.plan(p.ToolName, p.Arguments)
	early := slices.ContainsFunc(d.Open, func(o call) bool { return o.Early && o.ID == p.ToolCallID })
	if len(c.Touched)+len(c.Runs)+len(c.Todos) == 0 && c.Task == "" && !c.Whole && !early {
		if d.Answer == nil || d.Worked || slices.Contains(enders, p.ToolName) {
			return nil
		}
		return &Change{Worked: true}
	}
	return &Change{Called: c}
}

// enders are the tools by which the agents of OpenHands and SWE-agent say that their work has ended.
var enders = []string{"finish", "submit"}

// maxTouched is how many files of one call count.
const maxTouched = 16

func (r reducer) returned(d *Digest, e *events.Recorded) *Change {
	p := e.Payload.(*events.ToolReturned)
	o := &Outcome{Call: p.ToolCallID, Success: p.Success}
	i := slices.IndexFunc(d.Open, func(c call) bool { return c.ID == p.ToolCallID && !c.Early })
	failed := p.Success != nil && !*p.Success
	for _, f := range p.Files {
		if f.Op == "read" || f.Op == "write" || f.Op == "edit" {
			if at := files.Normalise(d.Place.Folder, f.Path); at != "" && len(o.Touched) < maxTouched {
				t := Touch{Path: d.Place.Relative(at), Write: f.Op != "read"}
				if i < 0 || !slices.Contains(d.Open[i].Touched, t) {
					o.Touched = append(o.Touched, t)
				}
			}
		}
	}
	if i < 0 && len(o.Touched) == 0 && !failed {
		return nil // its call left nothing open; or the call is still to come, and will count without an outcome
	}
	var taught []string
	if reason, refused := harness.Refusal(cmp.Or(p.Error, p.Text())); failed && refused {
		when := later // the reason against a change of a file or a plan is about its text
		if i >= 0 && len(d.Open[i].Runs) > 0 {
			when = refusing
		}
		o.Refused, taught = true, lessons(reason, when)
		for k := range taught {
			taught[k] += d.refused(i)
		}
	} else if failed && harness.NotRun(cmp.Or(p.Error, p.Text())) {
		o.Refused = true
	} else if failed && (i < 0 || len(d.Open[i].Runs) > 0) {
		o.Error = TroubleOf(p)
	}
	if m := numbered.FindStringSubmatch(plain.Prefix(p.Text(), 200)); i >= 0 && d.Open[i].Task != "" && m != nil {
		o.Number = m[1]
	}
	return &Change{Outcome: o, Taught: taught}
}

// refusedCall stands between the reason for which a call was refused and what is said about the call, which has at most
// maxRefused characters.
const (
	refusedCall = " (refused: "
	maxRefused  = 80
)

// refused says what an open call was about, for the reason for which it was refused; i is less than 0 for an unknown call.
func (d *Digest) refused(i int) string {
	if i < 0 {
		return ""
	}
	var what []string
	for _, r := range d.Open[i].Runs {
		what = append(what, r.Command)
	}
	for _, t := range d.Open[i].Touched {
		if len(d.Open[i].Runs) == 0 && t.Write {
			what = append(what, "a change of "+t.Path)
		}
	}
	if len(what) == 0 {
		return ""
	}
	return refusedCall + plain.Clip(strings.Join(what, "; "), maxRefused) + ")"
}

var numbered = regexp.MustCompile(`#([0-9]{1,6})\b`)

func (r reducer) summary(d *Digest, e *events.Recorded) *Change {
	p := e.Payload.(*events.SummaryWritten)
	s := &Summary{Level: p.Level, Text: plain.Clip(strings.TrimSpace(plain.Text(p.Conversation)), maxSummary), Last: p.LastTurn, ByModel: p.Method == "llm"}
	for _, f := range p.Findings[:min(len(p.Findings), maxFindings)] {
		s.Findings = append(s.Findings, plain.Clip(plain.Line(f), maxLesson))
	}
	return &Change{Summary: s}
}

func (r reducer) aliased(_ *Digest, e *events.Recorded) *Change {
	p := e.Payload.(*events.ProjectAliased)
	if e.Conversation().ID != events.ProjectsConversation {
		return nil // nobody would find it there
	}
	return &Change{Alias: &Alias{Project: Name(p.Project), Into: Name(p.Into)}}
}

func (r reducer) remembered(_ *Digest, e *events.Recorded) *Change {
	p := e.Payload.(*events.MemoryChanged)
	if !strings.HasPrefix(e.Conversation().ID, events.MemoryPrefix) {
		return nil // nobody would find it there
	}
	m := &Memory{Path: p.Path, MovedTo: p.MovedTo, Written: p.Content != nil}
	if m.Written {
		m.Bytes = len(*p.Content)
	}
	return &Change{Time: timeOf(e), Memory: m}
}
