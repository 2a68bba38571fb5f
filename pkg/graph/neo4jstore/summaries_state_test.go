package neo4jstore

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme/pkg/graph/storetest"
)

func summariesBackend(t *testing.T) storetest.Backend[storetest.SummariesStore] {
	t.Helper()
	c := testConfig(t)
	require.NoError(t, onlyProfile(t.Context(), c))
	return storetest.Backend[storetest.SummariesStore]{
		Open: func(ctx context.Context, dir string) (storetest.SummariesStore, error) {
			return OpenSummaries(ctx, c, generationOf(dir))
		},
		Refuse: func(ctx context.Context, dir, text string) (func() error, error) {
			return refuseProfile(ctx, c, dir, text)
		},
	}
}

// onlyProfile makes a constraint that no two nodes say to be one conversation with one
// profile. Nothing but refuseProfile meets it: no two conversations have one id.
func onlyProfile(ctx context.Context, c Config) error {
	s, err := OpenSummaries(ctx, c, 1) // makes the schema
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	return s.define(ctx, "CREATE CONSTRAINT of_a_test IF NOT EXISTS FOR (c:SummariesConversation) REQUIRE (c.generation, c.tenant, c.id, c.profile) IS UNIQUE")
}

// refuseProfile makes a node that says to be the conversation "c" with this profile.
func refuseProfile(ctx context.Context, c Config, dir, profile string) (undo func() error, err error) {
	d, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &store{generation: generationOf(dir)}
	node := "(c:SummariesConversation {key: $key, generation: $generation, tenant: 't', id: 'c', profile: $profile})"
	params := map[string]any{"key": s.prefix() + "refused", "generation": s.generation, "profile": profile}
	undo = func() error {
		defer func() { _ = d.close() }()
		_, err := d.write(ctx, "MATCH "+node+" DELETE c", params)
		return err
	}
	_, err = d.write(ctx, "CREATE "+node, params)
	return undo, err
}

func TestSummariesConformance(t *testing.T) {
	t.Parallel()
	storetest.RunSummaries(t, summariesBackend(t))
}
