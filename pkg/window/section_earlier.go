package window

import (
	"context"

	"mneme.dev/mneme/pkg/graph"
)

// Earlier tells what earlier sessions of the conversation's project left. Package projects has it.
type Earlier interface {
	// Earlier returns what an agent needs most of it for a query, as items that take at most room characters together.
	// It never returns anything of the conversation itself.
	Earlier(ctx context.Context, query string, room int) ([]Item, error)
}

// The room of the earlier sessions, in characters: what the conversation leaves, within these limits.
const (
	minEarlier = 400 // less than this says nothing
	maxEarlier = 8_000
)

// Young reports whether a conversation may leave room for earlier sessions: its messages alone do not fill the budget.
func Young(c *graph.Conversation, maxChars int) bool { return c.TotalChars < maxChars }

// collectEarlier shows earlier sessions of the project in the room that a young conversation does not need itself.
func collectEarlier(ctx context.Context, b *builder, s section, room int) (f filled, err error) {
	left := Room(s.heading, min(room, maxEarlier))
	if b.src.Earlier == nil || left < minEarlier || !Young(&b.conversation, b.req.MaxChars) {
		return f, nil
	}
	f.items, err = b.src.Earlier.Earlier(ctx, b.query(), left)
	return f, err
}
