package window

import (
	"context"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/window/code"
)

// Graph is what a context reads of conversations; every [graph.Reader] has it.
type Graph interface {
	Conversation(ctx context.Context, id events.ConversationID, asOf uint64) (graph.Conversation, error)
	Messages(ctx context.Context, id events.ConversationID, q graph.MessageQuery) ([]graph.Message, error)
	Transcript(ctx context.Context, id events.ConversationID, q graph.TranscriptQuery) ([]graph.Entry, error)
	Results(ctx context.Context, id events.ConversationID, calls []graph.Ref, asOf uint64) (map[graph.Ref]graph.ToolResult, error)
	Calls(ctx context.Context, id events.ConversationID, calls []graph.Ref, asOf uint64) (map[graph.Ref]graph.ToolCall, error)
	Summaries(ctx context.Context, id events.ConversationID, q graph.SummaryQuery) ([]graph.Summary, error)
	MessagesAt(ctx context.Context, id events.ConversationID, seqs []uint64) ([]graph.Message, error)
	Condensations(ctx context.Context, id events.ConversationID, calls []graph.Ref, asOf uint64) (map[graph.Ref]graph.Condensed, error)
}

// Files is what a context reads of touched files; every [graph.FilesReader] has it.
type Files interface {
	Files(ctx context.Context, id events.ConversationID, q graph.FileQuery) ([]graph.FileAccess, error)
}

// Source is what a context is built from. With nil Files there is no section of files; with nil
// Recall there is no search.
type Source struct {
	Graph Graph
	Files Files

	Recall   Recall
	Reranker Reranker // nil for none

	Earlier Earlier // nil for none

	Project ProjectCode // nil for none
}

// ProjectCode searches the code of the conversation's project.
type ProjectCode interface {
	// Search returns the code that answers a query as of a sequence, nil if no index counts for the conversation. A
	// context with several budgets asks for the same several times. It must be safe for use in parallel with other
	// reads.
	Search(ctx context.Context, query string, asOf uint64) (*code.Indexed, error)
}
