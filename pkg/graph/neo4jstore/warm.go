package neo4jstore

import (
	"context"
	"errors"
	"slices"
	"unicode/utf8"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
)

// nobody is a conversation that cannot exist: no event can have this id.
var nobody = events.ConversationID{}

// Warm makes every read once, with nothing to find, and sends a writer's statements with
// nothing to write. Call it before serving: Neo4j plans a statement on first use, which takes
// a freshly started server up to a second each, and longer under load. A server that has the
// plans takes milliseconds.
func (g *Graph) Warm(ctx context.Context) error {
	none := []graph.Ref{{ID: "none"}}
	reads := []func() error{
		func() error { _, err := g.Conversation(ctx, nobody, graph.Latest); return err },
		func() error { _, err := g.Counts(ctx, nobody, []uint64{1}); return err },
		func() error { _, err := g.MessagesByID(ctx, nobody, none, graph.Latest); return err },
		func() error { _, err := g.Calls(ctx, nobody, none, graph.Latest); return err },
		func() error { _, err := g.Results(ctx, nobody, none, graph.Latest); return err },
		func() error { _, err := g.Messages(ctx, nobody, graph.MessageQuery{Turn: 1}); return err },
		func() error { _, err := g.between(ctx, nobody, 0, 0, 1); return err },
		func() error { _, err := g.Bags(ctx, nobody, graph.BagQuery{}); return err },
		func() error { _, err := g.MessagesAt(ctx, nobody, []uint64{1}); return err },
		func() error {
			_, err := g.Candidates(ctx, nobody.Tenant, graph.CandidateQuery{Terms: []string{"none"}, Fresh: true})
			return err
		},
		func() error { _, err := g.candidates(ctx, nobody.Tenant, nil, true); return err },
		func() error { _, err := g.Read(ctx, selectAsked, In("rows", []any{})); return err },
		func() error { _, err := g.Condensations(ctx, nobody, none, graph.Latest); return err },
		func() error {
			_, err := g.Summaries(ctx, nobody, graph.SummaryQuery{Frontier: true})
			return err
		},
		func() error { _, err := g.summariesAt(ctx, nobody, []uint64{1}, 1); return err },
		func() error {
			_, err := g.SummariesByID(ctx, nobody, []string{"none"}, graph.Latest)
			return err
		},
	}
	for _, other := range []bool{false, true} {
		reads = append(reads,
			func() error { _, err := g.Messages(ctx, nobody, graph.MessageQuery{OldestFirst: other}); return err },
			func() error {
				_, err := g.Messages(ctx, nobody, graph.MessageQuery{OldestFirst: other, Role: "user"})
				return err
			},
			func() error {
				_, err := g.Transcript(ctx, nobody, graph.TranscriptQuery{OldestFirst: other})
				return err
			},
			func() error {
				_, err := g.Transcript(ctx, nobody, graph.TranscriptQuery{OldestFirst: other, CallsOnly: true})
				return err
			},
			func() error {
				_, err := g.Summaries(ctx, nobody, graph.SummaryQuery{OldestFirst: other})
				return err
			},
			func() error {
				_, err := g.Summaries(ctx, nobody, graph.SummaryQuery{OldestFirst: other, Level: 1})
				return err
			},
			func() error {
				_, err := g.Conversations(ctx, nobody.Tenant, graph.ConversationQuery{Created: other})
				return err
			},
		)
	}
	for _, code := range []graph.CodeQuery{{File: "none"}, {Name: "none"}} {
		reads = append(reads,
			func() error { _, err := g.Referring(ctx, nobody.Tenant, code); return err },
			func() error { _, err := g.References(ctx, nobody.Tenant, nil, code); return err },
		)
	}
	for _, read := range reads {
		if err := read(); err != nil && !errors.Is(err, graph.ErrNotFound) {
			return err
		}
	}
	return g.warm(ctx)
}

// Warm is like [Graph.Warm].
func (f *Files) Warm(ctx context.Context) error {
	_, err := f.Files(ctx, nobody, graph.FileQuery{})
	_, _, e := f.LastSeq(ctx, nobody)
	code := graph.CodeQuery{File: "none"}
	_, accessing := f.Accessing(ctx, nobody.Tenant, code)
	_, accesses := f.Accesses(ctx, nobody.Tenant, nil, code)
	return errors.Join(err, e, accessing, accesses, f.warm(ctx))
}

// Warm is like [Graph.Warm].
func (s *Summaries) Warm(ctx context.Context) error {
	_, err := s.Conversation(ctx, nobody)
	_, e := s.Marks(ctx, nobody, 0, 1)
	_, f := s.Ranges(ctx, nobody, 1, 0, 1)
	_, g := s.Waiting(ctx, summary.WaitingQuery{After: events.ConversationID{Tenant: string(utf8.MaxRune)}, Limit: 1}) // after all tenants
	return errors.Join(err, e, f, g, s.warm(ctx))
}

// Warm is like [Graph.Warm].
func (e *Embeddings) Warm(ctx context.Context) error {
	_, err := e.Embeddings(ctx, nobody, graph.BagQuery{})
	return errors.Join(err, e.warm(ctx))
}

// warm sends the statements of a batch once, with nothing to write, if this is a writer.
func (s *store) warm(ctx context.Context) error {
	if s.reader {
		return nil
	}
	nothing := map[string]any{"in": map[string]any{}}
	statements := slices.Clone(s.Statements)
	for _, p := range slices.Concat(s.Writes, s.Tidy) {
		statements = append(statements, p.statement)
	}
	for _, statement := range statements {
		if _, err := s.write(ctx, statement, nothing); err != nil {
			return err
		}
	}
	for _, one := range []struct {
		statement string
		params    map[string]any
	}{
		{lockCheckpoint, map[string]any{"key": ""}},
		{saveCheckpoint, checkpointParams("", projection.Checkpoint{})},
		{settleAfter, settleParams("", projection.Checkpoint{})},
		{countRepair, map[string]any{"key": ""}},
		{showRepairs, map[string]any{"key": ""}},
		{s.linkAndSettle(), map[string]any{"key": "", "seq": int64(0), "event": "", "in": map[string]any{}}},
	} {
		if _, err := s.write(ctx, s.engine(one.statement), one.params); err != nil {
			return err
		}
	}
	return nil
}
