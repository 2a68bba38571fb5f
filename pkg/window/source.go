package window

import (
	"context"

	"mneme/events"
	"mneme/pkg/graph"
)

// Graph is what is read of conversations; every [graph.Reader] has it.
type Graph interface {
	Conversation(ctx context.Context, id events.ConversationID, asOf uint64) (graph.Conversation, error)
	Messages(ctx context.Context, id events.ConversationID, q graph.MessageQuery) ([]graph.Message, error)
	Transcript(ctx context.Context, id events.ConversationID, before uint64, limit int) ([]graph.Entry, error)
	Results(ctx context.Context, id events.ConversationID, callIDs []string, asOf uint64) (map[string]graph.ToolResult, error)
	Calls(ctx context.Context, id events.ConversationID, callIDs []string, asOf uint64) (map[string]graph.ToolCall, error)
}

// Files is what is read of touched files; every [graph.FilesReader] has it.
type Files interface {
	Files(ctx context.Context, id events.ConversationID, q graph.FileQuery) ([]graph.FileAccess, error)
}

// Source is what a context is built from. Files may be nil: then there is no
// section of files.
type Source struct {
	Graph Graph
	Files Files
}

// messages reads messages below a sequence, newest first.
func (b *builder) messages(ctx context.Context, role string, before uint64, limit int) ([]graph.Message, error) {
	return b.src.Graph.Messages(ctx, b.req.Conversation, graph.MessageQuery{Before: before, Limit: limit, Role: role})
}

// oldestPage is how many messages are read at once when the oldest is near.
const oldestPage = 8

// oldest finds the first message of a role, or of any for "". Reads go newest
// first, so it searches for a sequence with only this message below: from the
// conversation's first sequence on by growing steps, then by halving. Each probe
// reads one row; nil if there is no such message.
func (b *builder) oldest(ctx context.Context, role string) (*graph.Message, error) {
	lo, hi := b.conversation.FirstSeq, b.end // none below lo, at least one below hi if there is any
	found := false
	for step := uint64(oldestPage); lo < hi; step *= 4 {
		probe := min(lo+step, hi)
		if found {
			probe = lo + max(1, (hi-lo)/2)
		}
		list, err := b.messages(ctx, role, probe, 1)
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			lo = probe
			continue
		}
		m := &list[0]
		n := m.N
		if role == "user" {
			n = m.Turn
		}
		switch {
		case n <= 1:
			return m, nil
		case n <= oldestPage:
			if list, err = b.messages(ctx, role, m.Seq, n-1); err != nil || len(list) == 0 {
				return nil, err
			}
			return &list[len(list)-1], nil
		}
		found, hi = true, m.Seq
	}
	return nil, nil
}
