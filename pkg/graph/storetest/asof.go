package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// graphView is everything that can be read of a conversation as of a sequence.
type graphView struct {
	Conversation graph.Conversation
	Messages     []graph.Message
	Transcript   []graph.Entry
	Calls        map[graph.Ref]graph.ToolCall
	Results      map[graph.Ref]graph.ToolResult
	Condensed    map[graph.Ref]graph.Condensed
	Summaries    []graph.Summary
	Frontier     []graph.Summary
	ByID         map[string]graph.Summary
}

// view reads a conversation as of a sequence; the zero value if it does not exist.
func view(b *bench[*graph.Unit, graph.Store], id events.ConversationID, asOf uint64) graphView {
	b.t.Helper()
	return viewOf(b.ctx, b.t, b.store, id, asOf, callIDs)
}

// viewOf is view for any reader, with these calls.
func viewOf(ctx context.Context, t tester, reader graph.Reader, id events.ConversationID, asOf uint64, calls []string) (v graphView) {
	t.Helper()
	before := uint64(0)
	if asOf != graph.Latest {
		before = asOf + 1
	}
	var err error
	if v.Conversation, err = reader.Conversation(ctx, id, asOf); errors.Is(err, graph.ErrNotFound) {
		return graphView{}
	}
	require.NoError(t, err)
	v.Messages, err = reader.Messages(ctx, id, graph.MessageQuery{Before: before, Limit: 1000})
	require.NoError(t, err)
	v.Transcript, err = reader.Transcript(ctx, id, graph.TranscriptQuery{Before: before, Limit: 1000})
	require.NoError(t, err)
	v.Calls, err = reader.Calls(ctx, id, refs(calls...), asOf)
	require.NoError(t, err)
	v.Results, err = reader.Results(ctx, id, refs(calls...), asOf)
	require.NoError(t, err)
	v.Condensed, err = reader.Condensations(ctx, id, refs(calls...), asOf)
	require.NoError(t, err)
	v.Summaries, err = reader.Summaries(ctx, id, graph.SummaryQuery{AsOf: asOf, Superseded: true, Limit: 1000})
	require.NoError(t, err)
	v.Frontier, err = reader.Summaries(ctx, id, graph.SummaryQuery{AsOf: asOf, Frontier: true, Limit: 1000})
	require.NoError(t, err)
	ids := []string{"nobody", ""}
	for _, s := range v.Summaries {
		ids = append(ids, s.SummaryID)
	}
	v.ByID, err = reader.SummariesByID(ctx, id, ids, asOf)
	require.NoError(t, err)
	return v
}

// asOfGraph checks that a read as of a sequence equals a read made at that sequence.
func asOfGraph(w workshop[*graph.Unit, graph.Store]) namedCase {
	return namedCase{"law: a read as of a sequence sees what was there then", func(t *testing.T) {
		rapid.Check(t, func(r *rapid.T) {
			h := generated(tenants[:1]).Draw(r, "history")
			b := w.bench(r)
			then := map[uint64]graphView{}
			for i, m := range h.Messages {
				b.apply(h.Messages[i : i+1])
				then[m.Seq] = view(b, id("c"), graph.Latest)
			}
			last := h.Next - 1
			if then[last].Conversation.ID.ID == "" {
				for seq := range then { // deleted, or never existed: as of every sequence
					require.Equal(r, graphView{}, view(b, id("c"), seq), "as of sequence %d of %d", seq, last)
				}
				return
			}
			for seq, want := range then {
				require.Equal(r, want, view(b, id("c"), seq), "as of sequence %d of %d", seq, last)
			}
		})
	}}
}

// asOfFiles checks the same for files.
func asOfFiles(w workshop[*graph.FilesUnit, graph.FilesStore]) namedCase {
	return namedCase{"law: a read as of a sequence sees what was there then", func(t *testing.T) {
		rapid.Check(t, func(r *rapid.T) {
			h := generated(tenants[:1]).Draw(r, "history")
			limit := rapid.IntRange(0, 3).Draw(r, "limit")
			b := w.bench(r)
			then := map[uint64][]graph.FileAccess{}
			for i, m := range h.Messages {
				b.apply(h.Messages[i : i+1])
				then[m.Seq] = accesses(b, graph.FileQuery{Limit: limit})
			}
			deleted := b.tombstone(id("c")) != 0
			for seq, want := range then {
				if got := accesses(b, graph.FileQuery{AsOf: seq, Limit: limit}); !deleted {
					require.Equal(r, want, got, "as of sequence %d", seq)
				} else {
					require.Empty(r, got)
				}
			}
		})
	}}
}

func accesses(b *bench[*graph.FilesUnit, graph.FilesStore], q graph.FileQuery) []graph.FileAccess {
	b.t.Helper()
	list, err := b.store.Files(b.ctx, id("c"), q)
	require.NoError(b.t, err)
	return list
}
