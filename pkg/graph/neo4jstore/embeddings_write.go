package neo4jstore

import (
	"cmp"
	"context"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

var (
	embeddedProps  = props{"tenant", "id", "last_seq", "deleted_seq"}
	embeddingProps = props{"seq", "message_id", "dimensions", "vectors"}
)

var embeddingsLayout = Layout{
	Projection: "embeddings", Conversation: "EmbeddingsConversation", Event: "EmbeddingsEvent", Payloads: []string{"EmbeddingsEvent"},
	Statements: []string{selectEmbedded},
	Writes: []Piece{
		NewConversations("EmbeddingsConversation"),
		NewPiece("moved", "UNWIND $in.rows AS r MATCH (c:EmbeddingsConversation {key: r.key}) SET "+props{"last_seq"}.set("c")),
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

var selectEmbedded = "UNWIND $in.keys AS key MATCH (c:EmbeddingsConversation {key: key}) RETURN " + embeddedProps.list("c")

// Load implements Work.
func (t *embeddingsTx) Load(ctx context.Context, list []*events.Recorded) (*graph.EmbeddingsUnit, error) {
	u := graph.NewEmbeddingsUnit()
	var keys []string
	for _, e := range list {
		if id := e.Conversation(); u.States[id] == nil {
			u.States[id] = &graph.EmbeddedState{ID: id}
			keys = append(keys, t.Key(id))
		}
	}
	if len(keys) == 0 {
		return u, nil
	}
	rows, err := t.Run(ctx, selectEmbedded, In("keys", keys))
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		v := valuesOf(row[0])
		s := graph.EmbeddedState{Key: 1, ID: events.ConversationID{Tenant: v.text(), ID: v.text()}, LastSeq: v.seq(), DeletedSeq: v.seq()}
		if v.err != nil {
			return nil, v.err
		}
		*u.States[s.ID] = s
	}
	return u, nil
}

// Save implements Work.
func (t *embeddingsTx) Save(_ context.Context, u *graph.EmbeddingsUnit) error {
	var list []*graph.EmbeddedState
	for _, s := range u.States {
		if s.Touched {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *graph.EmbeddedState) int { return cmp.Compare(a.LastSeq, b.LastSeq) })
	for _, s := range list {
		key := t.Key(s.ID)
		if s.Key == 0 {
			t.Add("conversations", t.NewConversation(s.ID))
		}
		t.Add("moved", Row{"key": key, "last_seq": number(s.LastSeq)})
		if s.Dropped {
			t.Delete(s.ID, s.DeletedSeq)
		}
	}
	for i := range u.Embeddings {
		if err := t.saveEmbedding(u.Embeddings[i].State.ID, &u.Embeddings[i].Row); err != nil {
			return err
		}
	}
	// The other events have no text to embed, so only their claims are stored.
	t.AddEvents(func(id events.ConversationID) bool {
		s := u.States[id]
		return s != nil && s.DeletedSeq == 0
	})
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
