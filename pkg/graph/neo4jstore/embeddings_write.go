package neo4jstore

import (
	"context"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

var (
	embeddingProps = props{"seq", "message_id", "dimensions", "vectors"}
)

var embeddingsLayout = Layout{
	Projection: "embeddings", Conversation: "EmbeddingsConversation", Event: "EmbeddingsEvent", Payloads: []string{"EmbeddingsEvent"},
	Statements: []string{selectEmbedded},
	Writes: []Piece{
		NewConversations("EmbeddingsConversation"),
		movePiece("EmbeddingsConversation"),
		Tombstone("EmbeddingsConversation", ""),
		Events("EmbeddingsEvent"),
		// The server converts the bytes to floats, because a float takes nine bytes to send.
		NewPiece("embeddings", "UNWIND $in.rows AS r CREATE (:EmbeddingsEvent "+slices.Concat(claimedProps, embeddingProps).create()+`)
			WITH r UNWIND r.parts AS part
			CREATE (:Passage {conversation: r.conversation, tenant: r.tenant, conversation_id: r.conversation_id, seq: r.seq, part: part, message_id: r.message_id,
				embedding: [x IN r.vectors[part * r.dimensions .. (part + 1) * r.dimensions] | toFloat(x)]})`),
	},
	Sweeps: []string{Empty("Passage", "seq", "part"), Empty("EmbeddingsEvent", "seq")},
	Nodes:  []Nodes{{"Passage", []string{"seq", "part"}}, {"EmbeddingsEvent", bySeq}},
}

// embeddingsTx is a transaction of the projection "embeddings".
type embeddingsTx struct{ *Tx }

var selectEmbedded = statesOf("EmbeddingsConversation")

// Load implements Work.
func (t *embeddingsTx) Load(ctx context.Context, list []*events.Recorded) (*graph.EmbeddingsUnit, error) {
	u := graph.NewEmbeddingsUnit()
	return u, loadStates(ctx, t.Tx, u.States, list, selectEmbedded, func(*values, *graph.EmbeddedState) error { return nil })
}

// Save implements Work.
func (t *embeddingsTx) Save(_ context.Context, u *graph.EmbeddingsUnit) error {
	saveStates(t.Tx, u.States, func(*graph.EmbeddedState, Row) {})
	for i := range u.Embeddings {
		if err := t.saveEmbedding(u.Embeddings[i].State.ID, &u.Embeddings[i].Row); err != nil {
			return err
		}
	}
	// The other events have no text to embed, so only their claims are stored.
	t.AddEvents(u.Lives)
	return nil
}

// saveEmbedding adds the row of a message, and a passage for each of its vectors.
func (t *embeddingsTx) saveEmbedding(id events.ConversationID, e *graph.Embedding) error {
	vectors, err := e.Decode()
	if err != nil {
		return err
	}
	parts := make([]int, 0, len(vectors))
	for part, vector := range vectors {
		if vector != nil {
			parts = append(parts, part)
		}
	}
	r := t.Claimed(id, e.Seq)
	r["tenant"], r["conversation_id"] = id.Tenant, id.ID
	r["message_id"], r["dimensions"], r["vectors"], r["parts"] = e.MessageID, e.Dimensions, e.Vectors, parts
	t.Add("embeddings", r)
	return nil
}
