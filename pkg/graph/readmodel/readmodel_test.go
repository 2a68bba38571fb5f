package readmodel_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

// named is a read model of another name that stores what "files" does.
func named(name string) *readmodel.Spec[*graph.FilesUnit] {
	spec := &readmodel.Files().Spec
	lite := *spec.SQLite
	spec.Projection.Name, lite.Projection, spec.SQLite, spec.Neo4j = name, name, &lite, nil
	return spec
}

func TestASetRefusesWrongDeclarations(t *testing.T) {
	t.Parallel()
	files := readmodel.Place{Dir: t.TempDir()}
	server := readmodel.Place{Neo4j: &neo4jstore.Config{}}
	set, err := readmodel.NewSet(files, named("mine"), named("yours"))
	require.NoError(t, err)
	require.Len(t, set, 2)

	_, err = readmodel.NewSet(files, named("mine"), named("yours"), named("mine"))
	require.ErrorIs(t, err, readmodel.ErrTwice)
	require.EqualError(t, err, "read model mine: the name is taken; choose another name")
	_, err = readmodel.NewSet(files, named("graph"))
	require.ErrorIs(t, err, readmodel.ErrTwice)

	_, err = readmodel.NewSet(server, named("mine"))
	require.ErrorIs(t, err, readmodel.ErrNoCodec)
	require.EqualError(t, err, "read model mine: no codec for this backend: neo4j; add one to its Spec, or use another backend")

	other := named("mine")
	other.SQLite = &sqlitestore.FilesCodec
	_, err = readmodel.NewSet(files, other)
	require.EqualError(t, err, `read model mine: its codec for sqlite is named "files"; give both the same name`)

	for _, unknown := range []string{"dev.mneme.message.edited.v1", "short", ""} {
		wrong := named("mine")
		wrong.Projection.Reducers = map[string]projection.Reducer[*graph.FilesUnit]{unknown: nil}
		_, err = readmodel.NewSet(files, wrong)
		require.ErrorContains(t, err, "unknown event type")
		_, err = wrong.Open(t.Context(), files, 1)
		require.ErrorContains(t, err, "unknown event type")
	}
	foreign := named("mine")
	foreign.Projection.Reducers = map[string]projection.Reducer[*graph.FilesUnit]{"com.example.build.finished": func(*graph.FilesUnit, *events.Recorded) error { return nil }}
	_, err = readmodel.NewSet(files, foreign)
	require.NoError(t, err)
}

func TestAWrongSchemaIsRefusedWhenTheFileIsMade(t *testing.T) {
	t.Parallel()
	wrong := named("mine")
	wrong.SQLite.Schema = "CREATE TABLE conversation (c INTEGER PRIMARY KEY, tenant TEXT, id TEXT);"
	at := readmodel.Place{Dir: t.TempDir()}
	_, err := wrong.Open(t.Context(), at, 1)
	require.ErrorContains(t, err, "no such column: deleted_seq")
	good, err := named("mine").Open(t.Context(), at, 1)
	require.NoError(t, err, "nothing is left of the first attempt")
	require.NoError(t, good.Close())
}

func TestOursAreWhatTheyWere(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"graph", "files", "summaries", "embeddings"}, readmodel.Names())
	for _, m := range readmodel.Ours() {
		require.NotEmpty(t, m.Program)
		require.Equal(t, m.Name, m.Of().Name())
		if m.Computed {
			require.NotEmpty(t, m.Needs)
			require.Error(t, m.Of().Check("sqlite"), "it is only to be read")
			continue
		}
		require.NoError(t, m.Of().Check("sqlite"))
		require.NoError(t, m.Of().Check("neo4j"))
	}
	require.Zero(t, readmodel.Find("nobody"))
}

func TestACanceledRebuildLeavesTheOldGeneration(t *testing.T) {
	t.Parallel()
	log, stop, err := openLog(t.Context(), t.TempDir())
	require.NoError(t, err)
	t.Cleanup(stop)
	spec, at := named("mine"), readmodel.Place{Dir: t.TempDir()}
	require.NoError(t, spec.Rebuild(t.Context(), log, at, readmodel.Options{}))
	generations, err := spec.Generations(t.Context(), at)
	require.NoError(t, err)
	before, err := generations.Builds(t.Context(), "mine")
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, spec.Rebuild(ctx, log, at, readmodel.Options{Progress: func(uint64, uint64) { cancel() }}), context.Canceled)
	after, err := generations.Builds(t.Context(), "mine")
	require.NoError(t, err)
	require.Equal(t, before, after)
	_, err = spec.Verify(t.Context(), log, at, readmodel.Options{})
	require.NoError(t, err)
}
