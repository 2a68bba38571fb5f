package graph

import (
	"context"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
)

// Latest is the sequence to read as of for the current state.
const Latest = ^uint64(0)

// Reader reads conversations, messages and tool calls. Every read sees one consistent
// state, and its cost does not depend on the length of the conversation. Lists made from
// these reads ([Messages], [Turns], [Steps], [ToolCalls]) are functions of this package,
// not of backends.
type Reader interface {
	projection.ReadStore
	SummaryReader
	RecallReader
	SearchReader
	CodeReader
	// Conversations lists a tenant's conversations, newest first. Deleted ones are
	// left out. A call examines at most [MaxExamined] conversations and returns about
	// [MaxPageBytes] of text: a page may hold fewer than requested, even none, although
	// there are more.
	Conversations(ctx context.Context, tenant string, q ConversationQuery) (Page[Conversation], error)
	// Conversation reads one conversation as of a sequence, or ErrNotFound.
	Conversation(ctx context.Context, id events.ConversationID, asOf uint64) (Conversation, error)
	// Counts reads the counts of a conversation as of each of these sequences, in
	// their order; the zero value before its first event.
	Counts(ctx context.Context, id events.ConversationID, seqs []uint64) ([]Counts, error)
	// Messages reads messages, newest first by default.
	Messages(ctx context.Context, id events.ConversationID, q MessageQuery) ([]Message, error)
	// Transcript reads messages, calls and results, newest first by
	// default.
	Transcript(ctx context.Context, id events.ConversationID, q TranscriptQuery) ([]Entry, error)
	// MessagesByID reads messages by message_id, as of a sequence.
	MessagesByID(ctx context.Context, id events.ConversationID, messages []Ref, asOf uint64) (map[Ref]Message, error)
	// Calls reads calls by tool_call_id, as of a sequence.
	Calls(ctx context.Context, id events.ConversationID, calls []Ref, asOf uint64) (map[Ref]ToolCall, error)
	// Results reads the results of calls, by tool_call_id, as of a sequence.
	Results(ctx context.Context, id events.ConversationID, calls []Ref, asOf uint64) (map[Ref]ToolResult, error)
}

// MessageQuery selects messages. Before S+1 reads as of S.
type MessageQuery struct {
	From        uint64 // only sequences from this one on
	Before      uint64 // only sequences below this one; 0 means all
	Limit       int    // 0 means 50
	Role        string // only this role
	Turn        int    // only the user message that begins this turn, whatever Role says
	OldestFirst bool   // instead of newest first
}

// TranscriptQuery selects rows of all kinds, or calls alone.
type TranscriptQuery struct {
	From        uint64 // only sequences from this one on
	Before      uint64 // only sequences below this one; 0 means all
	Limit       int    // 0 means 50
	OldestFirst bool   // instead of newest first
	CallsOnly   bool   // neither messages nor results
}

// FilesReader reads touched files.
type FilesReader interface {
	projection.ReadStore
	AccessReader
	// Files lists the files of a conversation as of a sequence, the newest access
	// first, each path and kind once. Accesses by failed calls are left out.
	// As of Latest the cost depends only on the limit; as of an earlier sequence also on
	// the number of accesses up to it.
	Files(ctx context.Context, id events.ConversationID, q FileQuery) ([]FileAccess, error)
	// LastSeq reads the sequence of the newest applied event of a conversation,
	// 0 if there is none, and its repairs, see Conversation.Repairs. It is one index seek.
	LastSeq(ctx context.Context, id events.ConversationID) (seq, repairs uint64, err error)
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
