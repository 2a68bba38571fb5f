package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/window/projects"
)

// OfProjects returns the search over conversations of a project. It ranks by words and by built-in
// embeddings, which are stored with the messages. Nothing is cached, so it costs the same for every project.
func (c *Cache) OfProjects(r graph.RecallReader) projects.Past { return &pastOfProjects{c, r} }

type pastOfProjects struct {
	cache  *Cache
	reader graph.RecallReader
}

// searchedMessages limits how many messages of a session are ranked: the newest ones.
const searchedMessages = 144

// Said implements projects.Past.
func (p *pastOfProjects) Said(ctx context.Context, sessions []project.Session, query string, asOf uint64, limit int) ([]projects.Message, error) {
	var ranked recall.Conversations
	for i := range sessions {
		s := &sessions[i]
		bags, err := p.reader.Bags(ctx, s.ID, graph.BagQuery{From: s.Searched(), Before: min(asOf, s.LastSeq) + 1, Limit: searchedMessages})
		if errors.Is(err, graph.ErrNotFound) { // deleted, which the read model "projects" will know soon
			err = nil
		}
		if err != nil {
			return nil, err
		}
		said, _, err := decodeBags(bags)
		if err == nil {
			err = ranked.Add(nil, said)
		}
		if err != nil {
			return nil, fmt.Errorf("rank conversation %q: %w", s.ID.ID, err)
		}
	}
	q := recall.Query{Text: query}
	if p.cache.embedder != nil {
		q.Vector = embed(ranked.Unnamed(query))
	}
	var best []projects.Message
	for _, h := range ranked.Search(q) {
		for _, m := range h.Messages {
			if m.BM25 > 0 { // what shares no word with the query is rarely what an agent needs
				best = append(best, projects.Message{Conversation: sessions[h.Conversation].ID, Seq: m.Seq, Score: m.Score})
			}
		}
	}
	slices.SortStableFunc(best, func(a, b projects.Message) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Seq, a.Seq))
	})
	best = best[:min(len(best), limit)]
	if err := p.read(ctx, best); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(best, func(m projects.Message) bool { return m.Role == "" }), nil
}

// read adds the texts of messages, with one read for each conversation. Deleted messages get no text.
func (p *pastOfProjects) read(ctx context.Context, list []projects.Message) error {
	seqs := map[events.ConversationID][]uint64{}
	var ids []events.ConversationID
	for _, m := range list {
		if seqs[m.Conversation] == nil {
			ids = append(ids, m.Conversation)
		}
		seqs[m.Conversation] = append(seqs[m.Conversation], m.Seq)
	}
	for _, id := range ids {
		slices.Sort(seqs[id])
		found, err := p.reader.MessagesAt(ctx, id, seqs[id])
		if errors.Is(err, graph.ErrNotFound) { // deleted since it was ranked
			continue
		}
		if err != nil {
			return err
		}
		for _, m := range found {
			for i := range list {
				if list[i].Conversation == id && list[i].Seq == m.Seq {
					list[i].Text, list[i].Role, list[i].Turn = m.Content.Text, m.Role, m.Turn
				}
			}
		}
	}
	return nil
}
