package projects

import (
	"context"

	"mneme.dev/mneme/pkg/window"
)

// Document is one kind of knowledge about a project, as a file.
type Document struct {
	Name string // of the file
	Text string // Markdown, without a frame
}

// documentChars is the budget of each document.
const documentChars = 8_000

// documents are lists of sections that have the whole budget.
var documents = []struct {
	file     string
	sections []section
}{
	{"story-so-far.md", []section{{SectionStory, "## Story So Far", 50, collectStory}, {SectionStands, "## Where Things Stand", 100, collectStands}}},
	{"open-ends.md", []section{{"open_ends", "## Open Ends", 100, collectOpen}}},
	{"what-was-learnt.md", []section{{SectionLearnt, "## What Was Learnt", 100, collectLearnt}}},
	{"how-to-work-here.md", []section{{SectionWork, "## How to Work Here", 100, collectWork}}},
	{"files.md", []section{{SectionFiles, "## Files", 100, collectFiles}}},
}

// Documents makes the documents of a project, in a fixed order and without empty ones, and returns the sequence as of
// which they were made. A project without conversations has none.
func Documents(ctx context.Context, src Source, req Request) ([]Document, uint64, error) {
	b, err := open(ctx, src, req)
	if err != nil {
		return nil, 0, err
	}
	var list []Document
	for _, d := range documents {
		clear(b.shown) // this document may show what another one shows
		parts := b.fill(d.sections, documentChars)
		if made := window.Compose(window.Context{Tenant: req.Tenant, Strategy: window.StrategyProject, MaxChars: documentChars}, parts); len(made.Sections) > 0 {
			list = append(list, Document{d.file, window.SectionsMarkdown(made.Sections)})
		}
	}
	return list, b.newest(), nil
}

// collectOpen shows what the newest sessions left open.
func collectOpen(b *builder, _ int) (list []window.Item) {
	for i := range b.sessions {
		s := &b.sessions[i]
		it := window.Item{Kind: window.KindNote, Session: s.ID.ID, Turn: s.Turns, Seq: s.LastSeq, Label: b.head(s)}
		for _, o := range b.leftOpen(s) {
			it.Notes = append(it.Notes, window.Note{Label: "Open", Text: clip(o, maxOpen)})
		}
		if len(it.Notes) > 0 {
			list = append(list, it)
		}
	}
	return list
}
