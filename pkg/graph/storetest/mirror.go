package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/summary"
)

// mirror tracks the state of the conversations in a generated history, by the rules of the
// engine, so that tests can draw valid summaries and know which ones are accepted.
type mirror map[events.ConversationID]*mirrored

// mirrored is one conversation.
type mirrored struct {
	first, last, next uint64 // sequences of its first, its last and the next event
	deleted           bool
	keys              map[string]bool // identities and payload keys that are taken
	ledger            summary.Ledger
	known             map[string]summary.Range
	taken             []string // summary_ids of known, in order
	condensed         int
}

// of returns a conversation whose next event is the next of the history.
func (m mirror) of(h *History, conversation string) *mirrored {
	id := events.ConversationID{Tenant: h.Tenant, ID: conversation}
	if m[id] == nil {
		m[id] = &mirrored{keys: map[string]bool{}, known: map[string]summary.Range{}}
	}
	m[id].next = h.Next
	return m[id]
}

// add adds an event to both the mirror and the history.
func (m mirror) add(h *History, conversation, eventID string, p events.Payload) {
	m.of(h, conversation).take(eventID, p)
	h.AddAs(conversation, eventID, p)
}

func (c *mirrored) take(eventID string, p events.Payload) {
	identity, key := "event/"+eventID, p.Key()
	if c.deleted || c.keys[identity] || key != "" && c.keys[key] {
		return
	}
	switch p := p.(type) {
	case *events.SummaryWritten:
		known := func(id string) (summary.Range, bool) { r, ok := c.known[id]; return r, ok }
		if c.first == 0 || c.ledger.Take(p, c.first, c.last, known) != nil {
			return
		}
		c.known[p.SummaryID] = summary.Range{ID: p.SummaryID, Level: p.Level, First: p.FirstSeq, Last: p.LastSeq}
		c.taken = append(c.taken, p.SummaryID)
	case *events.ToolCondensed:
		if !c.keys[events.ToolResultKey(p.ToolCallID)] {
			return
		}
		c.condensed++
	case *events.ConversationDeleted:
		c.deleted = true
	}
	c.keys[identity] = true
	if key != "" {
		c.keys[key] = true
	}
	c.first = cmp.Or(c.first, c.next)
	c.last = c.next
}

// summary draws a valid summary, a revision of an existing one, or any summary.
func (c *mirrored) summary(r *rapid.T) *events.SummaryWritten {
	p := written(fmt.Sprint("s", c.next), 1, max(c.ledger.Next(1, c.first), 1), 1)
	switch what := rapid.IntRange(0, 9).Draw(r, "summary"); {
	case what < 4 || len(c.taken) == 0:
		p.LastSeq = rapid.Uint64Range(p.FirstSeq, max(p.FirstSeq, c.last)).Draw(r, "last")
	case what < 7:
		p.Level = rapid.IntRange(1, len(c.ledger.Levels)).Draw(r, "level below") + 1
		p.FirstSeq = c.ledger.Next(p.Level, c.first)
		p.LastSeq = p.FirstSeq
		p.Children = c.children(r, p)
	case what < 9:
		old := c.known[rapid.SampledFrom(c.taken).Draw(r, "superseded")]
		p.Level, p.FirstSeq, p.LastSeq, p.Supersedes = old.Level, old.First, old.Last, old.ID
	default:
		p.Level = rapid.IntRange(1, 3).Draw(r, "level")
		p.FirstSeq = rapid.Uint64Range(1, c.next).Draw(r, "first")
		p.LastSeq = rapid.Uint64Range(p.FirstSeq, c.next+1).Draw(r, "last")
		p.Children = rapid.SliceOfN(rapid.SampledFrom(slices.Concat(c.taken, []string{"nobody"})), 0, 2).Draw(r, "children")
		p.SummaryID = rapid.SampledFrom(slices.Concat(c.taken, []string{p.SummaryID})).Draw(r, "id")
	}
	return p
}

// children draws consecutive children from the beginning of a summary on, any revision of
// each, and sets the summary's end to theirs.
func (c *mirrored) children(r *rapid.T, p *events.SummaryWritten) (ids []string) {
	for n := rapid.IntRange(1, 3).Draw(r, "children"); n > 0; n-- {
		next := p.LastSeq + 1
		if ids == nil {
			next = p.FirstSeq
		}
		var fit []string
		for _, id := range c.taken {
			if k := c.known[id]; k.Level == p.Level-1 && k.First == next {
				fit = append(fit, id)
			}
		}
		if fit == nil {
			break
		}
		ids = append(ids, rapid.SampledFrom(fit).Draw(r, "child"))
		p.LastSeq = c.known[ids[len(ids)-1]].Last
	}
	return ids
}

// summarised draws histories of one conversation "c" that is mostly summarized.
var summarised = rapid.Custom(func(r *rapid.T) summarisedHistory {
	h, known := NewHistory(), mirror{}
	for range rapid.IntRange(1, 60).Draw(r, "events") {
		h.Next += uint64(rapid.IntRange(0, 1).Draw(r, "gap"))
		c := known.of(h, "c")
		p := payload(r, c)
		if _, ends := p.(*events.ConversationDeleted); ends || c.first > 0 && rapid.IntRange(0, 1).Draw(r, "summarise") == 0 {
			p = c.summary(r)
		}
		known.add(h, "c", fmt.Sprintf("e%d", h.Next), p)
	}
	return summarisedHistory{h, known.of(h, "c")}
})

type summarisedHistory struct {
	*History
	*mirrored
}

// withoutSummaries returns a history without the events that contain sequences.
func withoutSummaries(h *History) *History {
	kept := *h
	kept.Messages = nil
	for _, m := range h.Messages {
		if !strings.HasSuffix(m.Subject, "."+events.Kind(events.TypeSummaryWritten)) {
			kept.Messages = append(kept.Messages, m)
		}
	}
	return &kept
}
