package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/recall/static"
)

type (
	embeddingsShop  = workshop[*graph.EmbeddingsUnit, graph.EmbeddingsStore]
	embeddingsBench = bench[*graph.EmbeddingsUnit, graph.EmbeddingsStore]
)

// builtIn is the built-in model behind the interface of remote ones. It refuses texts that
// mention giraffes.
type builtIn struct{}

func (builtIn) Model() string { return static.Model }

func (builtIn) Embed(_ context.Context, _ string, texts []string) ([]recall.Vector, error) {
	list := make([]recall.Vector, len(texts))
	for i, text := range texts {
		if strings.Contains(text, "giraffe") {
			return nil, fmt.Errorf("%w: giraffes", projection.ErrRejected)
		}
		list[i] = recall.Quantize(static.Embed(text))
	}
	return list, nil
}

var embeddingsData = Data{
	Nth:     func(n int) events.Payload { return message(fmt.Sprintf("m%d", n), "user", "hello") },
	Refused: func(text string) events.Payload { return message(text, "user", "hello") },
	Again:   message("m0", "user", "hello"),
}

func embeddingsCases(w embeddingsShop) []namedCase {
	embeddings := func(b *embeddingsBench, conversation string, q graph.BagQuery) []graph.Embedding {
		b.t.Helper()
		list, err := b.store.Embeddings(b.ctx, id(conversation), q)
		require.NoError(b.t, err)
		return list
	}
	seqs := func(list []graph.Embedding) (seqs []uint64) {
		for _, e := range list {
			seqs = append(seqs, e.Seq)
		}
		return seqs
	}
	long := strings.Repeat("A long answer about pkg/parser.go.\n", 100)
	spoken := func() *History {
		h := NewHistory()
		h.Add("c", message("a", "user", "The parser fails on paths.")) // 1
		h.Add("d", message("a", "user", "Something else."))
		h.Add("c", message("b", "assistant", long)) // 3
		h.Add("c", message("e", "assistant", " \n"))
		h.Add("c", read("k", "/a"))
		h.Add("c", message("f", "user", "Thanks.")) // 6
		return h
	}
	return []namedCase{
		{"each message with text has vectors, one of each passage of its bag", func(t *testing.T) {
			inOneBatchAndInMany(t, w, spoken(), func(t *testing.T, b *embeddingsBench) {
				list := embeddings(b, "c", graph.BagQuery{})
				require.Equal(t, []uint64{1, 3, 6}, seqs(list))
				require.Equal(t, []string{"a", "b", "f"}, []string{list[0].MessageID, list[1].MessageID, list[2].MessageID})
				vectors, err := list[0].Decode()
				require.NoError(t, err)
				require.Equal(t, []recall.Vector{recall.Quantize(static.Embed("The parser fails on paths."))}, vectors)
				vectors, err = list[1].Decode()
				require.NoError(t, err)
				passages := recall.NewBag(recall.Message{Content: long}).Passages
				require.Greater(t, len(passages), 3)
				require.Len(t, vectors, len(passages))
				require.Equal(t, recall.Quantize(static.Embed(long[passages[2].Start:passages[2].End])), vectors[2])
			})
		}},
		{"embeddings are read from a sequence on, as many as are asked for", func(t *testing.T) {
			inOneBatchAndInMany(t, w, spoken(), func(t *testing.T, b *embeddingsBench) {
				for q, want := range map[graph.BagQuery][]uint64{
					{From: 1, Limit: 2}: {1, 3}, {From: 2, Limit: 2}: {3, 6}, {From: 3, Limit: 1}: {3}, {From: 6}: {6}, {From: 7}: nil,
					{Before: 6}: {1, 3}, {From: 2, Before: 4}: {3}, {From: graph.Latest}: nil,
				} {
					require.Equal(t, want, seqs(embeddings(b, "c", q)), "%+v", q)
				}
				require.Empty(t, embeddings(b, "nobody", graph.BagQuery{}), "it may not be there yet")
			})
		}},
		{"a message that the model refuses fails alone", func(t *testing.T) {
			h := NewHistory()
			h.Add("c", message("a", "user", "zebra"))
			h.Add("c", message("b", "user", "a giraffe"))
			h.Add("c", message("e", "user", "lion"))
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *embeddingsBench) {
				require.Equal(t, []uint64{1, 3}, seqs(embeddings(b, "c", graph.BagQuery{})))
				failed, err := b.store.Failed(b.ctx, projection.FailedQuery{Limit: 9})
				require.NoError(t, err)
				require.Len(t, failed, 1)
				require.EqualValues(t, 2, failed[0].Seq)
				require.Contains(t, failed[0].Reason, "giraffes")
				applied, refused, err := w.projection.Reapply(b.ctx, b.store, b.cp, id("c"), h.Messages)
				require.NoError(t, err)
				require.Equal(t, []int{2, 1}, []int{applied, refused})
				require.Equal(t, []uint64{1, 3}, seqs(embeddings(b, "c", graph.BagQuery{})))
			})
		}},
		{"nothing of a deleted conversation is left, and what comes later is refused", func(t *testing.T) {
			h := spoken()
			h.Add("c", &events.ConversationDeleted{})
			h.Add("c", message("g", "user", "too late"))
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *embeddingsBench) {
				require.Empty(t, embeddings(b, "c", graph.BagQuery{}))
				require.Equal(t, []uint64{2}, seqs(embeddings(b, "d", graph.BagQuery{})))
				failed, err := b.store.Failed(b.ctx, projection.FailedQuery{Limit: 9})
				require.NoError(t, err)
				require.Len(t, failed, 1)
			})
		}},
	}
}
