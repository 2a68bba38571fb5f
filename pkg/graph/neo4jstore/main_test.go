package neo4jstore

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/neo4jtest"
)

func TestMain(m *testing.M) {
	mnemetest.TryLaws(2, 2, 20) // each case takes a hundred round trips
	os.Exit(m.Run())
}

// testConfig is the shared server.
func testConfig(t testing.TB) Config {
	t.Helper()
	return patient(Config{URI: neo4jtest.URI(t), Password: neo4jtest.Password()})
}

// patient waits for an overloaded server.
func patient(c Config) Config {
	c.ConnectTimeout, c.ReadTimeout, c.WriteTimeout = mnemetest.Patience, mnemetest.Patience, mnemetest.Patience
	return c
}

// firstGeneration keeps the rows of this process apart from those of others, and of earlier runs.
var firstGeneration = (1 + rand.IntN(1<<20)) << 32

// generationOf returns a separate generation for each name.
func generationOf(name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return firstGeneration + int(h.Sum32())
}

// openBoth opens a generation of both stores.
func openBoth(t *testing.T, c Config, generation int) (*Graph, *Files) {
	t.Helper()
	g, err := OpenGraph(t.Context(), c, generation)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	f, err := OpenFiles(t.Context(), c, generation)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return g, f
}
