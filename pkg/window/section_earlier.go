package window

import (
	"context"
	"sync"

	"mneme.dev/mneme/pkg/graph"
)

// Earlier finds what earlier sessions of the conversation's project left. Package projects implements it.
type Earlier interface {
	// Gather reads what an agent may need for a query. fit returns the items that fit into a room: the most needed
	// ones, at most room characters together. None of them comes from the conversation itself. A context with several
	// budgets calls Gather once. It must be safe for use in parallel with other reads.
	Gather(ctx context.Context, query string) (fit func(room int) ([]Item, error), err error)
}

// The room of the earlier sessions, in characters: what the conversation leaves, within these limits.
const (
	minEarlier = 400 // less room than this shows nothing useful
	maxEarlier = 8_000
)

// Young reports whether a conversation may leave room for earlier sessions: its messages alone do not fill the budget.
func Young(c *graph.Conversation, maxChars int) bool { return c.TotalChars < maxChars }

// gathered is what was read of earlier sessions. The contexts of one request share it.
type gathered struct {
	once sync.Once
	done chan struct{}
	fit  func(room int) ([]Item, error)
	err  error
}

// begin starts reading, unless that has been done.
func (g *gathered) begin(ctx context.Context, from Earlier, query string) {
	g.once.Do(func() {
		go func() {
			defer close(g.done)
			g.fit, g.err = from.Gather(ctx, query)
		}()
	})
}

// collectEarlier shows earlier sessions of the project in the room that a young conversation does not need itself.
func collectEarlier(_ context.Context, b *builder, s section, room int) (f filled, err error) {
	left := Room(s.heading, min(room, maxEarlier))
	if b.gathered == nil || left < minEarlier {
		return f, nil
	}
	<-b.gathered.done
	if b.gathered.err == nil && b.gathered.fit != nil {
		f.items, err = b.gathered.fit(left)
		return f, err
	}
	return f, b.gathered.err
}
