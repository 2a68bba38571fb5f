package view_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/testdata"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/recall"
)

// BenchmarkFirstSearch searches a long conversation, made of the messages of recorded coding agents, with an empty cache: the
// cost of reading its index.
func BenchmarkFirstSearch(b *testing.B) {
	const n = 85_792
	var recorded []events.MessageCreated
	for e := range testdata.Events(b, "claude_code") {
		if e.Kind == "message" {
			recorded = append(recorded, events.MessageCreated{Role: e.Role, Content: e.Content})
		}
	}
	var messages []events.Payload
	for i := range n {
		m := recorded[i%len(recorded)]
		m.MessageID = fmt.Sprint(i)
		messages = append(messages, &m)
	}
	s := newStore(b)
	for part := range slices.Chunk(messages, 1_000) {
		s.add(b, "c", part...)
	}
	b.ReportAllocs()
	defer mnemetest.ReportCPU(b)()
	for b.Loop() {
		c := view.NewCache(1<<30, view.BuiltIn{})
		found, err := c.Of(view.Source{Messages: s.model}).Search(b.Context(), id("c"), recall.Query{Text: "the failing test of the session parser", Limit: 100})
		require.NoError(b, err)
		require.NotEmpty(b, found.Hits)
	}
}
