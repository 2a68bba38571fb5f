package summary

import (
	"context"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
)

// Reader answers which conversations need summaries.
type Reader interface {
	projection.ReadStore
	// Conversation reads one conversation; LastSeq is 0 if it is unknown.
	Conversation(ctx context.Context, id events.ConversationID) (Conversation, error)
	// Marks reads marks after a sequence that level 1 does not cover, oldest first.
	Marks(ctx context.Context, id events.ConversationID, after uint64, limit int) ([]Mark, error)
	// Ranges reads the summaries of a level that end after a sequence, oldest first and
	// without revisions.
	Ranges(ctx context.Context, id events.ConversationID, level int, after uint64, limit int) ([]Taken, error)
	// Waiting lists conversations with something to do, sorted by tenant and id.
	Waiting(ctx context.Context, q WaitingQuery) ([]Conversation, error)
}

// WaitingQuery selects conversations that are not deleted and meet one of these conditions.
type WaitingQuery struct {
	Pending  int                   // minimum of [Conversation.Pending]
	Turns    int                   // minimum of turns without a summary; 0 ignores turns
	Untitled bool                  // see [Conversation.Untitled]
	After    events.ConversationID // only conversations sorted after this one
	Limit    int
}

// Store is the backend of the projection "summaries".
type Store interface {
	projection.Store[*Unit]
	Reader
}

// page is the page size for marks and ranges.
const page = 500

// Read reads as much of a conversation as needed, about two thresholds of marks, and finds
// what is due.
func Read(ctx context.Context, r Reader, id events.ConversationID, settings Settings, force bool) (c Conversation, plan Plan, due bool, err error) {
	if c, err = r.Conversation(ctx, id); err != nil || c.LastSeq == 0 || c.DeletedSeq != 0 {
		return c, plan, false, err
	}
	state := State{
		FirstSeq: c.FirstSeq, Ledger: c.Ledger, Turn: c.CoveredTurn, Chars: c.CoveredChars,
		Head: Mark{Seq: c.LastSeq + 1, Turn: c.Turn, Chars: c.Chars},
	}
	for i, level := range c.Ledger.Levels {
		state.Open = append(state.Open, nil)
		threshold := settings.Threshold(i + 2)
		if level.Open < threshold {
			continue
		}
		// Read up to the threshold, and one more summary.
		for chars, after := 0, level.Consolidated; chars < threshold; after = state.Open[i][len(state.Open[i])-1].Last {
			taken, err := r.Ranges(ctx, id, i+1, after, page)
			if err != nil {
				return c, plan, false, err
			}
			for _, t := range taken {
				if n := len(state.Open[i]); n > 0 {
					chars += counted(state.Open[i][n-1].Chars)
				}
				state.Open[i] = append(state.Open[i], t.Range)
			}
			if len(taken) < page {
				break
			}
		}
	}
	wanted := c.Chars-c.CoveredChars >= settings.Threshold(1) || settings.MaxTurns > 0 && c.Turn-c.CoveredTurn >= settings.MaxTurns || force
	for after := c.Ledger.Last(1); wanted; after = state.Marks[len(state.Marks)-1].Seq {
		marks, err := r.Marks(ctx, id, after, page)
		if err != nil {
			return c, plan, false, err
		}
		state.Marks, state.More = append(state.Marks, marks...), len(marks) == page
		if plan, due, wanted = Due(state, settings, force); due || !wanted {
			return c, plan, due, nil
		}
	}
	plan, due, _ = Due(state, settings, force)
	return c, plan, due, nil
}
