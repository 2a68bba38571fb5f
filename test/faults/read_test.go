package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/pkg/window"
)

// asked returns a question about a conversation whose events are all acknowledged.
func asked(t *testing.T) question {
	t.Helper()
	s, err := fixture(t, 1).conversation(1)
	require.NoError(t, err)
	c, err := newConversation(1, s)
	require.NoError(t, err)
	return question{conversation: c, acked: len(s), seen: func(int) int { return 0 }}
}

func TestImpossibleCountsAreFound(t *testing.T) {
	t.Parallel()
	q := asked(t)
	all := len(q.conversation.messages)
	require.Empty(t, q.counts(httpapi.Conversation{MessageCount: all}))
	require.NotEmpty(t, q.counts(httpapi.Conversation{MessageCount: all - 1}), "one is missing")
	require.NotEmpty(t, q.counts(httpapi.Conversation{MessageCount: all + 1}), "a duplicate")
	q.acked, q.seen = 0, func(int) int { return 3 }
	require.Empty(t, q.counts(httpapi.Conversation{MessageCount: 3}))
	require.NotEmpty(t, q.counts(httpapi.Conversation{MessageCount: 2}), "it had three")
}

func TestCountsAreComparedUnlessGenerationsMaySwitch(t *testing.T) {
	t.Parallel()
	r := &reader{marks: map[string]int{}}
	require.Zero(t, r.compare("c")(5))
	require.Equal(t, 5, r.compare("c")(4))
	before := r.compare("c")
	settled := r.unsettle()
	require.Zero(t, before(3), "it began before the rebuild, and ends in it")
	require.Zero(t, r.compare("c")(3))
	amid := r.compare("c")
	settled()
	require.Zero(t, amid(2), "it began in it")
	require.Zero(t, before(2))
	require.Zero(t, r.compare("c")(3), "counts seen before it no longer matter")
	require.Equal(t, 3, r.compare("c")(3))
}

func TestImpossibleMessagesAreFound(t *testing.T) {
	t.Parallel()
	q := asked(t)
	var right []httpapi.Message
	for _, id := range q.conversation.messages {
		right = append(right, httpapi.Message{Row: httpapi.Row{EventID: id}})
	}
	slices.Reverse(right)
	require.Empty(t, q.messages(right))
	require.Empty(t, q.messages(right[:3]))
	require.NotEmpty(t, q.messages(right[1:]), "the newest is missing")
	require.NotEmpty(t, q.messages(slices.Delete(slices.Clone(right), 2, 3)), "one is missing")
	require.NotEmpty(t, q.messages(slices.Insert(slices.Clone(right), 2, right[2])), "a duplicate")
	require.NotEmpty(t, q.messages(append(slices.Clone(right), httpapi.Message{})), "one is nobody's")
	require.NotEmpty(t, q.messages(nil))
	swapped := slices.Clone(right)
	swapped[1], swapped[2] = swapped[2], swapped[1]
	require.NotEmpty(t, q.messages(swapped), "two are out of order")
	q.acked = 0
	require.Empty(t, q.messages(nil))
	require.Empty(t, q.messages(right[1:]))
}

// shown is the end of a context with all messages and calls.
func shown(t *testing.T, s session) []window.Item {
	t.Helper()
	var items []window.Item
	for _, e := range s {
		r, err := events.Record(e)
		require.NoError(t, err)
		switch r.Payload.(type) {
		case *events.MessageCreated:
			items = append(items, window.Item{Kind: window.KindMessage, EventID: e.ID})
		case *events.ToolCalled:
			items = append(items, window.Item{Kind: window.KindToolCall, EventID: e.ID, Result: new("")})
		}
	}
	return items
}

func TestImpossibleContextsAreFound(t *testing.T) {
	t.Parallel()
	q := asked(t)
	says := func(items []window.Item) string {
		return q.context(window.Context{Sections: []window.Section{{Name: window.SectionTurns, Items: items}}})
	}
	right := shown(t, q.conversation.events)
	require.Empty(t, says(right))
	require.Empty(t, says(right[5:]))
	require.NotEmpty(t, says(right[:len(right)-1]), "the newest is missing")
	require.Empty(t, says(append(slices.Clone(right[:5]), window.Item{Kind: window.KindLeftOut})), "it marks the newest as left out")
	require.NotEmpty(t, says(slices.Insert(slices.Clone(right), 2, right[2])), "a duplicate")
	require.NotEmpty(t, says(append(slices.Clone(right), window.Item{EventID: "nobody's"})))
	isMessage := func(i window.Item) bool { return i.Kind == window.KindMessage }
	second := 1 + slices.IndexFunc(right[1:], isMessage)
	require.NotEmpty(t, says(append([]window.Item{right[second]}, slices.Delete(slices.Clone(right), second, second+1)...)), "messages are out of order")
	late := second + slices.IndexFunc(right[second:], func(i window.Item) bool { return i.Kind == window.KindToolCall })
	require.Empty(t, says(slices.Insert(slices.Delete(slices.Clone(right), late, late+1), second, right[late])), "a call stands with an earlier message")
	call := slices.IndexFunc(right, func(i window.Item) bool { return i.Kind == window.KindToolCall })
	right[call].Result = nil
	require.NotEmpty(t, says(right), "a call has lost its result")
	q.acked = 0
	require.Empty(t, says(right), "it may have none")
}

func TestImpossibleSummariesAreFound(t *testing.T) {
	t.Parallel()
	written := func(seq uint64, level int, first, last uint64) httpapi.Summary {
		return httpapi.Summary{Row: httpapi.Row{Seq: seq}, Level: level, FirstSeq: first, LastSeq: last}
	}
	right := []httpapi.Summary{written(20, 1, 1, 9), written(30, 1, 10, 19), written(40, 1, 20, 29), written(41, 2, 1, 19)}
	require.Empty(t, summarised(right))
	require.NotEmpty(t, summarised(slices.Delete(slices.Clone(right), 1, 2)), "one is missing")
	require.NotEmpty(t, summarised(slices.Insert(slices.Clone(right), 1, right[1])), "a duplicate")
	require.NotEmpty(t, summarised([]httpapi.Summary{written(20, 1, 1, 20)}), "it covers itself")

	q := asked(t)
	says := func(list ...httpapi.Summary) string {
		var items []window.Item
		for _, s := range list {
			items = append(items, window.Item{Kind: window.KindSummary, EventID: "summary", Summary: &window.SummaryItem{FirstSeq: s.FirstSeq, LastSeq: s.LastSeq}})
		}
		return q.context(window.Context{Sections: []window.Section{{Items: items}}})
	}
	require.Empty(t, says(right[3], right[2]))
	require.NotEmpty(t, says(right[3], right[1], right[2]), "a consolidated summary is told again")
	require.NotEmpty(t, says(right[2], right[3]), "the end is told first")
}

func TestImpossibleListsAreFound(t *testing.T) {
	t.Parallel()
	right := []httpapi.Conversation{{ID: "c", LastSeq: 3}, {ID: "b", LastSeq: 2}, {ID: "a", LastSeq: 1}}
	require.Empty(t, listed(right))
	require.NotEmpty(t, listed(append(slices.Clone(right), right[0])))
	slices.Reverse(right)
	require.NotEmpty(t, listed(right))
}
