package projects

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/window"
)

// How long texts of a session are, in characters.
const (
	maxStands = 6 // sessions
	maxAsked  = 220
	maxEnded  = 320
	maxOpen   = 200
	shortID   = 8
)

// ShortID returns the name of a conversation in the text: the last 8 characters of its id. Many agents begin an id with the
// time, so that sessions of the same minute, or even month, begin alike. A shorter last part, such as "agent-1" for the first
// subagent of a session, follows the name of its session. If that is short too, the name is the whole id, such as "notes:shop".
func ShortID(id string) string {
	name, _ := shorten(plain.Flat(id))
	return name
}

// IsShort reports whether a text may be such a name, but not a whole id. Shorter ones are not, because a mistyped id could mean
// another conversation.
func IsShort(name string) bool {
	short, isPart := shorten(name)
	return isPart && short == name
}

func shorten(id string) (name string, isPart bool) {
	before, last := lastPart(id)
	_, session := lastPart(before)
	switch {
	case plain.Length(last) >= shortID:
		return plain.Suffix(last, shortID), true
	case plain.Length(session) >= shortID:
		return plain.Suffix(session, shortID) + ":" + last, true
	}
	return id, false
}

// IsSession reports whether a text may be an agent's own id of a session, which is the last part of mneme's.
func IsSession(name string) bool {
	before, _ := lastPart(name)
	return before == "" && plain.Length(name) >= shortID
}

// Names reports whether a name, for which [IsShort] or [IsSession] holds, means the conversation with this id.
func Names(name, id string) bool {
	_, session := lastPart(id)
	return ShortID(id) == name || session == name
}

// lastPart divides an id before its last part.
func lastPart(id string) (before, last string) {
	if i := strings.LastIndexAny(id, ":/"); i >= 0 && i+1 < len(id) {
		return id[:i], id[i+1:]
	}
	return "", id
}

func cite(s *project.Session, turn int) string {
	if turn == 0 {
		return "[" + ShortID(s.ID.ID) + "]"
	}
	return fmt.Sprintf("[%s, turn %d]", ShortID(s.ID.ID), turn)
}

// clip puts a text on one line of at most n characters.
func clip(text string, n int) string { return plain.Clip(plain.Flat(text), n) }

// collectStands shows the newest sessions: what was asked, how it ended and what is open.
func collectStands(b *builder, _ int) (list []window.Item) {
	for i := range b.sessions {
		s := &b.sessions[i]
		if s.Request == nil || len(list) == maxStands {
			continue
		}
		it := window.Item{Kind: window.KindNote, Session: s.ID.ID, Turn: s.Turns, Seq: s.LastSeq, Label: b.head(s)}
		add := func(label, text string, n int) {
			if text = clip(text, n); text != "" {
				it.Notes = append(it.Notes, window.Note{Label: label, Text: text})
			}
		}
		add("Asked", s.First.Text, maxAsked)
		switch {
		case s.Summary != nil && s.Summary.ByModel && s.Summary.Last >= s.Request.Turn-1:
			add("Ended", s.Summary.Text, maxEnded)
		case s.Answer != nil && !s.Unanswered():
			if s.Request.Seq != s.First.Seq {
				add("Last asked", s.Request.Text, maxAsked)
			}
			label := "Ended"
			if s.Worked {
				label = "Last said"
			}
			add(label, told(s.Answer.Text), maxEnded)
			if s.Report != nil && s.IsBrief() {
				add("Before", told(s.Report.Text), maxEnded)
			}
		}
		for _, o := range b.leftOpen(s) {
			add("Open", o, maxOpen)
		}
		list = append(list, it)
		for _, m := range []*project.Said{s.First, s.Request, s.Answer, s.Report} {
			if m != nil {
				b.shown[shown{s.ID.ID, m.Seq}] = true
			}
		}
	}
	return list
}

// head says which session it was.
func (b *builder) head(s *project.Session) string {
	parts := []string{}
	if len(s.Ended) >= 10 {
		parts = append(parts, s.Ended[:10])
	}
	if s.Agent != "" {
		parts = append(parts, plain.Flat(s.Agent))
	}
	parts = append(parts, fmt.Sprintf("%d turns", s.Turns))
	if s.Turns == 1 {
		parts[len(parts)-1] = "1 turn"
	}
	return cite(s, 0) + " " + strings.Join(parts, ", ")
}

// leftOpen lists what a session left open.
func (b *builder) leftOpen(s *project.Session) (list []string) {
	switch {
	case s.Interrupted && s.Request == nil: // a slash command is none
		list = append(list, "the user stopped the agent")
	case s.Interrupted:
		list = append(list, "the user stopped the agent after: "+clip(s.Request.Text, maxOpen/2))
	case s.Unanswered():
		list = append(list, "not answered: "+clip(s.Request.Text, maxOpen/2))
	}
	var failing []string
	for i := range s.Runs {
		if r := &s.Runs[i]; r.BadLast && !project.Anywhere(r.Command) && repeatable(r.Command) && !b.succeededSince(r) { // git and gh fail because of the moment
			failing = append(failing, r.Command)
		}
	}
	if len(failing) > 0 {
		list = append(list, "failed when last run: "+strings.Join(failing[max(0, len(failing)-2):], "; "))
	}
	if s.Insight != nil && len(s.Insight.Items) > 0 {
		list = append(list, "left to do: "+strings.Join(s.Insight.Items, "; "))
	}
	if undone := s.Undone(); len(undone) > 0 {
		texts := make([]string, 0, 3)
		for _, t := range undone[:min(3, len(undone))] {
			texts = append(texts, t.Text)
		}
		list = append(list, fmt.Sprintf("%d of %d things to do: %s", len(undone), len(s.Todos), strings.Join(texts, "; ")))
	}
	return list
}

// succeededSince reports whether a command that failed succeeded later, in another session.
func (b *builder) succeededSince(failed *project.Run) bool {
	return slices.ContainsFunc(b.sessions, func(s project.Session) bool {
		return slices.ContainsFunc(s.Runs, func(r project.Run) bool {
			return r.Command == failed.Command && r.GoodSeq > failed.Seq && !r.BadLast
		})
	})
}

// lesson is a line of what was learnt.
type lesson struct {
	*project.Lesson
	of    *project.Session
	score float64
}

// moment is the sequence at which a lesson was learnt. A summary is about what was said before it, and may be written much later.
func (l *lesson) moment() uint64 { return min(l.Seq, l.of.LastSeq) }

// weights are the weights of lessons by their kind. A correction, or a reason for a refusal, often holds for that moment only,
// and a sentence that was picked without a model says little by itself.
var weights = map[string]float64{project.LessonTaught: 1, project.LessonCorrected: 0.6, project.LessonRefused: 0.6, project.LessonSolved: 0.7, project.LessonFound: 0.8, project.LessonPicked: 0.3}

// lessonLabels are the kinds of lessons as a reader sees them.
var lessonLabels = map[string]string{project.LessonTaught: "User", project.LessonCorrected: "User", project.LessonRefused: "User", project.LessonSolved: "Solved", project.LessonFound: "Found", project.LessonPicked: "Found"}

// isNote reports whether an agent was told to remember a lesson: no user asked for anything there. See events.OriginNote.
func (l *lesson) isNote() bool { return l.Kind == project.LessonTaught && l.of.Request == nil }

// label says who taught a lesson.
func (l *lesson) label() string {
	if l.isNote() {
		return "Note"
	}
	return lessonLabels[l.Kind]
}

// collectLearnt shows what the user corrected or asked for in general, failures with their solutions, and findings of
// summaries: first those of the newest sessions and of sessions that the query resembles. If lines are similar, only
// the newest is shown.
func collectLearnt(b *builder, _ int) []window.Item {
	var all []lesson
	for i := range b.sessions {
		s, own := &b.sessions[i], len(all)
		lessons := s.Lessons()
		for k := range lessons {
			l, rank := lesson{Lesson: &lessons[k], of: s}, i
			asked := l.Kind == project.LessonTaught && s.Request != nil && s.First.Seq == l.Seq && b.shown[shown{s.ID.ID, l.Seq}]
			if len(l.Terms) == 0 || asked || b.gone.HidesLesson(s.ID, l.Lesson) || l.isRepeated(all[own:]) { // a summary repeats what the user taught before it
				continue
			}
			if l.isNote() { // notes are as recent as their place among the notes, whatever sessions came since
				rank = len(all) - own
			}
			l.score = weights[l.Kind] * (recency(rank) + s.Fit + overlap(b.query, l.Terms))
			all = append(all, l)
		}
	}
	// A session that another one corrected may go on: the newest line counts, not that of the newest session.
	slices.SortStableFunc(all, func(a, b lesson) int { return cmp.Compare(b.moment(), a.moment()) })
	var list []lesson
	for _, l := range all {
		if !l.isRepeated(list) {
			list = append(list, l)
		}
	}
	slices.SortStableFunc(list, func(a, b lesson) int { return cmp.Compare(b.score, a.score) })
	items := make([]window.Item, len(list))
	for i, l := range list {
		items[i] = window.Item{Kind: window.KindNote, Session: l.of.ID.ID, Turn: l.Turn, Seq: l.Seq, Label: cite(l.of, l.Turn) + " " + l.label(), Text: l.Text}
	}
	return items
}

// isRepeated reports whether one of some lessons says nearly the same. Two notes that differ in more than a word are two facts,
// such as the ports of two services.
func (l *lesson) isRepeated(list []lesson) bool {
	return slices.ContainsFunc(list, func(k lesson) bool {
		most := 3 * min(len(l.Terms), len(k.Terms)) / 10
		if l.isNote() && k.isNote() {
			most = min(most, 1)
		}
		return alike(l.Terms, k.Terms, most)
	})
}

// alike reports whether at most so many terms of the shorter of two texts are not in the longer.
func alike(a, b map[string]bool, most int) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	for t := range a {
		if !b[t] {
			if most--; most < 0 {
				return false
			}
		}
	}
	return true
}

// overlap is the share of a query's terms that a text has.
func overlap(query []string, terms map[string]bool) float64 {
	if len(query) == 0 {
		return 0
	}
	n := 0
	for _, t := range query {
		if terms[t] {
			n++
		}
	}
	return float64(n) / float64(len(query))
}

// temporary matches a command that runs a program or a script of a temporary folder.
var temporary = regexp.MustCompile(`^((cd \S+ && )?|(\S*python3?|node|bash|sh|go run) )(/private)?(/tmp/|/var/folders/)`)

// repeatable reports whether a command can be run in another session: it is whole, and what it runs is still there.
func repeatable(command string) bool {
	return !strings.Contains(command, "…") && !temporary.MatchString(command)
}

// maxWork is how many commands are listed.
const maxWork = 16

// collectWork shows the commands that were run again and again, and those that keep failing.
func collectWork(b *builder, _ int) []window.Item {
	type command struct {
		text                string
		runs, good, bad, in int
		session             *project.Session
		turn                int
		seq                 uint64
		score               float64
	}
	var list []*command
	at := map[string]*command{}
	for i := range b.sessions {
		s := &b.sessions[i]
		for k := range s.Runs {
			r := &s.Runs[k]
			if project.Anywhere(r.Command) || !repeatable(r.Command) {
				continue
			}
			c := at[r.Command]
			if c == nil {
				c = &command{text: r.Command, session: s, turn: r.Turn, seq: r.Seq}
				at[r.Command] = c
				list = append(list, c)
			}
			c.runs, c.good, c.bad, c.in = c.runs+r.Runs, c.good+r.Good, c.bad+r.Bad, c.in+1
			c.score += (recency(i) + s.Fit) * logOf(r.Runs)
		}
	}
	list = slices.DeleteFunc(list, func(c *command) bool { return c.runs < 2 })
	slices.SortStableFunc(list, func(a, b *command) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.seq, a.seq), cmp.Compare(a.text, b.text))
	})
	var items []window.Item
	for _, c := range list[:min(len(list), maxWork)] {
		label := fmt.Sprintf("%d runs in %d sessions", c.runs, c.in)
		if c.in == 1 {
			label = fmt.Sprintf("%d runs in 1 session", c.runs)
		}
		switch {
		case c.bad > 1 && c.good == 0:
			label += ", always failed"
		case c.bad > 0:
			label += fmt.Sprintf(", %d known to fail", c.bad)
		}
		items = append(items, window.Item{Kind: window.KindNote, Session: c.session.ID.ID, Turn: c.turn, Seq: c.seq, Label: label, Text: c.text})
	}
	return items
}

// Limits of the relevant past.
const (
	maxRelevant      = 12
	maxRelevantChars = 360
	searched         = 4 // sessions whose messages are searched
)

// searched returns the sessions whose messages are searched: those that fit the query best.
func (b *builder) searched() []project.Session {
	best := slices.DeleteFunc(slices.Clone(b.sessions), func(s project.Session) bool { return s.Fit == 0 })
	slices.SortStableFunc(best, func(a, b project.Session) int { return cmp.Compare(b.Fit, a.Fit) })
	return best[:min(len(best), searched)]
}

// collectRelevant shows the messages that fit the query best.
func collectRelevant(b *builder, _ int) (items []window.Item) {
	for _, m := range b.found {
		i := slices.IndexFunc(b.sessions, func(s project.Session) bool { return s.ID == m.Conversation })
		if b.shown[shown{m.Conversation.ID, m.Seq}] || b.sessions[i].IsWithdrawn(m.Seq) || b.gone.HidesWhat(b.sessions[i].Digest, m.Seq) || b.gone.Hides(project.NoteLine(m.Text), m.Seq) {
			continue
		}
		items = append(items, window.Item{
			Kind: window.KindNote, Session: m.Conversation.ID, Turn: m.Turn, Seq: m.Seq, Role: m.Role,
			Label: cite(&b.sessions[i], m.Turn) + " " + roles[m.Role], Text: clip(m.Text, maxRelevantChars),
		})
	}
	return items
}

var roles = map[string]string{"user": "User", "assistant": "Assistant", "system": "System"}
