package health

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
)

// stored applies payloads as the events of conversation c, from sequence 1 on.
func stored(t *testing.T, payloads []events.Payload) graph.Reader {
	t.Helper()
	store, err := sqlitestore.OpenGraph(t.Context(), filepath.Join(t.TempDir(), "graph-1.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	p := graph.Projection()
	at, err := store.Acquire(t.Context(), 0, p.Fingerprint())
	require.NoError(t, err)
	var messages []eventlog.Message
	for i, payload := range payloads {
		e, err := events.New("c", "test", fmt.Sprint(i), payload)
		require.NoError(t, err)
		subject, err := events.Address{Tenant: "default", Conversation: "c", Kind: events.Kind(e.Type)}.Subject()
		require.NoError(t, err)
		header, body := events.EncodeMessage(e)
		messages = append(messages, eventlog.Message{Seq: uint64(i + 1), Subject: subject, Header: nats.Header(header), Data: body})
	}
	_, err = p.Apply(t.Context(), store, at, messages)
	require.NoError(t, err)
	return store
}

func TestAReportHasTheFirstOfManyFindings(t *testing.T) {
	t.Parallel()
	c := New("")
	told := (&told{}).user("go")
	for i := range MaxFindings + 5 {
		told.bash(fmt.Sprint("make ", i), "!no").bash(fmt.Sprint("make ", i), "!no")
	}
	for _, row := range told.rows {
		c.Add(row)
	}
	r := Report{}.with(c)
	require.Equal(t, MaxFindings+5, r.Found)
	require.Len(t, r.Findings, MaxFindings)
	require.Equal(t, "make 0", r.Findings[0].Subject)
}

func TestALongConversationIsCheckedInParts(t *testing.T) {
	t.Parallel()
	list := []events.Payload{&events.MessageCreated{MessageID: "u", Role: "user", Content: "go"}}
	for i := range 200 {
		id, yes := fmt.Sprint("k", i), true
		list = append(list, &events.ToolCalled{ToolCallID: id, ToolName: "Bash", Arguments: json.RawMessage(`{"command":"git status"}`)},
			&events.ToolReturned{ToolCallID: id, Result: events.TextResult("clean"), Success: &yes})
	}
	r := stored(t, list)
	id := events.ConversationID{Tenant: "default", ID: "c"}

	whole, err := Check(t.Context(), r, id, 0, graph.Latest)
	require.NoError(t, err)
	require.Len(t, whole.Findings, 1)
	require.Equal(t, Loop, whole.Findings[0].Rule)
	require.Equal(t, 200, whole.Findings[0].Count)
	require.Len(t, whole.Findings[0].Seqs, MaxSeqs)
	require.Equal(t, []uint64{2, 400}, []uint64{whole.Findings[0].FirstSeq, whole.Findings[0].LastSeq})
	require.Equal(t, []int{401, 0}, []int{whole.Rows, int(whole.Next)})

	rows, parts := 0, 0
	for from := uint64(0); ; parts++ {
		part, err := check(t.Context(), r, id, from, graph.Latest, 150)
		require.NoError(t, err)
		rows += part.Rows
		require.Len(t, part.Findings, 1)
		if from = part.Next; from == 0 {
			break
		}
	}
	require.Equal(t, []int{401, 2}, []int{rows, parts})

	exact, err := check(t.Context(), r, id, 0, graph.Latest, 401)
	require.NoError(t, err)
	require.Zero(t, exact.Next, "nothing is left")
	then, err := Check(t.Context(), r, id, 0, 5)
	require.NoError(t, err)
	require.Empty(t, then.Findings)
	_, err = Check(t.Context(), r, events.ConversationID{Tenant: "other", ID: "c"}, 0, graph.Latest)
	require.ErrorIs(t, err, graph.ErrNotFound)
}
