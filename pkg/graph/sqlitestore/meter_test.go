package sqlitestore

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

func TestAMeterCountsStatementsAndRowsOfEachKind(t *testing.T) {
	t.Parallel()
	s := openStores(t)
	var m Meter
	s.graph.Measure(&m)
	for i := range 40 { // a statement of many rows and single ones
		s.add("c", &events.MessageCreated{MessageID: fmt.Sprint("m", i), Role: "user", Content: "where is it?"})
	}
	s.apply(t)
	kinds := map[string]Statements{}
	for _, k := range m.Statements() {
		kinds[k.Kind] = k
	}
	require.EqualValues(t, 40, kinds["INSERT message"].Rows)
	require.Equal(t, 1+40-RowsPerStatement, kinds["INSERT message"].Count)
	require.EqualValues(t, 80, kinds["INSERT identity"].Rows)
	require.EqualValues(t, 1, kinds["INSERT conversation"].Rows)
	require.Zero(t, kinds["COMMIT"].Rows)
	require.Positive(t, kinds["COMMIT"].Took)
	require.Contains(t, kinds, "SELECT conversation")
}

func TestAKindOfStatementIsItsVerbAndItsTable(t *testing.T) {
	t.Parallel()
	for statement, want := range map[string]string{
		"BEGIN IMMEDIATE": "BEGIN",
		Insertion{Into: "message (c, seq)", Width: 2}.statement(2): "INSERT message",
		supersede:   "UPDATE file_access",
		deleteWords: "DELETE words",
		Selection{Columns: "seq", Table: "tracked_call", Key: waitingKey}.statement(2): "SELECT tracked_call",
		selectConversation: "SELECT conversation",
	} {
		kind, _ := kindOf(statement)
		require.Equal(t, want, kind, statement)
	}
}
