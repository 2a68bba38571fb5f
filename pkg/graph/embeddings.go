package graph

import (
	"context"
	"fmt"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/recall"
)

// Embedder computes vectors of texts with a model, which may be remote. It is safe for
// concurrent use.
type Embedder interface {
	// Model names the model. Vectors of different models are not comparable.
	Model() string
	// Embed returns one vector for each of a tenant's texts, all of equal length; nil
	// for a text that has none. If the model will always refuse a text, the error is
	// projection.ErrRejected.
	Embed(ctx context.Context, tenant string, texts []string) ([]recall.Vector, error)
}

// EmbeddingKey identifies an embedded text together with the model.
type EmbeddingKey [16]byte

// EmbeddingsCache keeps computed vectors, so that no text is paid for twice, even after a
// rebuild. It is safe for concurrent use.
type EmbeddingsCache interface {
	// Load reads the vectors of keys, in their order; nil for an unknown key.
	Load(ctx context.Context, keys []EmbeddingKey) ([][]byte, error)
	// Store keeps a vector for each key and changes none that it holds. An empty vector, of
	// a text that has none, is kept too.
	Store(ctx context.Context, keys []EmbeddingKey, vectors [][]byte) error
	Close() error
}

// EmbeddedState is a conversation in a unit of work of the projection "embeddings".
type EmbeddedState struct{ projection.ConversationState }

// Embedding holds the vectors of a message's passages.
type Embedding struct {
	Seq        uint64
	MessageID  string
	Dimensions int
	Vectors    []byte // of the passages of its bag, Dimensions bytes each
}

// Decode returns the vectors of the passages, nil for a passage without one.
func (e *Embedding) Decode() ([]recall.Vector, error) {
	return recall.ParseVectors(e.Vectors, e.Dimensions)
}

// EmbeddingsUnit is the unit of work of the projection "embeddings".
type EmbeddingsUnit struct {
	projection.States[EmbeddedState, *EmbeddedState]
	Embeddings []projection.Of[EmbeddedState, Embedding]

	vectors map[uint64][]recall.Vector // of the messages of the batch, by sequence
}

// NewEmbeddingsUnit makes an empty unit; the backend adds what it loads.
func NewEmbeddingsUnit() *EmbeddingsUnit {
	return &EmbeddingsUnit{States: projection.States[EmbeddedState, *EmbeddedState]{}}
}

// EmbeddingsProjection declares the read model "embeddings": the vectors that a model
// behind an endpoint computes for the passages of messages. It may lag without affecting
// the other read models. Its hashes cover which messages are embedded but not the vectors,
// because these may differ slightly each time they are computed.
func EmbeddingsProjection(embedder Embedder) projection.Projection[*EmbeddingsUnit] {
	p := embeddingsOf(embedder.Model())
	p.Prepare = func(ctx context.Context, list []*events.Recorded) (func(*EmbeddingsUnit), error) {
		vectors, err := embed(ctx, embedder, list)
		return func(u *EmbeddingsUnit) { u.vectors = vectors }, err
	}
	return p
}

// embeddingsOf returns the projection without the step that computes vectors.
func embeddingsOf(model string) projection.Projection[*EmbeddingsUnit] {
	return projection.Projection[*EmbeddingsUnit]{
		Name:     "embeddings",
		Version:  1,
		Settings: model,
		Reducers: map[string]projection.Reducer[*EmbeddingsUnit]{
			events.TypeConversationDeleted: (*EmbeddingsUnit).deleted,
			events.TypeMessageCreated:      (*EmbeddingsUnit).message,
		},
	}
}

// CheckEmbeddings returns projection.OtherBuild if a read model was built with a different
// model, whose vectors are not comparable.
func CheckEmbeddings(ctx context.Context, r EmbeddingsReader, model string) error {
	list, err := r.Checkpoints(ctx)
	if err != nil {
		return err
	}
	p := embeddingsOf(model)
	for _, cp := range list {
		if mine := p.Fingerprint(); cp.Fingerprint != mine {
			return projection.OtherBuild(p.Name, cp.Fingerprint, mine)
		}
	}
	return nil
}

// passagesOf returns the texts of the passages in a message's bag.
func passagesOf(p *events.MessageCreated) []string {
	list := recall.Passages(kept(p.Content))
	return list[:min(len(list), recall.MaxPassages)]
}

// embed computes the vectors of messages, one tenant at a time.
func embed(ctx context.Context, embedder Embedder, list []*events.Recorded) (map[uint64][]recall.Vector, error) {
	type part struct {
		seq uint64
		n   int
	}
	var tenants []string // in the order of the log
	texts, parts := map[string][]string{}, map[string][]part{}
	for _, e := range list {
		p, ok := e.Payload.(*events.MessageCreated)
		if !ok {
			continue
		}
		tenant, passages := e.Conversation().Tenant, passagesOf(p)
		if parts[tenant] == nil {
			tenants = append(tenants, tenant)
		}
		texts[tenant] = append(texts[tenant], passages...)
		parts[tenant] = append(parts[tenant], part{e.Seq, len(passages)})
	}
	vectors := map[uint64][]recall.Vector{}
	for _, tenant := range tenants {
		made, err := embedder.Embed(ctx, tenant, texts[tenant])
		if err != nil {
			return nil, err
		}
		for _, p := range parts[tenant] {
			vectors[p.seq], made = made[:p.n], made[p.n:]
		}
	}
	return vectors, nil
}

func (u *EmbeddingsUnit) deleted(e *events.Recorded) error {
	u.Embeddings = projection.Without(u.Embeddings, u.Delete(e))
	return nil
}

func (u *EmbeddingsUnit) message(e *events.Recorded) error {
	vectors, ok := u.vectors[e.Seq]
	if !ok {
		return fmt.Errorf("no vectors were made of the message at sequence %d", e.Seq)
	}
	s := u.Touch(e)
	row := Embedding{Seq: e.Seq, MessageID: e.Payload.(*events.MessageCreated).MessageID}
	for _, v := range vectors {
		row.Dimensions = max(row.Dimensions, len(v))
	}
	if row.Dimensions == 0 { // it has no text
		return nil
	}
	for _, v := range vectors {
		row.Vectors = recall.AppendVector(row.Vectors, v, row.Dimensions)
	}
	u.Embeddings = append(u.Embeddings, projection.RowOf(s, row))
	return nil
}

// EmbeddingsReader reads the read model "embeddings".
type EmbeddingsReader interface {
	projection.ReadStore
	// Embeddings reads the embeddings of a conversation in order of sequence,
	// from a sequence on. An unknown conversation has
	// none.
	Embeddings(ctx context.Context, id events.ConversationID, q BagQuery) ([]Embedding, error)
}

// EmbeddingsStore is the backend of the projection "embeddings".
type EmbeddingsStore interface {
	projection.Store[*EmbeddingsUnit]
	EmbeddingsReader
}

// Embeddings reads the embeddings of this lineage's conversation, including those of the
// messages that it inherits.
func (l *Lineage) Embeddings(r EmbeddingsReader) EmbeddingsReader {
	if len(l.segments) == 1 {
		return r
	}
	return &inheritingEmbeddings{r, l}
}

type inheritingEmbeddings struct {
	EmbeddingsReader
	lineage *Lineage
}

// Embeddings implements EmbeddingsReader.
func (r *inheritingEmbeddings) Embeddings(ctx context.Context, id events.ConversationID, q BagQuery) ([]Embedding, error) {
	if id != r.lineage.own.ID {
		return r.EmbeddingsReader.Embeddings(ctx, id, q)
	}
	return collect(r.lineage, q.From, q.Before, q.Limit, true, func(s *segment, from, before uint64, limit int) ([]Embedding, error) {
		return r.EmbeddingsReader.Embeddings(ctx, s.id, BagQuery{From: from, Before: before, Limit: limit})
	}, func(*Embedding, *segment, int) {})
}
