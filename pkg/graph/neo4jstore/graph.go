package neo4jstore

import (
	"context"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// Graph is the read model "graph" in Neo4j.
type Graph struct{ *Store[*graph.Unit] }

var _ graph.Store = (*Graph)(nil)

// GraphCodec is the read model "graph".
var GraphCodec = Codec[*graph.Unit]{
	Layout: graphLayout,
	Begin: func(t *Tx) Work[*graph.Unit] {
		return &graphTx{Tx: t, loaded: map[events.ConversationID]stamp{}, here: map[string]bool{}, calls: map[string]Row{}, owners: map[*graph.State]Row{}}
	},
	Hash: hashGraph,
}

// OpenGraph connects to write one generation of the read model, and makes the schema. It
// returns the errors of the package comment.
func OpenGraph(ctx context.Context, c Config, generation int) (*Graph, error) {
	s, err := Open(ctx, c, generation, GraphCodec)
	if err != nil {
		return nil, err
	}
	return &Graph{s}, nil
}

// graphTx is a transaction of the projection "graph".
type graphTx struct {
	*Tx
	loaded map[events.ConversationID]stamp
	here   map[string]bool // keys of the messages that the batch makes
	calls  map[string]Row  // calls that the batch makes, by key
	owners map[*graph.State]Row

	saved   []saved
	untimed bool // some of saved have no time
}

// payloadKey is the key that must be unique among rows of its kind.
func (s *store) payloadKey(id events.ConversationID, key string) string {
	return s.digestKey(projection.PayloadKey(id, key))
}
