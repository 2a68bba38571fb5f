package window

import (
	"context"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/recall"
)

// SearchQuery asks for messages of one conversation.
type SearchQuery struct {
	Conversation events.ConversationID
	Text         string
	AsOf         uint64 // a sequence; 0 means latest
	EmbeddedUpTo uint64 // see recall.Query; 0 means all
	Limit        int    // hits at most
	MaxChars     int    // of each hit's text
}

// Hit is a message found by a search.
type Hit struct {
	graph.Message
	Text  string // its content as shown: whole, or the part around the best passage
	Match Match
}

// Search finds the messages that match a text, best first, in the way a context does, and says how
// it ranked them. It returns graph.ErrNotFound as Build does.
func Search(ctx context.Context, src Source, q SearchQuery) (hits []Hit, found Found, err error) {
	found, err = src.Recall.Search(ctx, q.Conversation, recall.Query{Text: q.Text, AsOf: q.AsOf, EmbeddedUpTo: q.EmbeddedUpTo, Limit: q.Limit})
	if err != nil || len(found.Hits) == 0 {
		return nil, found, err
	}
	read, err := readHits(ctx, src.Graph, q.Conversation, found.Hits, q.MaxChars)
	if err != nil {
		return nil, found, err
	}
	for _, c := range read {
		hits = append(hits, Hit{Message: *c.message, Text: c.text, Match: *found.match(c.hit)})
	}
	return hits, found, nil
}
