package summarizer

import (
	"context"
	"fmt"
	"slices"

	"mneme/events"
	"mneme/pkg/graph"
	"mneme/pkg/summary"
)

// How many of the newest rows of a transcript are looked at for large results: the first
// time that a conversation is touched, and of what comes from then on at each; and when
// somebody asks.
const (
	newestResults = 100
	manualResults = 2_000
)

// seen is how far a conversation was looked through for large results. It is forgotten with
// the process, or when there are many conversations: then the newest rows are looked at
// once more.
type seen struct {
	seq      uint64      // up to it
	messages int         // that were seen
	large    []candidate // that were not condensed yet, oldest first
}

// candidate is a result to be condensed when it is old enough.
type candidate struct {
	ref    graph.Ref
	behind int // messages that were seen before it
}

// add looks at rows that follow what was seen, newest first.
func (s *seen) add(rows []graph.Entry) {
	for _, row := range slices.Backward(rows) {
		switch {
		case row.Message != nil:
			s.messages++
		case row.Result != nil && row.Result.Result.Chars > summary.CondenseAbove && row.Result.Depth == 0:
			s.large = append(s.large, candidate{row.Result.Ref(), s.messages})
		}
		s.seq = max(s.seq, row.Position().Seq)
	}
}

// due are the results that are old enough.
func (s *seen) due() (list []graph.Ref) {
	for _, l := range s.large {
		if s.messages-l.behind >= summary.FreshMessages {
			list = append(list, l.ref)
		}
	}
	return list
}

// done forgets a result.
func (s *seen) done(ref graph.Ref) {
	s.large = slices.DeleteFunc(s.large, func(l candidate) bool { return l.ref == ref })
}

// maxSeen is of how many conversations it is known how far they were looked through.
const maxSeen = 50_000

// seenOf is how far a conversation was looked through; whoever works on it may change it.
func (r *Reactor) seenOf(id events.ConversationID) *seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.seen[id]; s != nil {
		return s
	}
	for other := range r.seen {
		if len(r.seen) < maxSeen {
			break
		}
		delete(r.seen, other)
	}
	r.seen[id] = &seen{}
	return r.seen[id]
}

// condenseNew has large results condensed as they grow old. What it reads is what has come
// since the last time.
func (r *Reactor) condenseNew(ctx context.Context, c summary.Conversation, model Condenser) error {
	s := r.seenOf(c.ID)
	if c.LastSeq > s.seq {
		rows, err := r.transcript(ctx, c, graph.TranscriptQuery{From: s.seq + 1, Limit: newestResults})
		if err != nil {
			return err
		}
		s.add(rows)
		s.seq = max(s.seq, c.LastSeq)
		s.large = s.large[max(0, len(s.large)-newestResults):] // of a model that is away
	}
	return r.condense(ctx, c, model, s.due(), s.done, &Answer{})
}

// condenseAsked has large results condensed because somebody asks, those too that the model
// could not condense before.
func (r *Reactor) condenseAsked(ctx context.Context, c summary.Conversation, model Condenser, a *Answer) error {
	if model == nil {
		return fmt.Errorf("results can't be condensed: %w", ErrNoModel)
	}
	rows, err := r.transcript(ctx, c, graph.TranscriptQuery{Limit: manualResults})
	if err != nil {
		return err
	}
	var s seen
	s.add(rows)
	return r.condense(ctx, c, model, s.due(), func(graph.Ref) {}, a)
}

// transcript reads rows once the read model "graph" has all that is known of a conversation.
func (r *Reactor) transcript(ctx context.Context, c summary.Conversation, q graph.TranscriptQuery) (rows []graph.Entry, err error) {
	if err := r.awaitGraph(ctx, r.Log.PartitionOf(c.ID.Tenant, c.ID.ID), c.LastSeq); err != nil {
		return nil, err
	}
	err = r.Graph(func(g graph.Reader) (err error) {
		rows, err = g.Transcript(ctx, c.ID, q)
		return err
	})
	return rows, err
}
