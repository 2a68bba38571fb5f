package neo4j_test

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	neo4jdeploy "mneme.dev/mneme/deploy/neo4j"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/neo4jtest"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
)

// TestAServerThatDiesWhileTheSchemaIsMade kills an empty server while a program makes the
// schema. The next program must be able to make it.
func TestAServerThatDiesWhileTheSchemaIsMade(t *testing.T) {
	t.Parallel()
	rounds := 1
	if mnemetest.All {
		rounds = 8
	}
	for range rounds {
		dir, err := os.MkdirTemp(t.TempDir(), "") // a new one each time
		require.NoError(t, err)
		server := neo4jtest.Own(t, func(c *neo4jdeploy.Config) { c.Dir = dir })
		ended := make(chan error, 1)
		go func() {
			s, err := neo4jstore.OpenGraph(t.Context(), neo4jstore.Config{URI: server.URI()}, 1)
			if err == nil {
				err = s.Close()
			}
			ended <- err
		}()
		<-pause(rand.IntN(1500))
		server.Kill()
		t.Logf("the first program: %v", <-ended)
		server = neo4jtest.Restart(t, server)
		_ = openGraph(t, neo4jstore.Config{URI: server.URI()}, 1)
		server.Kill()
	}
}
