package neo4j_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	neo4jdeploy "mneme/deploy/neo4j"
	"mneme/internal/mnemetest/neo4jtest"
	"mneme/pkg/graph/neo4jstore"
	"mneme/pkg/graph/storetest"
)

func TestBatchesTooLargeForTheServersMemoryAreHalved(t *testing.T) {
	t.Parallel()
	server := neo4jtest.Own(t, func(c *neo4jdeploy.Config) { c.TransactionMiB = 16 })
	h := storetest.Realistic(3, 150)
	wantGraph, _ := inSQLite(t, h.Messages)
	s := openGraph(t, neo4jstore.Config{URI: server.URI()}, 1)
	require.Empty(t, drive(t, graphs, s, 4000, h.Messages))
	require.Equal(t, wantGraph, stateOf(t, s))
}
