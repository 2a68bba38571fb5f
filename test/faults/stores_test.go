package main

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

// graphOf makes the read model "graph" of a log and returns its file.
func graphOf(t *testing.T, log []eventlog.Message) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "graph.db")
	store, err := sqlitestore.OpenGraph(t.Context(), path)
	require.NoError(t, err)
	fill(t, graph.Projection(), store, log)
	require.NoError(t, store.Close())
	return path
}

// fill applies a log to a new store.
func fill[U projection.Unit](t *testing.T, declared projection.Projection[U], store projection.Store[U], log []eventlog.Message) {
	t.Helper()
	cp, err := store.Acquire(t.Context(), 0, declared.Fingerprint())
	require.NoError(t, err)
	_, err = declared.Apply(t.Context(), store, cp, log)
	require.NoError(t, err)
}

// checkFile returns the findings when a read model is checked against a log.
func checkFile(t *testing.T, log []eventlog.Message, path string) string {
	t.Helper()
	opened, err := sqlitestore.OpenReader(path, sqlitestore.GraphCodec)
	require.NoError(t, err)
	store := &sqlitestore.Graph{Store: opened}
	defer func() { require.NoError(t, store.Close()) }()
	var all []string
	found := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	o := oracleOf(t, log)
	require.NoError(t, o.checkGraph(t.Context(), "sqlite", store, found))
	require.NoError(t, o.graph.checkModel(t.Context(), "sqlite", store, found))
	stored, err := hashes(t.Context(), store)
	require.NoError(t, err)
	replayed, err := sqlitestore.OpenReader(graphOf(t, log), sqlitestore.GraphCodec)
	require.NoError(t, err)
	right := &sqlitestore.Graph{Store: replayed}
	defer func() { require.NoError(t, right.Close()) }()
	other, err := hashes(t.Context(), right)
	require.NoError(t, err)
	o.checkHashes("graph", stored, other, found)
	return strings.Join(all, "\n")
}

// withTrouble is a log with everything that a campaign puts into it: copies, an event with the id
// of another one, one that is not JSON, a deleted conversation, and an event after the deletion.
func withTrouble(t *testing.T) []eventlog.Message {
	t.Helper()
	r := record(t)
	first, _, err := r.log[0].Decode()
	require.NoError(t, err)
	other, err := events.New(first.Subject, first.Source, first.ID, &events.MessageCreated{MessageID: "other", Role: "user", Content: "something else"})
	require.NoError(t, err)
	r.store(t, other)
	broken := r.store(t, other)
	r.log[broken.Seq-1].Data = []byte("{")
	second, _, err := r.log[1].Decode()
	require.NoError(t, err)
	deleted, err := events.New(second.Subject, second.Source, "deleted", &events.ConversationDeleted{})
	require.NoError(t, err)
	r.store(t, deleted)
	r.store(t, second.Event)
	r.log = append(r.log, r.log[0], r.log[5])
	return renumber(r.log)
}

func TestACorrectReadModelHasNoFindings(t *testing.T) {
	t.Parallel()
	log := withTrouble(t)
	require.Empty(t, checkFile(t, log, graphOf(t, log)))
}

func TestAReadModelOfAnotherLogIsFound(t *testing.T) {
	t.Parallel()
	log := withTrouble(t)
	without := renumber(slices.Delete(slices.Clone(log), 9, 10))
	require.Contains(t, checkFile(t, log, graphOf(t, without)), "lost: ")
	require.Contains(t, checkFile(t, without, graphOf(t, log)), "foreign: ")
	swapped := slices.Clone(log)
	swapped[9], swapped[12] = swapped[12], swapped[9]
	require.Contains(t, checkFile(t, log, graphOf(t, renumber(swapped))), "changed: ")
	// Only the order of two conversations differs: their rows are at the wrong sequences.
	swapped = slices.Clone(log)
	swapped[9], swapped[10] = swapped[10], swapped[9]
	require.Contains(t, checkFile(t, log, graphOf(t, renumber(swapped))), "changed: ")
}

// doctor damages rows without the engine's knowledge.
func doctor(t *testing.T, path, statement string) {
	t.Helper()
	if statement == "" {
		return
	}
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	result, err := db.ExecContext(t.Context(), statement)
	require.NoError(t, err)
	n, err := result.RowsAffected()
	require.NoError(t, err)
	require.Positive(t, n, "it doctored nothing")
	require.NoError(t, db.Close())
}

func TestErrorsInAReadModelAreFound(t *testing.T) {
	t.Parallel()
	for statement, says := range map[string]string{
		"DELETE FROM message WHERE seq = (SELECT max(seq) FROM message)":             "lost: ",
		"DELETE FROM tool_call WHERE seq = (SELECT min(seq) FROM tool_call)":         "lost: ",
		"UPDATE message SET seq = 100000 WHERE seq = (SELECT min(seq) FROM message)": "changed: ",
		"INSERT INTO tool_result SELECT 100000, c, n, turn, step, event_id, source, time, tool_call_id, success, result, result_bytes, result_chars, result_hash, error, duration_ms FROM tool_result LIMIT 1": "doubled: ",
		"UPDATE message SET event_id = 'nobody' WHERE seq = (SELECT min(seq) FROM message)":                                                                                                                    "foreign: ",
		"UPDATE message SET content = content || '!' WHERE seq = (SELECT max(seq) FROM message)":                                                                                                               "is not the same",
		"UPDATE checkpoint SET applied = applied + 1":                                                          "events applied",
		"UPDATE checkpoint SET duplicates = 0":                                                                 "duplicates dropped",
		"UPDATE checkpoint SET halted = 'for a reason'":                                                        "is halted: for a reason",
		"DELETE FROM failed WHERE seq = (SELECT min(seq) FROM failed)":                                         "is not listed as failed",
		"INSERT INTO failed SELECT 1, tenant, conversation, event_id, type, class, reason FROM failed LIMIT 1": "sequence 1 is listed as failed",
		"UPDATE failed SET class = 'error'":                                                                    "is listed as failed (error)",
	} {
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			log := withTrouble(t)
			path := graphOf(t, log)
			doctor(t, path, statement)
			require.Contains(t, checkFile(t, log, path), says)
		})
	}
}
