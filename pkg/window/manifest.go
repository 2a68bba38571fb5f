package window

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"

	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/window/marks"
)

// Manifest explains how a context came about.
type Manifest struct {
	Strategy string            `json:"strategy"`
	AsOf     uint64            `json:"as_of"`
	Budget   int               `json:"budget"`
	Used     int               `json:"used"`             // of the Markdown, in Unicode code points
	Hash     string            `json:"hash"`             // SHA-256 of the Markdown, hex
	Mark     string            `json:"mark,omitempty"`   // id of the marks in messages for models; absent if nothing is shown
	Frame    int               `json:"frame"`            // of the Markdown's first line and its line end
	Search   *SearchManifest   `json:"search,omitempty"` // absent if nothing was searched
	Sections []SectionManifest `json:"sections"`

	// Rewritten and Settings are set by the caller that serves the context.
	Rewritten *Rewritten     `json:"rewritten,omitempty"` // absent if no other words for the query were asked for
	Settings  *Settings      `json:"settings,omitempty"`
	Tried     []int          `json:"tried_budgets,omitempty"` // the larger budgets that were tried for Candidate.FitsAt and FollowedEvent.FitsAt
	Followed  *FollowedEvent `json:"followed,omitempty"`      // only if the request follows an event
}

// FollowedEvent says where one event is shown. It may be an event that no section considered.
type FollowedEvent struct {
	Seq     uint64 `json:"seq"`
	Section string `json:"section,omitempty"` // the first that shows it; absent if none does
	FitsAt  int    `json:"fits_at,omitempty"` // as of a Candidate, if no section shows it
}

// Settings are the parameters in effect, with the defaults of the server.
type Settings struct {
	Query         string `json:"query,omitempty"` // of the request; absent if the newest user message was searched for
	Condense      string `json:"condense"`
	ProjectMemory bool   `json:"project_memory"` // whether earlier sessions of the project may be shown
}

// Rewritten says what a model added to the query of a request.
type Rewritten struct {
	Query   string `json:"query"`             // as it was asked
	Model   string `json:"model,omitempty"`   // absent if nothing was added
	Added   string `json:"added,omitempty"`   // the words that were searched for in addition
	Missing string `json:"missing,omitempty"` // why there are none
}

// SearchManifest describes the search of the past.
type SearchManifest struct {
	Query     string `json:"query"`
	Embedding string `json:"embedding_model,omitempty"`   // used in the ranking; absent if it ranked by words alone
	Missing   string `json:"embedding_missing,omitempty"` // which part of the ranking by meaning was missing, and why
	// EmbeddedUpTo is the sequence of the last message whose vectors were used; absent with
	// built-in embeddings, which all messages have.
	EmbeddedUpTo uint64 `json:"embedded_up_to,omitempty"`
	// Reranked says what a reranker did to the order; absent if none was asked for.
	Reranked  *Reranked `json:"reranked,omitempty"`
	PastShare float64   `json:"past_share"` // the past's part of the room that it shares with code: the share of messages in recent text, within limits
}

// SectionManifest says how much room a section had and how much it used in the Markdown. The Used
// of all sections and the frame add up to the Used of the manifest.
type SectionManifest struct {
	Name     string    `json:"name"`
	Share    int       `json:"share"`  // percent of the budget
	Budget   int       `json:"budget"` // characters available: its share, what others left, and what was set aside for it
	Used     int       `json:"used"`
	Items    int       `json:"items"`
	Dropped  []Dropped `json:"dropped"`
	EventIDs []string  `json:"event_ids"` // of the events shown, in page order
	// Foreign lists the event ids of its summaries whose source is not the summarizer's: another
	// program published them, or they were imported. The rest are not proven to be the
	// summarizer's, because anyone who can publish can name any source.
	Foreign []string `json:"foreign_summaries,omitempty"`
	// Embedding is the model that ranked code, in addition to words. It differs from the messages'
	// model if theirs is an endpoint's. Absent in all other sections.
	Embedding string `json:"embedding_model,omitempty"`
	// Indexed says what the index of the project's code added to the code that tools showed. Absent if no index counts for
	// the conversation, and in all other sections.
	Indexed *IndexedManifest `json:"indexed,omitempty"`
	// Ranges says where each item is in the Markdown, in the order of the items; see
	// [Context.MarkRanges].
	Ranges []Range `json:"ranges,omitempty"`
	// Candidates are what the section considered and left out, at most 50, the most promising
	// first; only if the request asks for them.
	Candidates []Candidate `json:"candidates,omitempty"`
}

// IndexedManifest says what an index of code contributed.
type IndexedManifest struct {
	Project   string `json:"project"`
	Root      string `json:"root"`       // the folder that was indexed
	Seq       uint64 `json:"seq"`        // of the event that says so
	Found     int    `json:"found"`      // scopes that the search found
	Shown     int    `json:"shown"`      // items of the section that come from the index; the others are what tools showed
	ByMeaning bool   `json:"by_meaning"` // the search also compared meaning; not while indexing is under way, and not without embeddings
}

// Dropped says what a section left out and why. The parts of a turn that is left out are not
// counted separately.
type Dropped struct {
	What   string `json:"what"` // steps, turns, messages, queries, files, accesses, summaries, parts of summaries, passages, scopes
	Count  int    `json:"count"`
	Reason string `json:"reason"`
}

const reasonBudget = "over the budget"

// drop notes what was left out, and adds up equal entries.
func (f *filled) drop(what string, count int, reason string) {
	if count <= 0 {
		return
	}
	for i := range f.dropped {
		if d := &f.dropped[i]; d.What == what && d.Reason == reason {
			d.Count += count
			return
		}
	}
	f.dropped = append(f.dropped, Dropped{what, count, reason})
}

// Mark returns the id of the marks in messages for models, "" for a context without sections. It
// depends on what the Markdown shows alone, so a context read from JSON has the same one.
func (c *Context) Mark() string {
	if c.mark != "" || len(c.Sections) == 0 {
		return c.mark
	}
	text := c.Markdown()
	return marks.ID(text, hashOf(text))
}

// hashOf returns the SHA-256 of a text in hex, without a copy of the text.
func hashOf(text string) string {
	hash := sha256.New()
	w := bufio.NewWriter(hash)
	_, _ = w.WriteString(text)
	_ = w.Flush()
	return hex.EncodeToString(hash.Sum(nil))
}

// assemble orders the sections for the page and writes the manifest.
func (b *builder) assemble(list []section, all []filled) *Context {
	c := &Context{
		Tenant: b.req.Conversation.Tenant, Conversation: b.req.Conversation.ID, Title: plain.Clip(plain.Line(b.conversation.Title), frameCost),
		Strategy: b.req.Strategy, MaxChars: b.req.MaxChars, AsOf: b.end - 1, Sections: []Section{},
	}
	m := &Manifest{Strategy: c.Strategy, AsOf: c.AsOf, Budget: c.MaxChars}
	for i, s := range list {
		f := all[i]
		if s.name == SectionEarlier && len(f.items) == 0 {
			continue // most conversations are not young, or have no project
		}
		sm := SectionManifest{
			Name: s.name, Share: s.share, Budget: f.room, Used: f.used, Items: len(f.items), Dropped: f.dropped, EventIDs: []string{}, Embedding: f.embedding, Indexed: f.indexed,
		}
		if sm.Dropped == nil {
			sm.Dropped = []Dropped{}
		}
		sm.Candidates = f.candidates
		for _, it := range f.items {
			if it.Summary != nil && it.Summary.Source != "" {
				sm.Foreign = append(sm.Foreign, it.EventID)
			}
			sm.Used -= it.marks
			for _, id := range []string{it.EventID, it.ResultEventID} {
				if id != "" {
					sm.EventIDs = append(sm.EventIDs, id)
				}
			}
		}
		if len(f.items) > 0 {
			c.Sections = append(c.Sections, Section{Name: s.name, Heading: s.heading, Items: f.items})
		}
		m.Sections = append(m.Sections, sm)
	}
	if b.past != nil && len(b.past.Hits)+b.past.retold > 0 {
		m.Search = &SearchManifest{Query: b.query(), Embedding: b.past.Model, Missing: b.past.Missing, EmbeddedUpTo: b.past.EmbeddedUpTo, Reranked: b.past.Reranked, PastShare: hundredth(b.pastShare(&b.recent))}
	}
	c.finish(m)
	if b.req.Candidates {
		c.keepLeftOut()
	}
	return c
}
