package neo4jstore

import (
	"cmp"
	"context"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

var (
	// Only rows with text have bags.
	selectBags = reading("COLLECT { MATCH (n:Message) USING INDEX SEEK n:Message(conversation, seq) WHERE n.conversation = $key AND n.seq >= $from AND n.seq <= upTo AND n.terms IS NOT NULL" +
		" RETURN [n.seq, n.n, n.terms, n.vectors] ORDER BY n.conversation, n.seq LIMIT $limit }")
	selectMessagesAt = reading("COLLECT { UNWIND $in.seqs AS seq MATCH (n:Message) WHERE n.conversation = $key AND n.seq = seq AND n.seq <= upTo RETURN " + messageProps.list("n") + " }")
)

// Bags implements graph.RecallReader.
func (g *Graph) Bags(ctx context.Context, id events.ConversationID, q graph.BagQuery) ([]graph.Bag, error) {
	v, err := g.of(ctx, id, selectBags, map[string]any{"from": number(q.From), "last": before(q.Before), "limit": limit(q.Limit)})
	if err != nil {
		return nil, err
	}
	list := scanAll(v, scanBag)
	return list, v.err
}

func scanBag(v *values) graph.Bag {
	return graph.Bag{Seq: v.seq(), N: v.int(), Terms: take[[]byte](v), Vectors: take[[]byte](v)}
}

// MessagesAt implements graph.RecallReader.
func (g *Graph) MessagesAt(ctx context.Context, id events.ConversationID, seqs []uint64) ([]graph.Message, error) {
	asked := make([]int64, 0, len(seqs))
	for _, seq := range seqs {
		asked = append(asked, number(seq))
	}
	slices.Sort(asked)
	v, err := g.of(ctx, id, selectMessagesAt, map[string]any{"in": map[string]any{"seqs": slices.Compact(asked)}, "last": number(graph.Latest)})
	if err != nil {
		return nil, err
	}
	list := scanAll(v, scanMessage)
	slices.SortFunc(list, func(a, b graph.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	return list, v.err
}
