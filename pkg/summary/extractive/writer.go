package extractive

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"mneme.dev/mneme/pkg/summary"
)

// MaxChars is the default length of a draft in characters, all parts included.
const MaxChars = summary.MaxDraft

// Limits of the parts. Space that Actions and Topics don't need goes to the sentences; what
// these leave goes to longer lists in Actions.
const (
	actionsPercent  = 30
	topicsPercent   = 8
	findingsPercent = 30
	maxFindings     = 5
	maxTopics       = 4
	leastWorth      = 0.25 // least prior of a sentence, unless there is no other
	leastContents   = 4    // least terms of a finding: "I found the issue" says nothing
	separator       = 4    // characters around a part or a finding: a bullet, a comma, a newline
)

// silence is the Conversation part of a range without messages.
const silence = "No messages; the work went on without a word."

// ErrEmpty is returned for an input without entries and children.
var ErrEmpty = errors.New("nothing to summarize")

// Writer is a [summary.Writer] that needs no model. The zero value is ready to use and safe
// for concurrent use.
type Writer struct {
	MaxChars int // Limit of a draft in characters; 0 means the constant MaxChars. Below 100 there is little room for anything but Conversation.
}

var _ summary.Writer = Writer{}

// Write writes a draft from in alone. Its only error is [ErrEmpty].
func (w Writer) Write(_ context.Context, in summary.Input) (summary.Draft, summary.Usage, error) {
	var m material
	switch {
	case len(in.Children) > 0:
		m = fromChildren(in.Children)
	case len(in.Entries) > 0:
		m = fromEntries(in.Entries)
	default:
		return summary.Draft{}, summary.Usage{}, ErrEmpty
	}
	limit := w.MaxChars
	if limit <= 0 {
		limit = MaxChars
	}
	return m.draft(limit), summary.Usage{}, nil
}

// material is what a draft is made from.
type material struct {
	sentences []*sentence // oldest first
	findings  []*sentence // findings of children: candidates for Findings only
	done      tally
	actions   []*sentence // Actions of children written by a model, as sentences
	topics    []string    // best first
	among     bool        // whether only people talk
}

// draft composes the parts within limit characters.
func (m *material) draft(limit int) summary.Draft {
	var d summary.Draft
	c := newCoverage(slices.Concat(m.sentences, m.findings, m.actions))
	room := limit
	spend := func(n int) { room -= n + separator }

	if d.Actions = m.writeActions(c, limit*actionsPercent/100); d.Actions != "" {
		spend(length(d.Actions))
	}
	topicsRoom := limit * topicsPercent / 100
	for _, topic := range m.topics {
		if n := length(topic) + separator; n <= topicsRoom && len(d.Topics) < maxTopics {
			d.Topics = append(d.Topics, topic)
			topicsRoom -= n
			spend(length(topic))
		}
	}
	reserve := 0
	if len(m.sentences)+len(m.findings) > maxFindings {
		reserve = limit * findingsPercent / 100
	}
	d.Conversation = m.writeConversation(c, room-reserve)
	d.Conversation = cmp.Or(d.Conversation, clip(silence, room))
	spend(length(d.Conversation))
	d.Findings = m.writeFindings(c, room)
	for _, finding := range d.Findings {
		spend(length(finding))
	}
	if len(m.actions) == 0 && room > separator { // the lists get the remaining space
		d.Actions = m.done.text(length(d.Actions) + room - separator)
	}
	return d
}

// writeConversation takes the newest and the first request, then the sentences that gain
// most, and writes them in their order, one line per message.
func (m *material) writeConversation(c *coverage, room int) string {
	left := room
	take := func(s *sentence) bool {
		if s == nil {
			return false
		}
		c.take(s)
		left -= cost(s)
		return true
	}
	worth := func(s *sentence) float64 {
		if s.prior < leastWorth {
			return 0
		}
		return s.prior
	}
	for _, group := range m.requests() {
		take(c.best(m.sentences, left, func(s *sentence) float64 {
			if !s.user || s.group != group {
				return 0
			}
			return s.prior
		}))
	}
	for take(c.best(m.sentences, left, worth)) {
	}
	if left == room { // no sentence is worth much, or none fits
		if s := slices.MaxFunc(append(m.sentences, &sentence{}), func(a, b *sentence) int { return cmp.Compare(a.prior, b.prior) }); s.text != "" {
			s.taken = true
			return clip(labelled(s), room)
		}
		return ""
	}
	return compose(m.sentences)
}

// writeFindings takes up to five of the remaining sentences.
func (m *material) writeFindings(c *coverage, room int) []string {
	candidates := m.findings
	if candidates == nil {
		candidates = m.sentences
	}
	var chosen []*sentence
	for len(chosen) < maxFindings {
		s := c.best(candidates, room-separator, func(s *sentence) float64 {
			evidence := s.evidence()
			if s.prior < leastWorth || contents(s) < leastContents || !m.among && (s.user || evidence == 1) {
				return 0
			}
			return s.prior * evidence
		})
		if s == nil {
			break
		}
		c.take(s)
		room -= cost(s) + separator
		chosen = append(chosen, s)
	}
	var out []string
	for _, s := range candidates {
		if slices.Contains(chosen, s) {
			text := s.whole()
			if m.among && s.speaker != "" {
				text = s.speaker + ": " + text
			}
			out = append(out, text)
		}
	}
	return out
}

// writeActions writes the tally and what models wrote about the children's actions.
func (m *material) writeActions(c *coverage, room int) string {
	text := m.done.text(room)
	room -= length(text)
	var chosen []*sentence
	for {
		s := c.best(m.actions, room, func(*sentence) float64 { return 1 })
		if s == nil {
			break
		}
		c.take(s)
		room -= cost(s)
		chosen = append(chosen, s)
	}
	for _, s := range m.actions {
		if slices.Contains(chosen, s) {
			text = strings.TrimSpace(text + " " + s.whole())
		}
	}
	return text
}

// compose writes the taken sentences in order: those of one message on one line, after the
// speaker.
func compose(all []*sentence) string {
	var b strings.Builder
	var before *sentence
	for _, s := range all {
		switch {
		case !s.taken:
			continue
		case before != nil && before.speaker == s.speaker && before.group == s.group:
			b.WriteString(" " + s.whole())
		default:
			if before != nil {
				b.WriteByte('\n')
			}
			b.WriteString(labelled(s))
		}
		before = s
	}
	return b.String()
}

// labelled returns a sentence after its speaker's name.
func labelled(s *sentence) string {
	if s.speaker == "" {
		return s.whole()
	}
	return s.speaker + ": " + s.whole()
}

// requests returns the groups of the newest and of the first request, which are always
// kept. The first request is the first message that says something by itself.
func (m *material) requests() []int {
	const telling = 3 // terms
	newest, first := -1, -1
	if m.among {
		return nil
	}
	for _, s := range m.sentences {
		if !s.user || s.prior < 1 {
			continue
		}
		newest = s.group
		if first < 0 && contents(s) >= telling {
			first = s.group
		}
	}
	return []int{newest, first}
}

// cues are terms with which people and agents report what they found, decided or could not
// do.
var cues = termSet(`cause root reason found find issue problem bug fix error fail failure pass decided decision agreed chose instead
	require must recommend confirm verify result conclusion therefore means wrong incorrect broken missing limit never always actually
	introduced regression leak race conflict`)

// evidence is a sentence's value as a finding by its form: cues and names, at most two of
// each so that a list of names does not win.
func (s *sentence) evidence() float64 {
	n := 0
	for i, term := range s.terms {
		if cues[term] && !slices.Contains(s.terms[:i], term) {
			n++
		}
	}
	return 1 + 0.5*math.Min(float64(n), 2) + 0.25*math.Min(float64(s.named), 2)
}

// byCount sorts names by their count, highest first, then alphabetically.
func byCount(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
}
