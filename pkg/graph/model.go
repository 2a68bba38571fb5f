package graph

import (
	"errors"
	"slices"
	"unicode/utf8"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/plain"
)

// ErrNotFound means that the conversation is unknown or deleted, or began after the
// sequence of the read.
var ErrNotFound = errors.New("not found")

// MaxBodyBytes is how much of one text a read model keeps. The log has the whole text;
// get it by its sequence.
const MaxBodyBytes = 64 << 10

// maxNameBytes is how much of a name (of a model, speaker or folder) a read model keeps.
const maxNameBytes = 4 << 10

// Body is a text of any length in the form that a read model keeps: with a name, such as "[image/png, 60 kB]", in place of each
// image or other file in it, see [plain.NameData].
type Body struct {
	Text  string        // the text with names, or its first MaxBodyBytes cut at a character
	Bytes int           // of the whole text with names
	Chars int           // Unicode code points of the whole text with names
	Hash  events.Digest // of the recorded text, if that is not Text
}

// NewBody returns the kept form of a text.
func NewBody(text string) Body {
	named := plain.NameData(text)
	b := Body{Bytes: len(named), Chars: utf8.RuneCountInString(named), Text: cut(named, MaxBodyBytes)}
	if len(b.Text) < len(text) {
		b.Hash = events.DigestOf(text)
	}
	return b
}

// kept returns the kept form of a text that is no body.
func kept(text string) string { return cut(plain.NameData(text), MaxBodyBytes) }

// cut shortens a text to a number of bytes, at a character boundary.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// name returns the kept form of a name.
func name(text string) string { return cut(text, maxNameBytes) }

// beginning returns the kept form of a list: as many members as fit into MaxBodyBytes,
// counting some overhead for each.
func beginning[T any](list []T, size func(T) int) []T {
	total := 0
	for i, v := range list {
		if total += size(v) + 8; total > MaxBodyBytes {
			return list[:i:i]
		}
	}
	return list
}

func beginningOfTexts(list []string) []string {
	return slices.Clone(beginning(list, func(text string) int { return len(text) }))
}

// Whole reports whether Text is the whole text with names.
func (b Body) Whole() bool { return len(b.Text) == b.Bytes }

// Recorded reports whether Text is the whole text as it was recorded.
func (b Body) Recorded() bool { return b.Hash == events.Digest{} }

// Description is the metadata of a conversation. Each change is kept as a version.
type Description struct {
	Title           string
	Tags            []string
	Status          string // active, archived
	Agent           string
	Model           string
	Cwd             string
	Project         string
	Profile         string
	MaxContextChars int
	BranchedFrom    *events.BranchedAt
}

// Size returns about how many bytes of text it holds.
func (d *Description) Size() int {
	n := len(d.Title) + len(d.Agent) + len(d.Model) + len(d.Cwd) + len(d.Project) + len(d.Profile)
	for _, tag := range d.Tags {
		n += len(tag)
	}
	return n
}

// Conversation is a conversation with its counts. Read as of an earlier sequence,
// CreatedAt and UpdatedAt are right if all of its events have a time, or none has; if only
// some do, they can be empty.
type Conversation struct {
	ID events.ConversationID
	Description
	Counts
	CreatedAt  string // producer's time of the first event that has one, RFC 3339, "" if none
	UpdatedAt  string // of the last event that has one
	FirstSeq   uint64
	DeletedSeq uint64 // 0 unless deleted
	// Repairs counts repaired conversations: those of the conversation's partition, or more. When it grows, the rows
	// may have changed although the counts are the same. Only Reader.Conversation sets it.
	Repairs uint64
}

// Counts says how far a conversation has come. Counts only grow.
type Counts struct {
	MessageCount    int
	TurnCount       int // user messages
	StepCount       int // assistant messages
	ToolCallCount   int
	ToolResultCount int
	SummaryCount    int // revisions included
	CondensedCount  int // condensations of tool results
	TotalChars      int // code points of all message contents
	LastSeq         uint64
}

// Position is where a row is in its conversation.
type Position struct {
	Seq  uint64
	N    int // number among the rows of its kind in the conversation, from 1
	Turn int // number of user messages so far
	Step int // number of assistant messages so far
	// Depth is 0 for the conversation's own rows. A branch has rows of its parent at 1,
	// of the parent's parent at 2, and so on (see Lineage).
	Depth int
}

// Origin is the event that made a row.
type Origin struct {
	EventID string
	Source  string
	Time    string // the producer's, RFC 3339, "" if none
	// InheritedFrom is the conversation that a branch inherited the row from, "" if it is its
	// own (see Position.Depth).
	InheritedFrom string
}

// Message is one message. CumChars counts the code points of the conversation's messages
// up to and including it.
type Message struct {
	Position
	Origin
	MessageID  string
	Role       string
	Content    Body
	Reasoning  Body
	Speaker    string
	Session    string
	Model      string
	Usage      string // JSON, "" if there is none or it is over MaxBodyBytes
	Via        string // the payload's origin, for example compaction
	References []events.Reference
	CumChars   int
}

// Bytes returns about how many bytes of text it holds.
func (m *Message) Bytes() int {
	n := len(m.Content.Text) + len(m.Reasoning.Text) + len(m.Usage) + len(m.Speaker) + len(m.Session) + len(m.Model) + len(m.Via)
	for _, r := range m.References {
		n += len(r.File) + len(r.Name)
	}
	return n
}

// ToolCall is one tool call. MessageID may name a message that arrived later or never.
type ToolCall struct {
	Position
	Origin
	ToolCallID string
	MessageID  string
	ToolName   string
	Arguments  Body // JSON
	Iteration  int
}

// ToolResult is the result of a call. ToolCallID may name a call that arrived later
// or never. Success nil means unknown.
type ToolResult struct {
	Position
	Origin
	ToolCallID string
	Success    *bool
	Result     Body
	Error      string
	DurationMS *float64
}

// Entry is a row of the transcript: exactly one of its pointers is set.
type Entry struct {
	Message *Message
	Call    *ToolCall
	Result  *ToolResult
}

// Position returns the position of the entry's row.
func (e Entry) Position() Position {
	switch {
	case e.Message != nil:
		return e.Message.Position
	case e.Call != nil:
		return e.Call.Position
	default:
		return e.Result.Position
	}
}

// EventID returns the id of the event that made the entry's row.
func (e Entry) EventID() string {
	switch {
	case e.Message != nil:
		return e.Message.EventID
	case e.Call != nil:
		return e.Call.EventID
	default:
		return e.Result.EventID
	}
}

// Bytes returns about how many bytes of text it holds.
func (e Entry) Bytes() int {
	switch {
	case e.Message != nil:
		return e.Message.Bytes()
	case e.Call != nil:
		return len(e.Call.Arguments.Text)
	default:
		return len(e.Result.Result.Text) + len(e.Result.Error)
	}
}

// FileAccess is a file with its newest access.
type FileAccess struct {
	Path  string
	Kind  string // read, write, search, list
	Tool  string
	Turn  int
	Seq   uint64
	Count int // accesses of this path with this kind, failed calls left out
}
