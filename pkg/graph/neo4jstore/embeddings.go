package neo4jstore

import (
	"context"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// Embeddings is the read model "embeddings" in Neo4j.
type Embeddings struct{ *Store[*graph.EmbeddingsUnit] }

var _ graph.EmbeddingsStore = (*Embeddings)(nil)

// EmbeddingsCodec is the read model "embeddings".
var EmbeddingsCodec = Codec[*graph.EmbeddingsUnit]{
	Layout: embeddingsLayout,
	Begin:  func(t *Tx) Work[*graph.EmbeddingsUnit] { return &embeddingsTx{t} },
	Hash:   hashEmbeddings,
}

const foundEmbedded = "MATCH (c:EmbeddingsConversation {key: $key}) MATCH (s:EmbeddingsSettled {key: c.checkpoint}) "

// The store reads a message's vectors as stored, in one byte string. The floats on its
// passages are for the vector index and for people.
const (
	selectEmbeddings = foundEmbedded + `WHERE c.deleted_seq IS NULL WITH CASE WHEN s.seq < $last THEN s.seq ELSE $last END AS upTo
		RETURN COLLECT { MATCH (n:EmbeddingsEvent) USING INDEX SEEK n:EmbeddingsEvent(conversation, seq)
			WHERE n.conversation = $key AND n.seq >= $from AND n.seq <= upTo AND n.vectors IS NOT NULL
			RETURN [n.seq, n.message_id, n.dimensions, n.vectors] ORDER BY n.conversation, n.seq LIMIT $limit }`

	selectEmbeddingsForHash = foundEmbedded + `WITH c, s.seq AS settled RETURN settled, c.last_seq, c.deleted_seq,
		COLLECT { MATCH (n:EmbeddingsEvent) USING INDEX SEEK n:EmbeddingsEvent(conversation, seq)
			WHERE n.conversation = $key AND n.seq <= settled AND n.vectors IS NOT NULL RETURN n.message_id ORDER BY n.conversation, n.seq }`
)

// Embeddings implements graph.EmbeddingsReader.
func (e *Embeddings) Embeddings(ctx context.Context, id events.ConversationID, q graph.BagQuery) ([]graph.Embedding, error) {
	rows, err := e.Read(ctx, selectEmbeddings, map[string]any{"key": e.Key(id), "from": number(q.From), "last": before(q.Before), "limit": limit(q.Limit)})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	v := &values{list: rows[0]}
	list := scanAll(v, func(v *values) graph.Embedding {
		return graph.Embedding{Seq: v.seq(), MessageID: v.text(), Dimensions: v.int(), Vectors: take[[]byte](v)}
	})
	return list, v.err
}

// hashEmbeddings implements Codec.Hash.
func hashEmbeddings(ctx context.Context, s *Store[*graph.EmbeddingsUnit], id events.ConversationID) (projection.ConversationHash, error) {
	h := projection.ConversationHash{Conversation: id}
	rows, err := s.Read(ctx, selectEmbeddingsForHash, map[string]any{"key": s.Key(id)})
	if err != nil || len(rows) == 0 {
		return h, err
	}
	v := &values{list: rows[0]}
	settled, last, deleted := v.seq(), v.seq(), v.seq()
	hasher := graph.NewHasher(id)
	hasher.EmbeddedConversation(graph.EmbeddedState{ConversationState: projection.ConversationState{DeletedSeq: deleted}})
	if messages := v.strings(); deleted == 0 {
		for _, messageID := range messages {
			hasher.Embedding(messageID)
		}
	}
	h.LastSeq, h.Hash = min(last, settled), hasher.Sum()
	return h, v.err
}
