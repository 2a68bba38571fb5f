package neo4jstore

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"testing"

	"mneme/events"
	"mneme/pkg/graph/storetest"
)

func testConfig(t *testing.T) Config {
	uri := os.Getenv("MNEME_TEST_NEO4J_URI")
	if uri == "" {
		t.Skip("no neo4j")
	}
	return Config{URI: uri}
}

// generationOf gives every directory of a test a generation of its own.
func generationOf(dir string) int {
	h := fnv.New64a()
	h.Write([]byte(dir))
	return int(h.Sum64() >> 2)
}

func backends(t *testing.T) (storetest.Backend[storetest.GraphStore], storetest.Backend[storetest.FilesStore]) {
	c := testConfig(t)
	g := storetest.Backend[storetest.GraphStore]{
		Open: func(ctx context.Context, dir string) (storetest.GraphStore, error) {
			return OpenGraph(ctx, c, generationOf(dir))
		},
		Refuse: func(ctx context.Context, dir, text string) (func() error, error) {
			return refuse(ctx, c, dir, "CREATE CONSTRAINT %[1]s FOR (m:Message) REQUIRE (m.conversation, m.id) IS UNIQUE",
				"CREATE (:Message {conversation: $key, id: $text})", "MATCH (m:Message {conversation: $key, id: $text}) WHERE m.seq IS NULL DELETE m", text)
		},
	}
	f := storetest.Backend[storetest.FilesStore]{
		Open: func(ctx context.Context, dir string) (storetest.FilesStore, error) {
			return OpenFiles(ctx, c, generationOf(dir))
		},
		Refuse: func(ctx context.Context, dir, text string) (func() error, error) {
			return refuse(ctx, c, dir, "CREATE CONSTRAINT %[1]s FOR (a:FileAccess) REQUIRE (a.refused) IS UNIQUE",
				"CREATE (:TrackedCall {key: $call})", "MATCH (t:TrackedCall {key: $call}) DELETE t", text)
		},
	}
	return g, f
}

// refuse makes a node that stands where an event of the conversation "c" wants to.
func refuse(ctx context.Context, c Config, dir, constraint, create, remove, text string) (func() error, error) {
	d, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &store{db: d, generation: generationOf(dir)}
	name := fmt.Sprintf("refuse_%d", s.generation)
	id := events.ConversationID{Tenant: "t", ID: "c"}
	params := map[string]any{"key": s.key(id), "text": text, "call": s.keyIn(id, events.ToolCallKey("of "+text))}
	undo := func() error {
		defer func() { _ = d.close() }()
		if _, err := d.write(ctx, remove, params); err != nil {
			return err
		}
		_, err := d.write(ctx, "DROP CONSTRAINT "+name, nil)
		return err
	}
	if _, err = d.write(ctx, fmt.Sprintf(constraint, name), nil); err == nil {
		_, err = d.write(ctx, create, params)
	}
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
