// Package projects makes the context of a project: what an agent that begins to work there should see. It is made of
// the digests of the project's conversations (package project), and of the messages that fit the query.
//
// Everything is recorded text, so it is shown as package window shows it: each text on one line after a label of
// mneme. The same sessions give the same bytes.
package projects

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/window"
)

// Names of the sections.
const (
	SectionStory    = "story"
	SectionStands   = "where_things_stand"
	SectionLearnt   = "what_was_learnt"
	SectionWork     = "how_to_work_here"
	SectionFiles    = "files"
	SectionRelevant = "relevant_past"
)

// DefaultMaxChars is the budget of a request without one.
const DefaultMaxChars = 8_000

// Request says which context to build.
type Request struct {
	Tenant   string
	Project  string // a name, or a folder: see project.Find
	Query    string // what the agent is about to do; "" for what is newest
	MaxChars int    // Unicode code points, headings and marks included; 0 means DefaultMaxChars
	AsOf     uint64 // a sequence; 0 means latest
	Except   string // id of a conversation to leave out
}

// Past ranks messages of several conversations together.
type Past interface {
	// Said returns the messages that fit a query best, best first, as of a sequence. It reads a number of messages of
	// each session that does not depend on its length.
	Said(ctx context.Context, sessions []project.Session, query string, asOf uint64, limit int) ([]Message, error)
}

// Message is a message that fits a query.
type Message struct {
	Conversation events.ConversationID
	Seq          uint64
	Turn         int
	Role         string
	Text         string
	Score        float64
}

// Source is what a context is built from. Without Past it has no section of the relevant past.
type Source struct {
	Projects project.Reader
	Past     Past
}

// Build makes the context of a project. It returns a *window.InvalidError for a request that can't be answered, and
// graph.ErrNotFound if no conversation belongs to the project.
func Build(ctx context.Context, src Source, req Request) (*window.Context, error) {
	req.MaxChars = cmp.Or(req.MaxChars, DefaultMaxChars)
	if req.MaxChars < window.MinMaxChars || req.MaxChars > window.MaxMaxChars {
		return nil, &window.InvalidError{Field: "max_chars", Reason: fmt.Sprintf("%d is not between %d and %d", req.MaxChars, window.MinMaxChars, window.MaxMaxChars)}
	}
	req.AsOf = cmp.Or(req.AsOf, graph.Latest)
	b, err := open(ctx, src, req)
	if err != nil {
		return nil, err
	}
	if len(b.sessions) == 0 {
		return nil, fmt.Errorf("project %q: %w", req.Project, graph.ErrNotFound)
	}
	parts := b.tell(sections, "## Story So Far", req.MaxChars-window.FrameCost)
	asOf := b.newest()
	if req.AsOf != graph.Latest {
		asOf = req.AsOf
	}
	return window.Compose(window.Context{Tenant: req.Tenant, Project: plain.Clip(plain.Line(b.project.Name), window.FrameCost), Strategy: window.StrategyProject, MaxChars: req.MaxChars, AsOf: asOf}, parts), nil
}

// open finds the project of a request, and reads what its sections need.
func open(ctx context.Context, src Source, req Request) (*builder, error) {
	b := newBuilder(src, req)
	var err error
	if b.project, err = project.Find(ctx, src.Projects, req.Tenant, req.Project, req.AsOf); err != nil {
		return nil, err
	}
	if err := b.read(ctx, req.Except); err != nil {
		return nil, fmt.Errorf("context of project %q: %w", req.Project, err)
	}
	return b, nil
}

func newBuilder(src Source, req Request) *builder {
	return &builder{src: src, req: req, query: project.QueryTerms(plain.Prefix(req.Query, maxQueryChars)), shown: map[shown]bool{}, excluded: files.Exclude(files.DefaultExclusions)}
}

// maxQueryChars is how much of a query counts.
const maxQueryChars = 2_000

// builder is one run of Build.
type builder struct {
	src      Source
	req      Request
	project  project.Project
	query    []string // distinct terms
	excluded func(path string) bool

	// What was read.
	sessions []project.Session
	chapters []project.Written // of the story
	found    []Message         // of the sessions searched, the best first
	gone     project.Forgotten // lines that were withdrawn

	shown map[shown]bool
}

// read reads what the sections show: the story, the withdrawals and the sessions in parallel, and then what was said in the sessions
// that fit the query.
func (b *builder) read(ctx context.Context, except ...string) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		b.chapters, err = project.Frontier(ctx, b.src.Projects, b.project)
		return err
	})
	g.Go(func() (err error) {
		b.gone, err = project.ForgottenIn(ctx, b.src.Projects, b.project)
		return err
	})
	g.Go(func() (err error) {
		if b.sessions, err = project.Sessions(ctx, b.src.Projects, b.project, b.query, except...); err != nil {
			return err
		}
		best := b.searched()
		if b.src.Past == nil || len(best) == 0 { // no query, or none resembles it
			return nil
		}
		b.found, err = b.src.Past.Said(ctx, best, b.req.Query, b.req.AsOf, maxRelevant)
		return err
	})
	return g.Wait()
}

// shown identifies a recorded text that a section shows.
type shown struct {
	conversation string
	seq          uint64
}

// newest returns the sequence of the newest event that can affect the context.
func (b *builder) newest() uint64 {
	seq := b.gone.Newest()
	for _, c := range b.chapters {
		seq = max(seq, c.Seq)
	}
	for _, s := range b.sessions {
		if seq = max(seq, s.LastSeq, s.TitleSeq); s.Insight != nil {
			seq = max(seq, s.Insight.Seq)
		}
		if s.Summary != nil {
			seq = max(seq, s.Summary.Seq)
		}
		for _, w := range s.Withdrawn {
			seq = max(seq, w.Seq)
		}
	}
	return seq
}

// section declares a section. Sections are filled in this order; the room that one leaves goes to the next ones.
type section struct {
	name, heading string
	share         int // percent of the budget
	collect       func(b *builder, room int) []window.Item
}

// The shares of a context. The state of the work comes first, because it says what the other sections are about. Files
// take the most, because an agent that begins looks for their names.
var sections = []section{
	{SectionStands, "## Where Things Stand", 30, collectStands},
	{SectionLearnt, "## What Was Learnt", 14, collectLearnt},
	{SectionWork, "## How to Work Here", 9, collectWork},
	{SectionFiles, "## Files", 30, collectFiles},
	{SectionRelevant, "## Relevant Past", 17, collectRelevant},
}

// storyShare is the most that a story may take of the budget, in percent. The other sections share the rest.
const storyShare = 12

// tell is fill preceded by the story of the project, if there is one.
func (b *builder) tell(list []section, heading string, budget int) []window.Part {
	story := b.fill([]section{{SectionStory, heading, 100, collectStory}}, budget*storyShare/100)
	if len(story[0].Items) == 0 {
		return b.fill(list, budget)
	}
	story[0].Share = storyShare
	return append(story, b.fill(list, budget-cost(heading, story[0].Items))...)
}

// fill gives each section its share and what the sections before it left. Items come in the order of
// their importance; the first that does not fit ends the section, unless the section would be empty: then the item
// is shortened.
func (b *builder) fill(list []section, budget int) []window.Part {
	var parts []window.Part
	spare := 0
	for i, s := range list {
		room := budget*s.share/100 + spare
		if i == len(list)-1 {
			room = budget
			for _, p := range parts {
				room -= cost(p.Heading, p.Items)
			}
		}
		left := window.Room(s.heading, room)
		items := s.collect(b, left)
		part := window.Part{Section: window.Section{Name: s.name, Heading: s.heading}, Share: s.share, Room: room}
		for n, it := range items {
			it = it.Measured()
			if n == 0 && it.Chars > left {
				all := len(it.Notes)
				if it = shortened(it, left); len(it.Notes) < all {
					part.Dropped = append(part.Dropped, window.Dropped{What: "notes", Count: all - len(it.Notes), Reason: "over the budget"})
				}
			}
			if it.Chars > left {
				part.Dropped = append(part.Dropped, window.Dropped{What: "items", Count: len(items) - n, Reason: "over the budget"})
				break
			}
			left -= it.Chars
			part.Items = append(part.Items, it)
			if it.Seq != 0 {
				b.shown[shown{it.Session, it.Seq}] = true
			}
		}
		spare = room - cost(s.heading, part.Items)
		parts = append(parts, part)
	}
	return parts
}

// minNote is the fewest characters of a note that say something.
const minNote = 40

// shortened returns an item without as many of its last notes as it takes to fit into left characters, and with only
// the beginning of the first note if need be. An item that cannot be made to fit is returned as it is.
func shortened(it window.Item, left int) window.Item {
	for n := len(it.Notes); n > 0; n-- {
		less := it
		less.Notes = slices.Clone(it.Notes[:n])
		less = less.Measured()
		if over := less.Chars - left; n == 1 && over > 0 {
			first := &less.Notes[0]
			first.Text = plain.Clip(first.Text, max(plain.Length(first.Text)-over, minNote))
			less = less.Measured()
		}
		if less.Chars <= left {
			return less
		}
	}
	return it
}

func cost(heading string, items []window.Item) int {
	if len(items) == 0 {
		return 0
	}
	n := 0
	for i := range items {
		n += items[i].Chars
	}
	return n + len(heading) + 3
}
