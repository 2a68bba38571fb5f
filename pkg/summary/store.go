package summary

import (
	"context"

	"mneme/events"
	"mneme/pkg/projection"
)

// Reader answers what is to be summarised.
type Reader interface {
	projection.ReadStore
	// Conversation reads one conversation; it has no LastSeq if it is unknown.
	Conversation(ctx context.Context, id events.ConversationID) (Conversation, error)
	// Marks reads marks that level 1 does not cover, behind a sequence, oldest first.
	Marks(ctx context.Context, id events.ConversationID, after uint64, limit int) ([]Mark, error)
	// Ranges reads the summaries of a level that end behind a sequence, oldest first,
	// revisions left out.
	Ranges(ctx context.Context, id events.ConversationID, level int, after uint64, limit int) ([]Taken, error)
	// Waiting lists conversations with something to do, sorted by tenant and id.
	Waiting(ctx context.Context, q WaitingQuery) ([]Conversation, error)
}

// WaitingQuery selects conversations that are not deleted and meet one of these.
type WaitingQuery struct {
	Pending  int                   // characters at least, see [Conversation.Pending]
	Turns    int                   // that no summary covers, at least; 0 means no
	Untitled bool                  // see [Conversation.Untitled]
	After    events.ConversationID // only those behind this one
	Limit    int
}

// Store is the backend of the projection "summaries".
type Store interface {
	projection.Store[*Unit]
	Reader
}

// page is how many marks or ranges are read at once.
const page = 500

// Read reads the state of a conversation, as far as it is needed to say what is due: as
// many marks as make up a threshold or two.
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
		// A threshold, and the one behind it.
		for chars, after := 0, level.Consolidated; chars < threshold; after = state.Open[i][len(state.Open[i])-1].Last {
			taken, err := r.Ranges(ctx, id, i+1, after, page)
			if err != nil {
				return c, plan, false, err
			}
			for _, t := range taken {
				if n := len(state.Open[i]); n > 0 {
					chars += state.Open[i][n-1].Chars
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
