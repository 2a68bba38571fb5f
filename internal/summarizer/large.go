package summarizer

import (
	"context"
	"fmt"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/summarizer/bounded"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/summary"
)

// How many of the newest transcript rows are searched for large results: newestResults when
// the conversation is touched, manualResults on request.
const (
	newestResults = 100
	manualResults = 2_000
)

// seen records how far a conversation was searched for large results. It is dropped when
// the process ends or when too many conversations are tracked; then the newest rows are
// read again.
type seen struct {
	seq      uint64      // last sequence searched
	messages int         // messages up to seq
	large    []candidate // not condensed yet, oldest first
}

// candidate is a result to condense once it is old enough.
type candidate struct {
	ref    graph.Ref
	behind int // messages before it
}

// add searches the rows after s.seq, given newest first.
func (s *seen) add(rows []graph.Entry) {
	for _, row := range slices.Backward(rows) {
		switch {
		case row.Message != nil:
			s.messages++
		case row.Result != nil && row.Result.Depth == 0 && row.Result.Result.Chars > summary.CondenseAbove:
			s.large = append(s.large, candidate{row.Result.Ref(), s.messages})
		}
		s.seq = max(s.seq, row.Position().Seq)
	}
}

// due returns the results that are old enough.
func (s *seen) due() (list []graph.Ref) {
	for _, l := range s.large {
		if s.messages-l.behind >= summary.FreshMessages {
			list = append(list, l.ref)
		}
	}
	return list
}

// done removes a result.
func (s *seen) done(ref graph.Ref) {
	s.large = slices.DeleteFunc(s.large, func(l candidate) bool { return l.ref == ref })
}

// maxSeen limits how many conversations have a seen record, and of how many conversations and projects other things are
// remembered. What is forgotten is found out again.
const maxSeen = 50_000

// seenOf returns the record of a conversation. Only the goroutine that works on it may
// change it.
func (r *Reactor) seenOf(id events.ConversationID) *seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.seen[id]; s != nil {
		return s
	}
	bounded.MakeRoom(r.seen, maxSeen, nil)
	r.seen[id] = &seen{}
	return r.seen[id]
}

// condenseNew condenses large results as they become old enough. It reads only what has
// come since the last call.
func (r *Reactor) condenseNew(ctx context.Context, c summary.Conversation, model Condenser) error {
	s := r.seenOf(c.ID)
	if c.LastSeq > s.seq {
		rows, err := r.transcript(ctx, c, graph.TranscriptQuery{From: s.seq + 1, Limit: newestResults})
		if err != nil {
			return err
		}
		s.add(rows)
		s.seq = max(s.seq, c.LastSeq)
		s.large = s.large[max(0, len(s.large)-newestResults):] // bounds the list while the model is unavailable
	}
	return r.condense(ctx, c, model, s.due(), s.done, &Answer{})
}

// condenseAsked condenses large results on request, including those that the model could
// not condense before.
func (r *Reactor) condenseAsked(ctx context.Context, c summary.Conversation, model Condenser, a *Answer) error {
	if model == nil {
		return fmt.Errorf("cannot condense results: %w", ErrNoModel)
	}
	rows, err := r.transcript(ctx, c, graph.TranscriptQuery{Limit: manualResults})
	if err != nil {
		return err
	}
	var s seen
	s.add(rows)
	return r.condense(ctx, c, model, s.due(), func(graph.Ref) {}, a)
}

// transcript reads rows after the read model "graph" has caught up with the conversation.
func (r *Reactor) transcript(ctx context.Context, c summary.Conversation, q graph.TranscriptQuery) (rows []graph.Entry, err error) {
	if err := r.awaitGraph(ctx, r.Log.PartitionOf(c.ID.Tenant, c.ID.ID), c.LastSeq); err != nil {
		return nil, err
	}
	err = r.graph(ctx, func(g graph.Reader) (err error) {
		rows, err = g.Transcript(ctx, c.ID, q)
		return err
	})
	return rows, err
}
