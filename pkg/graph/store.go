package graph

import (
	"context"

	"mneme/events"
	"mneme/pkg/projection"
)

// Latest, as a sequence to read as of, means now.
const Latest = ^uint64(0)

// Reader answers questions about conversations, messages and tools. Every read
// sees one consistent state. Newest-first reads cost the same whatever the length
// of the conversation.
type Reader interface {
	projection.ReadStore
	// Conversations lists a tenant's conversations, the one with the newest event
	// first. Deleted ones are left out.
	Conversations(ctx context.Context, tenant string, q ConversationQuery) ([]Conversation, error)
	// Conversation reads one conversation as of a sequence, or ErrNotFound.
	Conversation(ctx context.Context, id events.ConversationID, asOf uint64) (Conversation, error)
	// Messages reads messages with a sequence below q.Before, newest first unless
	// asked otherwise.
	Messages(ctx context.Context, id events.ConversationID, q MessageQuery) ([]Message, error)
	// Transcript reads messages, calls and results with a sequence below before,
	// newest first, at most limit of them.
	Transcript(ctx context.Context, id events.ConversationID, before uint64, limit int) ([]Entry, error)
	// Results reads the results of calls, by tool_call_id, as of a sequence.
	Results(ctx context.Context, id events.ConversationID, callIDs []string, asOf uint64) (map[string]ToolResult, error)
	// Calls reads calls by tool_call_id, as of a sequence.
	Calls(ctx context.Context, id events.ConversationID, callIDs []string, asOf uint64) (map[string]ToolCall, error)
}

// ConversationQuery selects conversations. The zero value selects the newest 50.
type ConversationQuery struct {
	Limit  int    // 0 means 50
	Before uint64 // only those whose newest event has a lower sequence; 0 means all
	Status string // only this status
}

// MessageQuery selects messages.
type MessageQuery struct {
	Before      uint64 // a sequence; 0 means all
	Limit       int    // 0 means 50
	Role        string // only this role
	OldestFirst bool   // begin at the other end
}

// FilesReader answers questions about touched files.
type FilesReader interface {
	projection.ReadStore
	// Files lists the files of a conversation as of a sequence, the newest access
	// first, each path and kind once. Accesses by failed calls are left out.
	// As of Latest the cost depends on limit only; as of an earlier sequence also on
	// how often files were accessed up to it.
	Files(ctx context.Context, id events.ConversationID, q FileQuery) ([]FileAccess, error)
}

// FileQuery selects file accesses.
type FileQuery struct {
	AsOf  uint64 // 0 means Latest
	Limit int    // rows of path and kind; 0 means 200
}

// Store is the backend of the projection "graph".
type Store interface {
	projection.Store[*Unit]
	Reader
}

// FilesStore is the backend of the projection "files".
type FilesStore interface {
	projection.Store[*FilesUnit]
	FilesReader
}
