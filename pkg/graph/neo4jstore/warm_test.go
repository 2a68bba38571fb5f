package neo4jstore

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWarmSendsAllStatementsAndWritesNothing(t *testing.T) {
	t.Parallel()
	s := openStores(t, testConfig(t))
	warm := func() map[string]bool {
		s.spy.since()
		require.NoError(t, s.graph.Warm(t.Context()))
		require.NoError(t, s.files.Warm(t.Context()))
		sent := map[string]bool{}
		for _, one := range s.spy.since() {
			sent[one.statement] = true
			c := one.summary.Counters()
			require.False(t, c.ContainsUpdates(), one.statement)
		}
		return sent
	}
	warmed := warm()
	s.append(t, "c")
	s.newest(t, "c")
	require.Equal(t, warmed, warm())

	var rare []string // deletion, repair, looking up keys, a new owner
	for _, d := range []dialect{graphLayout.dialect(), filesLayout.dialect()} {
		e := &store{dialect: d}
		rare = append(rare, d.Sweeps...)
		rare = append(rare, d.Relink...)
		rare = append(rare, d.Unlink...)
		rare = append(rare, d.holders, e.engine(makeCheckpoint), e.engine(settle))
	}
	s.spy.since()
	s.append(t, "c")
	s.newest(t, "c")
	for _, one := range s.spy.since() {
		if !warmed[one.statement] && !isOneOf(one.statement, rare) {
			t.Errorf("not warmed:\n%s", one.statement)
		}
	}
}

// requireWarmed warms a store, which must write nothing, and then uses it: every statement
// sent, except rare ones, must have been sent before.
func requireWarmed(t *testing.T, spy *spy, s *store, warm func(context.Context) error, work func()) {
	t.Helper()
	spy.since()
	require.NoError(t, warm(t.Context()))
	warmed := map[string]bool{}
	for _, one := range spy.since() {
		warmed[one.statement] = true
		require.False(t, one.summary.Counters().ContainsUpdates(), one.statement)
	}
	work()
	rare := append(slices.Clone(s.Sweeps), s.holders, s.engine(makeCheckpoint), s.engine(settle))
	for _, one := range spy.since() {
		if !warmed[one.statement] && !isOneOf(one.statement, rare) {
			t.Errorf("not warmed:\n%s", one.statement)
		}
	}
}

func isOneOf(statement string, list []string) bool {
	return slices.Contains(list, statement) || strings.Contains(statement, "sweep") || strings.HasSuffix(statement, "DELETE f") || strings.HasSuffix(statement, "DELETE c")
}

func TestPiecesPassRowsAsLists(t *testing.T) {
	t.Parallel()
	p := NewPiece("p", "UNWIND $in.rows AS r MATCH (n {key: r.key}) SET n.a = r.a, n.b = r.b, n.key = r.key")
	require.Equal(t, "UNWIND $in.rows AS r MATCH (n {key: r[0]}) SET n.a = r[1], n.b = r[2], n.key = r[0]", p.statement)
	require.Equal(t, In("rows", []any{[]any{"k", nil, 2}}), p.params([]any{Row{"b": 2, "key": "k", "other": 3}}))
	values := NewPiece("v", "UNWIND $in.rows AS key MATCH (n {key: key}) DELETE n")
	require.Equal(t, In("rows", []any{"k"}), values.params([]any{"k"}))
}
