package neo4jstore

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"mneme/internal/mnemetest/neo4jtest"
)

func TestProgramsThatStartTogetherMakeTheSchemaOnce(t *testing.T) {
	t.Parallel()
	c := Config{URI: neo4jtest.Own(t).URI()}
	start := make(chan struct{})
	var programs errgroup.Group
	for range 8 {
		programs.Go(func() error {
			<-start
			g, err := OpenGraph(t.Context(), c, 1)
			if err != nil {
				return err
			}
			return g.Close()
		})
	}
	close(start)
	require.NoError(t, programs.Wait())

	d, err := open(t.Context(), c)
	require.NoError(t, err)
	defer func() { _ = d.close() }()
	applied, err := d.migrations(t.Context())
	require.NoError(t, err)
	require.Len(t, applied, len(migrations))
}
