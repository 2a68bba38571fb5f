package summary

import (
	"context"
	"errors"
)

// What a writer reads and writes, in characters: Unicode code points.
const (
	MaxText    = 1_500  // of a summary, as [Text] renders it
	MaxResult  = 2_000  // of a tool's arguments and of its result, as a writer reads them
	MaxMessage = 20_000 // of a message, as a writer reads it
)

// Kind is what an [Entry] is.
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
	Name   string // The speaker of a message, if it has one; the tool of a call or result.
	Text   string // The content, arguments as JSON, or result; results are cut at [MaxResult].
	Failed bool   // Of a result: the call failed.
}

// Input is what one summary is written from: Entries for level 1, Children for a higher
// one, both oldest first.
type Input struct {
	Level     int
	Entries   []Entry
	Children  []Draft
	Files     []string // That the range touched, newest first.
	Tools     []string // That the range called, the most called first.
	FirstTurn int
	LastTurn  int
}

// Draft is what a writer decides of a summary. The rest (files, tools, counts, ranges)
// is computed.
type Draft struct {
	Conversation string   // What was said. Never empty.
	Actions      string   // What was done; empty if nothing was.
	Findings     []string // Up to 5.
	Topics       []string // Up to 4.
}

// Usage is what a model was paid for one answer.
type Usage struct {
	Calls        int // Requests to the model, those that failed too.
	InputTokens  int64
	OutputTokens int64
}

// Writer writes summaries. It is safe for concurrent use.
//
// An error is [ErrUnavailable] if the same input may succeed later, and [ErrUnusable]
// if the model answered with something that is no summary. Usage is right in any case.
type Writer interface {
	Write(ctx context.Context, in Input) (Draft, Usage, error)
}

// The errors of a [Writer].
var (
	ErrUnavailable = errors.New("the model is not available")
	ErrUnusable    = errors.New("the model's answer is unusable")
)
