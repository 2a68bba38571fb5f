package graph

import (
	"context"
	"slices"

	"mneme.dev/mneme/events"
)

// Summary is a summary of a range of its conversation. The ranges of one level follow
// each other without overlap or gap, and a range of level n+1 covers whole ranges of level
// n (see package summary). A range can have several revisions.
//
// All revisions of a range, future ones included, leave the frontier together, and each
// revision supersedes all earlier ones.
type Summary struct {
	Position
	Origin
	SummaryID  string
	Level      int
	FirstSeq   uint64 // of the range, in the log
	LastSeq    uint64
	FirstTurn  int
	LastTurn   int
	Children   []string // summary_ids of the level below, as many as fit into MaxBodyBytes
	Supersedes string   // the summary_id of an older revision, "" if it is the first

	// Each text is cut at MaxBodyBytes; each list holds what fits into that.
	Conversation string
	Actions      string
	Findings     []string
	Topics       []string
	Files        []string
	Tools        []string

	TurnCount      int
	Method         string // llm, extractive
	FallbackReason string
	Model          string
	PromptHash     string
	CharsIn        int
	CharsOut       int

	// ConsolidatedSeq is the sequence of the summary that was the first to consolidate
	// its range, 0 if it is on the frontier. For a later revision it is below Seq.
	ConsolidatedSeq uint64
	// SupersededSeq is the sequence of the next revision of its range, 0 if there is none.
	SupersededSeq uint64
}

// Bytes returns about how many bytes of text it holds.
func (s *Summary) Bytes() int {
	n := len(s.Conversation) + len(s.Actions)
	for _, list := range [][]string{s.Findings, s.Topics, s.Files, s.Tools, s.Children} {
		for _, text := range list {
			n += len(text)
		}
	}
	return n
}

// AsOf resets ConsolidatedSeq and SupersededSeq if they are after a sequence.
func (s *Summary) AsOf(seq uint64) {
	if s.ConsolidatedSeq > seq {
		s.ConsolidatedSeq = 0
	}
	if s.SupersededSeq > seq {
		s.SupersededSeq = 0
	}
}

// Condensed is a shorter text for the result of a call. If a result has several, the
// newest applies.
type Condensed struct {
	Position
	Origin
	ToolCallID string
	Content    Body
	Model      string
	PromptHash string
	CharsIn    int
	CharsOut   int
}

// Ref returns the id of the call whose result was condensed.
func (c *Condensed) Ref() Ref { return Ref{c.Depth, c.ToolCallID} }

// SummaryReader reads summaries and condensations. It returns ErrNotFound like Reader.
type SummaryReader interface {
	// Summaries reads summaries in the order of their own sequences, newest first by default. Superseded ones that are
	// left out cost as much as returned ones. A read of the frontier costs in proportion to its size, not to the number
	// of summaries.
	Summaries(ctx context.Context, id events.ConversationID, q SummaryQuery) ([]Summary, error)
	// SummariesByID reads summaries by summary_id as of a sequence, including older revisions.
	SummariesByID(ctx context.Context, id events.ConversationID, summaries []string, asOf uint64) (map[string]Summary, error)
	// Condensations reads the newest condensations of results, by the tool_call_ids of
	// their calls, as of a sequence.
	Condensations(ctx context.Context, id events.ConversationID, calls []Ref, asOf uint64) (map[Ref]Condensed, error)
}

// SummaryQuery selects summaries. From and Before refer to the sequences of the summaries
// themselves, not to their ranges.
type SummaryQuery struct {
	AsOf        uint64 // 0 means Latest
	Level       int    // only this level; 0 means all
	Frontier    bool   // only summaries that are not consolidated
	Superseded  bool   // include older revisions
	From        uint64 // only sequences from this one on
	Before      uint64 // only sequences below this one; 0 means all
	Limit       int    // 0 means 50
	OldestFirst bool   // begin at the other end
}

// Bounds returns the sequence to read as of, the first sequence and the one after the
// last, each at most limit, the highest value that the store can compare.
func (q *SummaryQuery) Bounds(limit uint64) (asOf, from, before uint64) {
	if asOf = min(q.AsOf, limit-1); asOf == 0 {
		asOf = limit - 1
	}
	if before = asOf + 1; q.Before != 0 {
		before = min(before, q.Before)
	}
	return asOf, min(q.From, limit), before
}

// Page sorts sequences into the order of the query and cuts them to its limit.
func (q *SummaryQuery) Page(seqs []uint64) []uint64 {
	slices.Sort(seqs)
	if !q.OldestFirst {
		slices.Reverse(seqs)
	}
	n := q.Limit
	if n <= 0 {
		n = 50
	}
	return seqs[:min(n, len(seqs))]
}
