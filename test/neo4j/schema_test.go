package neo4j_test

import (
	"math/rand/v2"
	"testing"

	neo4jdeploy "mneme.dev/mneme/deploy/neo4j"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
)

// diesWhileTheSchemaIsMade kills an empty server, which has little memory for a transaction, while a program makes
// the schema. The next program must be able to make it: that is the one of [isAbsent], which starts before the server is
// back.
func diesWhileTheSchemaIsMade(t *testing.T, o *own) {
	rounds := 1
	if mnemetest.All {
		rounds = 8
	}
	for round := range rounds {
		if round > 0 {
			o.restart()
			_ = openGraph(t, neo4jstore.Config{URI: o.server.URI(), ConnectTimeout: mnemetest.Patience}, 1)
			o.server.Kill()
		}
		o.dir = o.t.TempDir() // a new one each time
		o.start(func(c *neo4jdeploy.Config) { c.TransactionMiB = 8 })
		ended := make(chan error, 1)
		go func() {
			s, err := neo4jstore.OpenGraph(t.Context(), neo4jstore.Config{URI: o.server.URI()}, 1)
			if err == nil {
				err = s.Close()
			}
			ended <- err
		}()
		<-pause(rand.IntN(1500))
		o.server.Kill()
		t.Logf("the first program: %v", <-ended)
	}
}
