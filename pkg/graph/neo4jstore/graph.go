package neo4jstore

import (
	"context"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// Graph is the read model "graph" in Neo4j.
type Graph struct{ store }

var _ graph.Store = (*Graph)(nil)

// OpenGraph connects to write one generation of the read model, and makes the schema. It
// returns the errors of the package comment.
func OpenGraph(ctx context.Context, c Config, generation int) (*Graph, error) {
	d, err := openWriter(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Graph{store{db: d, dialect: graphDialect, generation: generation}}, nil
}

// OpenGraphReader connects to read. Until a writer has made the schema it returns
// ErrNotThere.
func OpenGraphReader(ctx context.Context, c Config, generation int) (*Graph, error) {
	d, err := openReader(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Graph{store{db: d, dialect: graphDialect, generation: generation, reader: true}}, nil
}

// Update implements projection.Store.
func (g *Graph) Update(ctx context.Context, partition int, fn func(projection.Tx[*graph.Unit]) error) error {
	return g.transact(ctx, partition, func(t *tx) error {
		return fn(&graphTx{tx: t, loaded: map[events.ConversationID]stamp{}, here: map[string]bool{}, calls: map[string]row{}, owners: map[*graph.State]row{}})
	})
}

// graphTx is a transaction of the projection "graph".
type graphTx struct {
	*tx
	loaded map[events.ConversationID]stamp
	here   map[string]bool // keys of the messages that the batch makes
	calls  map[string]row  // calls that the batch makes, by key
	owners map[*graph.State]row

	saved   []saved
	untimed bool // some of saved have no time
}

// payloadKey is the key that must be unique among rows of its kind.
func (s *store) payloadKey(id events.ConversationID, key string) string {
	return s.digestKey(projection.PayloadKey(id, key))
}

// Hashes implements projection.ReadStore.
func (g *Graph) Hashes(ctx context.Context, yield func(projection.ConversationHash) error) error {
	return g.hashes(ctx, g.Hash, yield)
}
