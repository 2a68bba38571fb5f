package neo4jstore

import (
	"context"
	"testing"

	"mneme/events"
	"mneme/pkg/graph/storetest"
)

func backends(t *testing.T) (storetest.Backend[storetest.GraphStore], storetest.Backend[storetest.FilesStore]) {
	c := testConfig(t)
	g := storetest.Backend[storetest.GraphStore]{
		Open: func(ctx context.Context, dir string) (storetest.GraphStore, error) {
			return OpenGraph(ctx, c, generationOf(dir))
		},
		Refuse: func(ctx context.Context, dir, text string) (func() error, error) {
			return refuse(ctx, c, dir, "Message", "payload_key", events.MessageKey(text))
		},
	}
	f := storetest.Backend[storetest.FilesStore]{
		Open: func(ctx context.Context, dir string) (storetest.FilesStore, error) {
			return OpenFiles(ctx, c, generationOf(dir))
		},
		Refuse: func(ctx context.Context, dir, text string) (func() error, error) {
			return refuse(ctx, c, dir, "FilesEvent", "payload_key", events.ToolCallKey("of "+text))
		},
	}
	return g, f
}

// refuse makes a node of no conversation, which stands where an event of the
// conversation "c" wants to.
func refuse(ctx context.Context, c Config, dir, label, property, payload string) (undo func() error, err error) {
	d, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &store{db: d, generation: generationOf(dir)}
	node := "(n:" + label + " {" + property + ": $key})"
	key := map[string]any{"key": s.payloadKey(events.ConversationID{Tenant: "t", ID: "c"}, payload)}
	undo = func() error {
		defer func() { _ = d.close() }()
		_, err := d.write(ctx, "MATCH "+node+" DELETE n", key)
		return err
	}
	_, err = d.write(ctx, "CREATE "+node, key)
	return undo, err
}

func TestGraphConformance(t *testing.T) {
	t.Parallel()
	g, _ := backends(t)
	storetest.RunGraph(t, g)
}

func TestFilesConformance(t *testing.T) {
	t.Parallel()
	_, f := backends(t)
	storetest.RunFiles(t, f)
}

func TestBranchConformance(t *testing.T) {
	t.Parallel()
	g, f := backends(t)
	storetest.RunBranches(t, g, f)
}
