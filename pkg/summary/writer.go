package summary

import (
	"context"
	"errors"
)

// Limits of what a writer reads and writes, in characters: Unicode code points.
const (
	MaxText    = 1_500  // of a summary, as rendered by [Text]
	MaxResult  = 2_000  // of a tool's arguments and of its result; the rest is cut
	MaxMessage = 20_000 // of a message; the rest is cut
)

// Kind is the kind of an [Entry].
type Kind string

// The kinds of entries.
const (
	KindUser      Kind = "user"
	KindAssistant Kind = "assistant"
	KindSystem    Kind = "system"
	KindCall      Kind = "call"
	KindResult    Kind = "result"
)

// Entry is a message, a tool call or a tool result inside the range of a summary.
type Entry struct {
	Seq    uint64
	Turn   int
	Kind   Kind
	Name   string // Speaker of a message, if any; tool of a call or result.
	Text   string // The content, arguments as JSON, or result; results are cut at [MaxResult].
	Failed bool   // For a result: the call failed.
}

// Input is what a summary is written from: Entries for level 1, Children for higher levels,
// both oldest first.
type Input struct {
	Entries  []Entry
	Children []Draft
	Files    []string // Files touched in the range, newest first.
	Tools    []string // Tools called in the range, most frequent first.
}

// Draft is the part of a summary that a writer decides. The rest (files, tools, counts,
// ranges) is computed.
type Draft struct {
	Conversation string   // What was said. Never empty.
	Actions      string   // What was done; empty if nothing was.
	Findings     []string // Up to 5.
	Topics       []string // Up to 4.
}

// TaskSession is the task of an [Insight]: what a session was about, what it found and what it left to do.
const TaskSession = "session"

// Insight is what a model says about a session as a whole. Its JSON is the answer of the event that records it.
type Insight struct {
	MainTopic   string   `json:"main_topic"` // Never empty.
	KeyFindings []string `json:"key_findings"`
	ActionItems []string `json:"action_items"` // What was left to do.
}

// Usage is the cost of one answer.
type Usage struct {
	Calls        int // Requests to the model, failed ones included.
	InputTokens  int64
	OutputTokens int64
}

// Writer writes summaries. It is safe for concurrent use.
//
// The error is [ErrUnavailable] if the same input may succeed later, and [ErrUnusable] if
// the model's answer is not a summary. Usage is valid even with an error.
type Writer interface {
	Write(ctx context.Context, in Input) (Draft, Usage, error)
}

// Errors of a [Writer].
var (
	ErrUnavailable = errors.New("the model is not available")
	ErrUnusable    = errors.New("the model's answer is unusable")
)
