package neo4jstore

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/codebase"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/storetest"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/recall/static"
)

// refuseProject makes a node that claims to be the index "c" of this project, and a constraint that no two are. Only such a
// node can violate it, because no two indexes have the same id.
func refuseProject(ctx context.Context, c Config, dir, name string) (undo func() error, err error) {
	s, err := Open(ctx, c, generationOf(dir), CodebaseCodec)
	if err != nil {
		return nil, err
	}
	if err := s.define(ctx, "CREATE CONSTRAINT of_a_test_of_code IF NOT EXISTS FOR (c:CodeConversation) REQUIRE (c.generation, c.tenant, c.id, c.project) IS UNIQUE"); err != nil {
		return nil, err
	}
	node := "(c:CodeConversation {key: $key, generation: $generation, tenant: 't', id: 'c', project: $project})"
	params := map[string]any{"key": s.prefix() + "refused", "generation": s.generation, "project": name}
	undo = func() error {
		defer func() { _ = s.Close() }()
		_, err := s.write(context.WithoutCancel(ctx), "MATCH "+node+" DELETE c", params)
		return err
	}
	_, err = s.write(ctx, "CREATE "+node, params)
	return undo, err
}

func codeBackend(t *testing.T) storetest.Backend[codebase.Store] {
	c := testConfig(t)
	return storetest.Backend[codebase.Store]{
		SharedEngine: sharedEngine,
		Open: func(ctx context.Context, dir string) (codebase.Store, error) {
			s, err := Open(ctx, c, generationOf(dir), CodebaseCodec)
			return &Codebase{s}, err
		},
		Refuse: func(ctx context.Context, dir, text string) (func() error, error) {
			return refuseProject(ctx, c, dir, text)
		},
	}
}

func TestCodebaseConformance(t *testing.T) {
	t.Parallel()
	storetest.RunCodebase(t, codeBackend(t))
}

func TestConversationsAboutAFunction(t *testing.T) {
	t.Parallel()
	g, _ := backends(t)
	storetest.RunNaming(t, g, codeBackend(t))
}

// tellCodebase builds the read model "code" of a small history, with every kind of row.
func tellCodebase(t *testing.T, generation int) *Codebase {
	t.Helper()
	opened, err := Open(t.Context(), testConfig(t), generation, CodebaseCodec)
	require.NoError(t, err)
	s := &Codebase{opened}
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	h := storetest.NewHistory()
	file := func(id, path, text string) {
		h.Add(id, &events.CodeIndexed{Project: "p", Path: path, Hash: strings.Repeat("a", 64), Language: "go", Lines: 3, Left: 1, Scopes: []events.CodeScope{
			{Name: "Retry", Kind: "function", StartLine: 1, EndLine: 2, Text: text}, {Kind: "block", StartLine: 3, EndLine: 3, Text: "other words"},
		}})
	}
	file("code:p", "a.go", "func Retry(upload int) { again() }")
	h.Add("code:p", &events.CodeIndexed{Project: "p", Path: "b.go", Hash: strings.Repeat("a", 64), Removed: true})
	h.Add("code:p", &events.CodeScanned{Project: "p", Root: "/r", Done: true, Files: 1})
	file("code:gone", "a.go", "x")
	h.Add("code:gone", &events.ConversationDeleted{})
	declared := codebase.Projection()
	cp, err := s.Acquire(t.Context(), 0, declared.Fingerprint())
	require.NoError(t, err)
	for i := range h.Messages {
		cp, err = declared.Apply(t.Context(), s, cp, h.Messages[i:i+1])
		require.NoError(t, err)
	}
	return s
}

func TestTheVectorIndexOfScopesFindsCode(t *testing.T) {
	t.Parallel()
	s := tellCodebase(t, generationOf(t.Name()))
	require.NoError(t, s.Warm(t.Context()))
	vector := recall.Quantize(static.Embed("a.go Retry upload again"))
	require.Eventually(t, func() bool { // the index is approximate, and shared with other tests
		rows, err := s.Read(t.Context(), `CALL db.index.vector.queryNodes('scope_embedding_content_vector', 200, $vector) YIELD node, score
			WHERE node.conversation = $key RETURN node.name, node.project_path ORDER BY score DESC LIMIT 1`, map[string]any{"vector": floats(vector), "key": s.Key(conversation("code:p"))})
		require.NoError(t, err)
		return len(rows) == 1 && rows[0][0] == "Retry" && rows[0][1] == "a.go"
	}, mnemetest.Patience, 100*time.Millisecond)
}

func TestReadsOfAnIndexAreSeeks(t *testing.T) {
	t.Parallel()
	s := tellCodebase(t, generationOf(t.Name()))
	spy := watch(&s.store)
	spy.prefix = "PROFILE "
	id := conversation("code:p")
	list, err := s.Indexes(t.Context(), id.Tenant, graph.Latest)
	require.NoError(t, err)
	require.NotEmpty(t, list)
	_, err = s.Scanned(t.Context(), id, graph.Latest)
	require.NoError(t, err)
	versions, err := s.Versions(t.Context(), id, codebase.VersionQuery{AsOf: graph.Latest, Limit: 10})
	require.NoError(t, err)
	require.Len(t, versions, 2)
	bags, err := s.Bags(t.Context(), id, []uint64{versions[0].Seq})
	require.NoError(t, err)
	require.NotEmpty(t, bags[versions[0].Seq])
	texts, err := s.Texts(t.Context(), id, []uint64{versions[0].Seq})
	require.NoError(t, err)
	require.Len(t, texts[versions[0].Seq], 2)
	_, err = s.Hash(t.Context(), id)
	require.NoError(t, err)
	for _, one := range spy.since() {
		plan, _ := one.summary.Profile().Arguments()["string-representation"].(string)
		for _, operator := range operators(plan) {
			for _, wrong := range forbidden {
				if operator == wrong && !excused(operator, one.statement) {
					t.Errorf("%s in\n%s\n%s", operator, one.statement, plan)
				}
			}
		}
	}
}
