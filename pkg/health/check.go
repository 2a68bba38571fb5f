package health

import (
	"context"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// MaxRows is how many rows Check reads: messages, calls and results.
const MaxRows = 50_000

// MaxFindings is how many findings a report has, the first ones.
const MaxFindings = 1_000

// pageRows is how many rows are read at once.
const pageRows = 100

// Report is what is odd about a conversation, or about a part of it.
type Report struct {
	Conversation graph.Conversation
	Findings     []Finding // in log order, at most MaxFindings, not nil
	Found        int       // how many findings there are
	Rows         int       // how many rows were examined
	// Next is the sequence from which another check would continue, if the conversation is longer than one
	// check reads; 0 if it is not. The rules do not see across the border.
	Next uint64
}

// Check reads up to MaxRows rows of a conversation from a sequence on, as of another, and applies the
// rules. It returns [graph.ErrNotFound] as the reader does.
func Check(ctx context.Context, r graph.Reader, id events.ConversationID, from, asOf uint64) (Report, error) {
	return check(ctx, r, id, from, asOf, MaxRows)
}

func check(ctx context.Context, r graph.Reader, id events.ConversationID, from, asOf uint64, maxRows int) (Report, error) {
	c, err := r.Conversation(ctx, id, asOf)
	if err != nil {
		return Report{}, err
	}
	report := Report{Conversation: c}
	checker := New(c.Cwd)
	for {
		rows, err := r.Transcript(ctx, id, graph.TranscriptQuery{From: from, Before: c.LastSeq + 1, Limit: pageRows, OldestFirst: true})
		if err != nil {
			return Report{}, err
		}
		for _, row := range rows {
			if report.Rows == maxRows {
				report.Next = row.Position().Seq
				checker.asked = nil // the answer may follow
				return report.with(checker), nil
			}
			checker.Add(row)
			report.Rows++
			from = row.Position().Seq + 1
		}
		if len(rows) < pageRows {
			return report.with(checker), nil
		}
	}
}

func (r Report) with(c *Checker) Report {
	list := c.Findings()
	r.Found = len(list)
	r.Findings = append([]Finding{}, list[:min(len(list), MaxFindings)]...)
	return r
}
