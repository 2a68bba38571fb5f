// Package neo4j_test makes Neo4j fail in every way that a user can encounter, and checks what
// the programs report and what the graph holds afterwards. MNEME_TEST_ALL=1 does more of the
// same: more kills, more lost connections, longer conversations.
package neo4j_test

import (
	"hash/fnv"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/neo4jtest"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

// shared returns the configuration of the server that all tests share.
func shared(t *testing.T) neo4jstore.Config {
	return neo4jstore.Config{URI: neo4jtest.URI(t), Password: neo4jtest.Password(), ConnectTimeout: mnemetest.Patience}
}

// generation returns a generation that no other test writes.
func generation(t *testing.T) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(t.TempDir() + t.Name()))
	return int(h.Sum64() >> 2)
}

var (
	graphs  = graph.Projection()
	tracked = graph.FilesProjection(files.DefaultTable())
)

// drive applies messages of partition 0 to a store like a projector: in batches, and
// continuing from the store's checkpoint after every error. It returns the errors.
func drive[U projection.Unit](t *testing.T, p projection.Projection[U], s projection.Store[U], batch int, messages []eventlog.Message) (errs []error) {
	t.Helper()
	last := messages[len(messages)-1].Seq
	for {
		cp, err := s.Acquire(t.Context(), 0, p.Fingerprint())
		for err == nil {
			rest := since(messages, cp.Seq)
			if len(rest) == 0 {
				require.Equal(t, last, cp.Seq)
				return errs
			}
			cp, err = p.Apply(t.Context(), s, cp, rest[:min(batch, len(rest))])
		}
		errs = append(errs, err)
		require.Less(t, len(errs), 1000, "it does not end: %v", err)
		require.NoError(t, t.Context().Err())
	}
}

// since returns the messages after a sequence.
func since(messages []eventlog.Message, seq uint64) []eventlog.Message {
	for i := range messages {
		if messages[i].Seq > seq {
			return messages[i:]
		}
	}
	return nil
}

// state is the content of a read model, without values that depend on its history.
type state struct {
	Seq, Applied, Duplicates uint64
	Failed                   []projection.Failed
	Hashes                   []projection.ConversationHash
}

func stateOf(t *testing.T, s projection.ReadStore) (st state) {
	t.Helper()
	cps, err := s.Checkpoints(t.Context())
	require.NoError(t, err)
	require.Len(t, cps, 1)
	st.Seq, st.Applied, st.Duplicates = cps[0].Seq, cps[0].Applied, cps[0].Duplicates
	st.Failed, st.Hashes = failedOf(t, s), hashesOf(t, s)
	return st
}

func failedOf(t *testing.T, s projection.ReadStore) []projection.Failed {
	t.Helper()
	failed, err := s.Failed(t.Context(), projection.FailedQuery{Limit: 1000})
	require.NoError(t, err)
	return failed
}

func hashesOf(t *testing.T, s projection.ReadStore) (list []projection.ConversationHash) {
	t.Helper()
	require.NoError(t, s.Hashes(t.Context(), func(h projection.ConversationHash) error {
		list = append(list, h)
		return nil
	}))
	return list
}

// inSQLite returns the state that the same messages make in SQLite.
func inSQLite(t *testing.T, messages []eventlog.Message) (inGraph, inFiles state) {
	t.Helper()
	g, err := sqlitestore.OpenGraph(t.Context(), filepath.Join(t.TempDir(), "graph.db"))
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Close()) }()
	f, err := sqlitestore.OpenFiles(t.Context(), filepath.Join(t.TempDir(), "files.db"))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	require.Empty(t, drive(t, graphs, g, 4000, messages))
	require.Empty(t, drive(t, tracked, f, 4000, messages))
	return stateOf(t, g), stateOf(t, f)
}

func openGraph(t *testing.T, c neo4jstore.Config, generation int) *neo4jstore.Graph {
	t.Helper()
	s, err := neo4jstore.OpenGraph(t.Context(), c, generation)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func openFiles(t *testing.T, c neo4jstore.Config, generation int) *neo4jstore.Files {
	t.Helper()
	s, err := neo4jstore.OpenFiles(t.Context(), c, generation)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}
