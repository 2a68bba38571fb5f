package neo4jstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	neo4jdeploy "mneme/deploy/neo4j"
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

// A server that dies while it makes a constraint leaves the index of it.
func TestTheRemainsOfAConstraintAreNotInTheWay(t *testing.T) {
	t.Parallel()
	c := Config{URI: neo4jtest.Own(t).URI()}
	d, err := open(t.Context(), c)
	require.NoError(t, err)
	defer func() { _ = d.close() }()
	names := []any{"mneme_schema", "files_failed_event", "message_seq"}
	for _, statement := range []string{
		"CREATE INDEX mneme_schema FOR (s:MnemeSchema) ON (s.n)",
		"CREATE INDEX files_failed_event FOR (f:FilesFailedEvent) ON (f.generation, f.seq)",
		"CREATE INDEX message_seq FOR (m:Message) ON (m.conversation, m.seq)",
	} {
		_, err := d.write(t.Context(), statement, nil)
		require.NoError(t, err)
	}
	var programs errgroup.Group
	for range 6 {
		programs.Go(func() error { return errorOf(OpenGraph(t.Context(), c, 1)) })
	}
	require.NoError(t, programs.Wait())
	made, err := d.read(t.Context(), "SHOW CONSTRAINTS YIELD name WHERE name IN $names RETURN name", map[string]any{"names": names})
	require.NoError(t, err)
	require.Len(t, made, len(names))
}

// released are the checksums of the migrations that databases out there have. One is
// added with each migration; none is ever changed.
var released = []string{
	"710a0c7d380bcda368b76be1470ab9d9c6f175557e2cd978774be5f389658ff1",
	"8790f7e904d278850ec9fc0cf3fc972ac0bc89481b3a0215803cef0bbfb31666",
	"3d445aa5aafff65f4d265f4c102bfb34b9fbba3f83b9e3ed867a28d498de2053",
	"0324a524a70f41f8552d3bf433fba20eeeb5a62169e0f90db1f5f2ce71b127d8",
	"468ff74d01eb82a9018481c5884cd2ed6cb3c46774caa6f49907ad1fb358e374",
	"66d96a276b0c83bed06100c0dd9acbeea47429dec572a23c0080da0770c3ee7a",
	"16ab266f654f6ebe540369c8418b56878bcd60df91549ea4756f844803b68d40",
}

func TestAReleasedMigrationStaysAsItIs(t *testing.T) {
	t.Parallel()
	require.Len(t, migrations, len(released))
	for i, m := range migrations {
		require.Equal(t, released[i], m.checksum(), "migration %d: write a new one instead", i+1)
	}
}

// What a program may find, all on one server, one after the other.
func TestWhatAProgramMayFindOnAServer(t *testing.T) {
	t.Parallel()
	certificates := neo4jtest.TLS(t)
	c := Config{Password: "a-password-of-a-test", CAFile: certificates.CAFile}
	c.URI = neo4jtest.Own(t, func(server *neo4jdeploy.Config) { server.TLS, server.Password = &certificates, c.Password }).URI()
	t.Run("it asks for the password and shows its certificate", func(t *testing.T) { certified(t, c) })
	t.Run("a schema that another program made is refused", func(t *testing.T) { schemas(t, c) })
}

func certified(t *testing.T, c Config) {
	d, err := open(t.Context(), c)
	require.NoError(t, err)
	require.NoError(t, d.close())
	wrong := c
	wrong.Password = "another"
	_, err = OpenGraph(t.Context(), wrong, 1)
	require.ErrorIs(t, err, ErrUnauthorized)
	unknown := c
	unknown.CAFile, unknown.ConnectTimeout = "", time.Second
	_, err = OpenGraph(t.Context(), unknown, 1)
	require.Error(t, err, "the system knows no such authority")
}

func schemas(t *testing.T, c Config) {
	ctx := t.Context()
	d, err := open(ctx, c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.close()) })
	run := func(statement string) {
		t.Helper()
		_, err := d.write(ctx, statement, nil)
		require.NoError(t, err)
	}
	refused := func(want error, text string) {
		t.Helper()
		for name, open := range map[string]func() error{
			"graph":             func() error { return errorOf(OpenGraph(ctx, c, 1)) },
			"files":             func() error { return errorOf(OpenFiles(ctx, c, 1)) },
			"summaries":         func() error { return errorOf(OpenSummaries(ctx, c, 1)) },
			"embeddings":        func() error { return errorOf(OpenEmbeddings(ctx, c, 1)) },
			"embeddings cache":  func() error { return errorOf(OpenEmbeddingsCache(ctx, c)) },
			"graph reader":      func() error { return errorOf(OpenGraphReader(ctx, c, 1)) },
			"files reader":      func() error { return errorOf(OpenFilesReader(ctx, c, 1)) },
			"summaries reader":  func() error { return errorOf(OpenSummariesReader(ctx, c, 1)) },
			"embeddings reader": func() error { return errorOf(OpenEmbeddingsReader(ctx, c, 1)) },
		} {
			err := open()
			if want == ErrForeign && name[len(name)-1] == 'r' { // a reader finds out only that mneme was never here
				require.ErrorIs(t, err, ErrNotThere, name)
				continue
			}
			require.ErrorIs(t, err, want, name)
			require.ErrorContains(t, err, text, name)
		}
	}

	_, err = OpenGraphReader(ctx, c, 1)
	require.ErrorIs(t, err, ErrNotThere)

	run("CREATE (:Message {text: 'of somebody else'})")
	refused(ErrForeign, "1 nodes labelled Message")
	run("MATCH (m:Message) DELETE m")

	for range 2 { // the second time there is nothing to do
		g, f := openBoth(t, c, 1)
		require.NotNil(t, g)
		require.NotNil(t, f)
	}
	r, err := OpenGraphReader(ctx, c, 1)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	indexes, err := d.read(ctx, "SHOW INDEXES YIELD state RETURN state, count(*)", nil)
	require.NoError(t, err)
	require.Len(t, indexes, 1)
	require.Equal(t, "ONLINE", indexes[0][0])

	run("CREATE (:MnemeSchema {n: 99, name: 'of the future', sha256: 'x'})")
	refused(ErrSchema, "use a newer mneme")
	run("MATCH (s:MnemeSchema {n: 99}) DELETE s")

	run("MATCH (s:MnemeSchema {n: 1}) SET s.was = s.sha256, s.sha256 = 'other'")
	refused(ErrSchema, "its schema 1")
	run("MATCH (s:MnemeSchema {n: 1}) SET s.sha256 = s.was")

	run("CREATE (:Message {text: 'of somebody else'})")
	_, _ = openBoth(t, c, 2) // who was here first owns the labels
}

func errorOf[T interface{ Close() error }](opened T, err error) error {
	if err == nil {
		_ = opened.Close()
	}
	return err
}
