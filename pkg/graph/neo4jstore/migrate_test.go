package neo4jstore

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	neo4jdeploy "mneme.dev/mneme/deploy/neo4j"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/neo4jtest"
)

// released holds the checksums of released migrations. Add one with each migration and never
// change one.
var released = []string{
	"710a0c7d380bcda368b76be1470ab9d9c6f175557e2cd978774be5f389658ff1",
	"8790f7e904d278850ec9fc0cf3fc972ac0bc89481b3a0215803cef0bbfb31666",
	"3d445aa5aafff65f4d265f4c102bfb34b9fbba3f83b9e3ed867a28d498de2053",
	"0324a524a70f41f8552d3bf433fba20eeeb5a62169e0f90db1f5f2ce71b127d8",
	"468ff74d01eb82a9018481c5884cd2ed6cb3c46774caa6f49907ad1fb358e374",
	"66d96a276b0c83bed06100c0dd9acbeea47429dec572a23c0080da0770c3ee7a",
	"16ab266f654f6ebe540369c8418b56878bcd60df91549ea4756f844803b68d40",
	"aa3573158ba86b6ef65b06e22a6ad3c01c09c873b001d4035052c08d68ac710f",
	"dceec39986f4dd97270aef6c770d1c6e6820517f4134326bb448c7c164321540",
	"04fc8b0823d439ddb16180746e4d4ff65ff31b3b7aa0e46f8aa1c65fd94c1fa5",
	"2bd45443eeae0a1b968310a4d1fff57363bea24964ba3f887fb7e56b1b2da009",
}

func TestReleasedMigrationsNeverChange(t *testing.T) {
	t.Parallel()
	require.Len(t, migrations, len(released))
	for i, m := range migrations {
		require.Equal(t, released[i], m.checksum(), "migration %d: write a new one instead", i+1)
	}
}

// A separate server, on which everything happens once and in this order, because making the
// schema takes longer than everything else.
func TestTheSchemaOfAServer(t *testing.T) {
	t.Parallel()
	certificates := neo4jtest.TLS(t)
	c := patient(Config{Password: "a-password-of-a-test", CAFile: certificates.CAFile, CertFile: certificates.ClientCertFile, KeyFile: certificates.ClientKeyFile})
	c.URI = neo4jtest.Own(t, func(server *neo4jdeploy.Config) { server.TLS, server.Password = &certificates, c.Password }).URI()
	certified(t, c)
	d, err := open(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.close()) })
	for _, step := range []struct {
		name string
		test func(*testing.T, *db)
	}{
		{"another program's nodes are refused", foreign},
		{"a constraint that another program never completes is not waited for", unfinished},
		{"programs that start together make it once, whatever remains of a constraint", together},
		{"the index of vectors moves from messages to passages, once", moved},
		{"what is documented is what there is", documented},
		{"an older, a newer and another one are refused", refusing},
		{"generations", generations},
		{"who was here first owns the labels", first},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.test(t, d) }) {
			return
		}
	}
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
	anonymous := c
	anonymous.CertFile, anonymous.KeyFile = "", ""
	_, err = OpenGraph(t.Context(), anonymous, 1)
	require.ErrorIs(t, err, ErrTLS, "the server demands a certificate of the client")
}

// execute sends a statement.
func execute(t *testing.T, d *db, statement string) {
	t.Helper()
	_, err := d.write(t.Context(), statement, nil)
	require.NoError(t, err)
}

// refused checks that every store and every reader is refused.
func refused(t *testing.T, c Config, want error, text string) {
	t.Helper()
	ctx := t.Context()
	for name, open := range map[string]func() error{
		"graph":             func() error { return errorOf(OpenGraph(ctx, c, 1)) },
		"files":             func() error { return errorOf(OpenFiles(ctx, c, 1)) },
		"summaries":         func() error { return errorOf(Open(ctx, c, 1, SummariesCodec)) },
		"embeddings":        func() error { return errorOf(Open(ctx, c, 1, EmbeddingsCodec)) },
		"embeddings cache":  func() error { return errorOf(OpenEmbeddingsCache(ctx, c)) },
		"graph reader":      func() error { return errorOf(OpenReader(ctx, c, 1, GraphCodec)) },
		"files reader":      func() error { return errorOf(OpenReader(ctx, c, 1, FilesCodec)) },
		"summaries reader":  func() error { return errorOf(OpenReader(ctx, c, 1, SummariesCodec)) },
		"embeddings reader": func() error { return errorOf(OpenReader(ctx, c, 1, EmbeddingsCodec)) },
	} {
		err := open()
		if want == ErrForeign && strings.HasSuffix(name, "reader") { // a reader only finds that mneme never wrote here
			require.ErrorIs(t, err, ErrNotThere, name)
			continue
		}
		require.ErrorIs(t, err, want, name)
		require.ErrorContains(t, err, text, name)
	}
}

func foreign(t *testing.T, d *db) {
	require.ErrorIs(t, errorOf(OpenReader(t.Context(), d.Config, 1, GraphCodec)), ErrNotThere)
	execute(t, d, "CREATE (:Message {text: 'of somebody else'})")
	refused(t, d.Config, ErrForeign, "nodes labelled Message")
	execute(t, d, "MATCH (m:Message) DELETE m")
}

// The server makes the index of a constraint in a transaction of its own, before the one that asks for
// the constraint commits.
func unfinished(t *testing.T, d *db) {
	session := d.driver.NewSession(t.Context(), neo4j.SessionConfig{})
	defer func() { require.NoError(t, session.Close(t.Context())) }()
	tx, err := session.BeginTransaction(t.Context())
	require.NoError(t, err)
	_, err = tx.Run(t.Context(), "CREATE CONSTRAINT others_key FOR (o:Others) REQUIRE o.key IS UNIQUE", nil)
	require.NoError(t, err)
	pending, err := d.Read(t.Context(), selectPending, map[string]any{"names": []string{"others_key"}})
	require.NoError(t, err)
	require.Len(t, pending, 1)

	ctx, cancel := context.WithTimeout(t.Context(), mnemetest.Patience)
	defer cancel()
	own := Layout{Projection: "mine", Conversation: "MyConversation", Event: "MyEvent"}
	execute(t, d, "CREATE INDEX mine_serving FOR (s:MineServing) ON (s.key)") // remains of a constraint
	missing, err := d.missing(ctx, own)
	require.NoError(t, err)
	require.Len(t, missing, len(own.schema()))
	require.NoError(t, d.make(ctx, own))
	missing, err = d.missing(ctx, own)
	require.NoError(t, err)
	require.Empty(t, missing)

	require.NoError(t, tx.Rollback(t.Context()))
	for _, statement := range own.schema() { // the next tests look at the whole server
		kind, _, _ := strings.Cut(strings.TrimPrefix(statement, "CREATE "), " ")
		execute(t, d, "DROP "+kind+" "+nameOf(statement))
	}
}

// beforeMove is the number of migrations before the vector index moved.
const beforeMove = 4

// A server that dies while making a constraint leaves the constraint's index.
func together(t *testing.T, d *db) {
	names := []any{"mneme_schema", "files_failed_event", "message_seq"}
	execute(t, d, "CREATE INDEX mneme_schema FOR (s:MnemeSchema) ON (s.n)")
	execute(t, d, "CREATE INDEX files_failed_event FOR (f:FilesFailedEvent) ON (f.generation, f.seq)")
	execute(t, d, "CREATE INDEX message_seq FOR (m:Message) ON (m.conversation, m.seq)")
	start := make(chan struct{})
	var programs errgroup.Group
	for range 8 {
		programs.Go(func() error {
			own, err := open(t.Context(), d.Config)
			if err != nil {
				return err
			}
			defer func() { _ = own.close() }()
			<-start
			for n := range beforeMove {
				if err := own.apply(t.Context(), n); err != nil {
					return err
				}
			}
			return own.awaitIndexes(t.Context(), Indexes())
		})
	}
	close(start)
	require.NoError(t, programs.Wait())
	made, err := d.Read(t.Context(), "SHOW CONSTRAINTS YIELD name WHERE name IN $names RETURN name", map[string]any{"names": names})
	require.NoError(t, err)
	require.Len(t, made, len(names))
	applied, err := d.migrations(t.Context())
	require.NoError(t, err)
	require.Len(t, applied, beforeMove)
}

// Previously an index with this name was on messages.
func moved(t *testing.T, d *db) {
	of := func() any {
		rows, err := d.Read(t.Context(), "SHOW INDEXES YIELD name, labelsOrTypes, state WHERE name = 'message_embedding_index' RETURN labelsOrTypes + state", nil)
		require.NoError(t, err)
		require.Len(t, rows, 1)
		return rows[0][0]
	}
	require.Equal(t, []any{"Message", "ONLINE"}, of())
	require.ErrorIs(t, errorOf(OpenReader(t.Context(), d.Config, 1, EmbeddingsCodec)), ErrNotThere)
	var programs errgroup.Group
	for n := range 6 {
		programs.Go(func() error {
			if n%2 == 0 {
				return errorOf(OpenGraph(t.Context(), d.Config, 1))
			}
			return errorOf(Open(t.Context(), d.Config, 1, EmbeddingsCodec))
		})
	}
	require.NoError(t, programs.Wait())
	require.Equal(t, []any{"Passage", "ONLINE"}, of())
	applied, err := d.migrations(t.Context())
	require.NoError(t, err)
	require.Len(t, applied, len(migrations))
}

func documented(t *testing.T, d *db) {
	openBoth(t, d.Config, 1) // the second time there is nothing to do
	require.NoError(t, errorOf(OpenReader(t.Context(), d.Config, 1, GraphCodec)))
	names := map[string]int{}
	for _, i := range Indexes() {
		names[i.Name]++
	}
	rows, err := d.Read(t.Context(), "SHOW INDEXES YIELD name, type, state WHERE type <> 'LOOKUP' RETURN name, state", nil)
	require.NoError(t, err)
	made := map[string]int{}
	for _, row := range rows {
		made[row[0].(string)]++
		require.Equal(t, "ONLINE", row[1], row[0])
	}
	require.Equal(t, made, names)
}

func refusing(t *testing.T, d *db) {
	execute(t, d, "CREATE (:MnemeSchema {n: 99, name: 'of the future', sha256: 'x'})")
	refused(t, d.Config, ErrSchema, "use a newer mneme")
	execute(t, d, "MATCH (s:MnemeSchema {n: 99}) DELETE s")

	execute(t, d, "MATCH (s:MnemeSchema {n: 1}) SET s.was = s.sha256, s.sha256 = 'other'")
	refused(t, d.Config, ErrSchema, "its schema 1")
	execute(t, d, "MATCH (s:MnemeSchema {n: 1}) SET s.sha256 = s.was")
}

func first(t *testing.T, d *db) {
	execute(t, d, "CREATE (:Message {text: 'of somebody else'})")
	openBoth(t, d.Config, 2)
}

func errorOf[T interface{ Close() error }](opened T, err error) error {
	if err == nil {
		_ = opened.Close()
	}
	return err
}
