package sqlitestore

import (
	"context"
	"database/sql"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// Embeddings is the read model "embeddings" in SQLite.
type Embeddings struct{ *Store[*graph.EmbeddingsUnit] }

var _ graph.EmbeddingsStore = (*Embeddings)(nil)

// EmbeddingsCodec is the read model "embeddings".
var EmbeddingsCodec = Codec[*graph.EmbeddingsUnit]{
	Projection: "embeddings",
	Schema:     embeddingsSchema,
	Delete:     DeleteFrom("embedding"),
	Begin:      func(t *Tx) Work[*graph.EmbeddingsUnit] { return embeddingsTx{t} },
	Hash:       embeddingsHash,
}

type embeddingsTx struct{ *Tx }

var embeddedStates = stateTable[graph.EmbeddedState, *graph.EmbeddedState]{
	scan:   func(_ *graph.EmbeddedState, scan func(...any) error) error { return scan() },
	values: func(*graph.EmbeddedState) []any { return nil },
}

// Load implements Work.
func (t embeddingsTx) Load(ctx context.Context, list []*events.Recorded) (*graph.EmbeddingsUnit, error) {
	u := graph.NewEmbeddingsUnit()
	return u, embeddedStates.load(ctx, t.Tx, u.States, list)
}

// Save implements Work.
func (t embeddingsTx) Save(ctx context.Context, u *graph.EmbeddingsUnit) error {
	if _, err := embeddedStates.save(ctx, t.Tx, u.States); err != nil {
		return err
	}
	_, err := t.Insert(ctx, Insertion{Into: "embedding (seq, c, message_id, dimensions, vectors)", Width: 5}, len(u.Embeddings), func(args []any, i int) []any {
		e := &u.Embeddings[i].Row
		return append(args, e.Seq, u.Embeddings[i].State.Key, e.MessageID, e.Dimensions, e.Vectors)
	})
	return err
}

// Embeddings implements graph.EmbeddingsReader.
func (e *Embeddings) Embeddings(ctx context.Context, id events.ConversationID, q graph.BagQuery) (list []graph.Embedding, err error) {
	err = e.Snapshot(ctx, func(query Queryer) error {
		s, err := embeddedStates.read(query, id)
		if err != nil || s.Key == 0 {
			return err
		}
		rows, err := query("SELECT seq, message_id, dimensions, vectors FROM embedding INDEXED BY embedding_by_conversation WHERE c = ?"+inRange+oldestFirst, s.Key, min(q.From, maxSeq), before(q.Before), limit(q.Limit))
		list, err = All(rows, err, func(rows *sql.Rows, row *graph.Embedding) error {
			return rows.Scan(&row.Seq, &row.MessageID, &row.Dimensions, &row.Vectors)
		})
		return err
	})
	return list, err
}

func embeddingsHash(q Queryer, id events.ConversationID) (projection.ConversationHash, error) {
	h := projection.ConversationHash{Conversation: id}
	s, err := embeddedStates.read(q, id)
	if err != nil || s.Key == 0 {
		return h, err
	}
	hasher := graph.NewHasher(id)
	hasher.EmbeddedConversation(s)
	rows, err := q("SELECT message_id FROM embedding WHERE c = ? ORDER BY seq", s.Key)
	if err := Each(rows, err, func(rows *sql.Rows) error {
		var messageID string
		err := rows.Scan(&messageID)
		hasher.Embedding(messageID)
		return err
	}); err != nil {
		return h, err
	}
	h.LastSeq, h.Hash = s.LastSeq, hasher.Sum()
	return h, nil
}
