package graph

import (
	"context"

	"mneme/events"
	"mneme/pkg/projection"
)

// Latest, as a sequence to read as of, means now.
const Latest = ^uint64(0)

// Reader answers questions about conversations, messages and tools. Every read
// sees one consistent state, and costs the same whatever the length of the
// conversation. What can be made of these reads is made by functions of this
// package ([Messages], [Turns], [Steps], [ToolCalls]), not by backends.
type Reader interface {
	projection.ReadStore
	SummaryReader
	RecallReader
	SearchReader
	CodeReader
	// Conversations lists a tenant's conversations, newest first. Deleted ones are
	// left out. A call examines at most [MaxExamined] conversations and answers about
	// [MaxPageBytes] of text: a page may hold fewer than asked for, even none, although
	// there are more.
	Conversations(ctx context.Context, tenant string, q ConversationQuery) (Page[Conversation], error)
	// Conversation reads one conversation as of a sequence, or ErrNotFound.
	Conversation(ctx context.Context, id events.ConversationID, asOf uint64) (Conversation, error)
	// Counts reads how far a conversation had come at each of these sequences, in
	// their order; the zero value before its first event.
	Counts(ctx context.Context, id events.ConversationID, seqs []uint64) ([]Counts, error)
	// Messages reads messages, newest first unless asked otherwise.
	Messages(ctx context.Context, id events.ConversationID, q MessageQuery) ([]Message, error)
	// Transcript reads messages, calls and results, newest first unless asked
	// otherwise.
	Transcript(ctx context.Context, id events.ConversationID, q TranscriptQuery) ([]Entry, error)
	// MessagesByID reads messages by message_id, as of a sequence.
	MessagesByID(ctx context.Context, id events.ConversationID, messages []Ref, asOf uint64) (map[Ref]Message, error)
	// Calls reads calls by tool_call_id, as of a sequence.
	Calls(ctx context.Context, id events.ConversationID, calls []Ref, asOf uint64) (map[Ref]ToolCall, error)
	// Results reads the results of calls, by tool_call_id, as of a sequence.
	Results(ctx context.Context, id events.ConversationID, calls []Ref, asOf uint64) (map[Ref]ToolResult, error)
}

// MessageQuery selects messages. A range of sequences is a state of the past too:
// Before S+1 is as of S.
type MessageQuery struct {
	From        uint64 // only sequences from this one on
	Before      uint64 // only sequences below this one; 0 means all
	Limit       int    // 0 means 50
	Role        string // only this role
	Turn        int    // only the user message that begins this turn, whatever Role says
	OldestFirst bool   // begin at the other end
}

// TranscriptQuery selects rows of all kinds, or calls alone.
type TranscriptQuery struct {
	From        uint64 // only sequences from this one on
	Before      uint64 // only sequences below this one; 0 means all
	Limit       int    // 0 means 50
	OldestFirst bool   // begin at the other end
	CallsOnly   bool   // neither messages nor results
}

// FilesReader answers questions about touched files.
type FilesReader interface {
	projection.ReadStore
	AccessReader
	// Files lists the files of a conversation as of a sequence, the newest access
	// first, each path and kind once. Accesses by failed calls are left out.
	// As of Latest the cost depends on limit only; as of an earlier sequence also on
	// how often files were accessed up to it.
	Files(ctx context.Context, id events.ConversationID, q FileQuery) ([]FileAccess, error)
	// LastSeq is the sequence of the newest event of a conversation that was applied,
	// 0 if there is none, with the repairs beside it, see Conversation.Repairs. One seek.
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
