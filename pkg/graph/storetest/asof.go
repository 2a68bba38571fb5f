package storetest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme/events"
	"mneme/pkg/graph"
)

// graphView is all that can be read of a conversation as of a sequence.
type graphView struct {
	Conversation graph.Conversation
	Messages     []graph.Message
	Transcript   []graph.Entry
	Calls        map[string]graph.ToolCall
	Results      map[string]graph.ToolResult
}

// view reads a conversation as of a sequence; the zero value if there is none.
func view(b *bench[*graph.Unit, GraphStore], id events.ConversationID, asOf uint64) (v graphView) {
	b.t.Helper()
	before := uint64(0)
	if asOf != graph.Latest {
		before = asOf + 1
	}
	var err error
	if v.Conversation, err = b.store.Conversation(b.ctx, id, asOf); errors.Is(err, graph.ErrNotFound) {
		return graphView{}
	}
	require.NoError(b.t, err)
	v.Messages, err = b.store.Messages(b.ctx, id, graph.MessageQuery{Before: before, Limit: 1000})
	require.NoError(b.t, err)
	v.Transcript, err = b.store.Transcript(b.ctx, id, graph.TranscriptQuery{Before: before, Limit: 1000})
	require.NoError(b.t, err)
	v.Calls, err = b.store.Calls(b.ctx, id, callIDs, asOf)
	require.NoError(b.t, err)
	v.Results, err = b.store.Results(b.ctx, id, callIDs, asOf)
	require.NoError(b.t, err)
	return v
}

// asOfGraph: a read as of a sequence is what a read saw at that sequence.
func asOfGraph(w workshop[*graph.Unit, GraphStore]) namedCase {
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
				for seq := range then { // deleted, or never there: as of every sequence
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

// asOfFiles is the same for files.
func asOfFiles(w workshop[*graph.FilesUnit, FilesStore]) namedCase {
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

func accesses(b *bench[*graph.FilesUnit, FilesStore], q graph.FileQuery) []graph.FileAccess {
	b.t.Helper()
	list, err := b.store.Files(b.ctx, id("c"), q)
	require.NoError(b.t, err)
	return list
}
