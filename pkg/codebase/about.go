package codebase

import (
	"cmp"
	"context"
	"path"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// About is a conversation with messages that name a scope.
type About struct {
	graph.Conversation
	Mentions []Mention // newest first, at most graph.MaxMentionsEach
}

// Mention is a message that names a scope.
type Mention struct {
	Seq       uint64
	Turn      int
	MessageID string
	Reference *events.Reference // if the message declares it
	Written   string            // else as its text has it
}

// Conversations finds the conversations of a tenant with messages that name a scope, newest mention first: by declared
// references, and by texts of user and assistant. It examines the texts that a search over all conversations finds for
// the scope's name and file. With q.Only, both find only those conversations. more means that there may be more.
func (n *Naming) Conversations(ctx context.Context, g graph.Reader, tenant string, q graph.CandidateQuery) (list []About, more bool, err error) {
	declared := graph.CodeQuery{File: path.Base(n.scope.Path), Matches: n.Refers, Limit: maxAbout, Only: q.Only}
	referring, err := g.Referring(ctx, tenant, declared)
	if err != nil {
		return nil, false, err
	}
	q.Terms, q.Keep = n.Terms(), func(m *graph.Message) bool { return n.In(m.Seq, m.Content.Text) != "" }
	candidates, err := g.Candidates(ctx, tenant, q)
	if err != nil {
		return nil, false, err
	}
	found := map[string]*About{}
	for i := range candidates {
		c := &candidates[i]
		if mentions, err := n.said(ctx, g, c); err != nil {
			return nil, false, err
		} else if len(mentions) > 0 {
			found[c.ID.ID] = &About{c.Conversation, mentions}
		}
	}
	asked := referring.Conversations
	for id := range found {
		if !slices.ContainsFunc(asked, func(m graph.Mentioned) bool { return m.ID == id }) {
			asked = append(asked, graph.Mentioned{ID: id, Seq: graph.Latest})
		}
	}
	referred, err := g.References(ctx, tenant, asked, declared)
	if err != nil {
		return nil, false, err
	}
	for i := range referred {
		c := &referred[i]
		about := found[c.ID.ID]
		if about == nil {
			about = &About{Conversation: c.Conversation}
			found[c.ID.ID] = about
		}
		for _, r := range c.References {
			about.Mentions = append(about.Mentions, Mention{Seq: r.Seq, Turn: r.Turn, MessageID: r.MessageID, Reference: &r.Reference})
		}
	}
	for _, about := range found {
		if about.Mentions = newest(about.Mentions); len(about.Mentions) > 0 { // or its rows have changed since
			list = append(list, *about)
		}
	}
	slices.SortFunc(list, func(a, b About) int { return cmp.Compare(b.Mentions[0].Seq, a.Mentions[0].Seq) })
	return list, referring.More || len(candidates) == graph.MaxCandidates, nil
}

// maxAbout is how many conversations with references are examined.
const maxAbout = 100

// said returns which messages of a candidate name the scope.
func (n *Naming) said(ctx context.Context, g graph.Reader, c *graph.Candidate) (list []Mention, err error) {
	var seqs []uint64
	for _, bag := range c.Said {
		seqs = append(seqs, bag.Seq)
	}
	messages, err := g.MessagesAt(ctx, c.ID, seqs)
	for _, m := range messages {
		if written := n.In(m.Seq, m.Content.Text); written != "" {
			list = append(list, Mention{Seq: m.Seq, Turn: m.Turn, MessageID: m.MessageID, Written: written})
		}
	}
	return list, err
}

// newest sorts mentions, prefers a message's declared references to its text, and cuts the list.
func newest(list []Mention) []Mention {
	declared := map[uint64]bool{}
	for _, m := range list {
		declared[m.Seq] = declared[m.Seq] || m.Reference != nil
	}
	list = slices.DeleteFunc(list, func(m Mention) bool { return m.Reference == nil && declared[m.Seq] })
	slices.SortStableFunc(list, func(a, b Mention) int { return cmp.Compare(b.Seq, a.Seq) })
	return list[:min(len(list), graph.MaxMentionsEach)]
}
