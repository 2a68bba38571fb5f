package storetest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/codebase"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// RunNaming checks that the conversations about a function are found in two read models of one log, on a backend.
func RunNaming(t *testing.T, ofGraph Backend[graph.Store], ofCode Backend[codebase.Store]) {
	h := NewHistory()
	h.Add("before", message("m", "user", "what does upload/retry.go:5 do?"))
	h.Add("code:p", &events.CodeIndexed{Project: "p", Path: "upload/retry.go", Language: "go", Lines: 9, Hash: fmt.Sprintf("%064d", 1), Scopes: []events.CodeScope{
		{Name: "sendAgain", Kind: "function", StartLine: 1, EndLine: 9, Text: "func sendAgain() {}"},
	}})
	h.Add("code:p", &events.CodeScanned{Project: "p", Root: "/r", Done: true, Files: 1})
	h.Add("name", message("m", "assistant", "It hangs in sendAgain."))
	h.Add("name", message("m2", "assistant", "sendAgainLater is another one."))
	h.Add("declared", about("m", at("/r/upload/retry.go", 9, 12)))
	h.Add("declared", about("m2", at("/r/upload/retry.go", 10, 12)))
	h.Add("file", message("m", "user", "upload/retry.go is too long"))
	h.Add("gone", message("m", "user", "sendAgain"))
	h.Add("gone", &events.ConversationDeleted{})

	dir := t.TempDir()
	g, err := ofGraph.Open(t.Context(), dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	applyAll(t, graph.Projection(), g, h)
	c, err := ofCode.Open(t.Context(), dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	applyAll(t, codebase.Projection(), c, h)

	x := &codebase.Index{}
	require.NoError(t, x.Follow(t.Context(), c, id("code:p")))
	scopes := x.Named("sendAgain", graph.Latest)
	require.Len(t, scopes, 1)
	list, more, err := x.Naming(scopes[0], graph.Latest).Conversations(t.Context(), g, "t", graph.CandidateQuery{Fresh: true})
	require.NoError(t, err)
	require.False(t, more)
	var found []string
	for _, c := range list {
		for _, m := range c.Mentions {
			found = append(found, fmt.Sprint(c.ID.ID, " ", m.Seq, " ", m.MessageID, " ", m.Written))
		}
	}
	require.Equal(t, []string{"declared 6 m ", "name 4 m sendAgain", "before 1 m upload/retry.go:5"}, found)
}

// applyAll applies a history to a store, event by event.
func applyAll[U projection.Unit](t *testing.T, p projection.Projection[U], s projection.Store[U], h *History) {
	t.Helper()
	cp, err := s.Acquire(t.Context(), 0, p.Fingerprint())
	require.NoError(t, err)
	for i := range h.Messages {
		cp, err = p.Apply(t.Context(), s, cp, h.Messages[i:i+1])
		require.NoError(t, err)
	}
}
