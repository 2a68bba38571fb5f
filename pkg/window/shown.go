package window

import (
	"context"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// shownGraph reads rows with the texts that a context shows, see [graph.Body.Shown]. Only the messages that MessagesAt
// reads have the recorded ones, because hits are places in these.
type shownGraph struct{ Graph }

// Messages implements Graph.
func (g shownGraph) Messages(ctx context.Context, id events.ConversationID, q graph.MessageQuery) ([]graph.Message, error) {
	list, err := g.Graph.Messages(ctx, id, q)
	for i := range list {
		list[i] = list[i].Shown()
	}
	return list, err
}

// Transcript implements Graph.
func (g shownGraph) Transcript(ctx context.Context, id events.ConversationID, q graph.TranscriptQuery) ([]graph.Entry, error) {
	list, err := g.Graph.Transcript(ctx, id, q)
	for i := range list {
		list[i] = list[i].Shown()
	}
	return list, err
}

// Results implements Graph.
func (g shownGraph) Results(ctx context.Context, id events.ConversationID, calls []graph.Ref, asOf uint64) (map[graph.Ref]graph.ToolResult, error) {
	found, err := g.Graph.Results(ctx, id, calls, asOf)
	for ref, r := range found {
		found[ref] = r.Shown()
	}
	return found, err
}

// Calls implements Graph.
func (g shownGraph) Calls(ctx context.Context, id events.ConversationID, calls []graph.Ref, asOf uint64) (map[graph.Ref]graph.ToolCall, error) {
	found, err := g.Graph.Calls(ctx, id, calls, asOf)
	for ref, c := range found {
		found[ref] = c.Shown()
	}
	return found, err
}
