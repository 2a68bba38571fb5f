package bench

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/neo4jtest"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
)

func TestTheBareLoaderMakesTheGraphOfTheEngine(t *testing.T) {
	t.Parallel()
	config := neo4jstore.Config{URI: neo4jtest.URI(t), Password: neo4jtest.Password(), ConnectTimeout: mnemetest.Patience}
	ctx := t.Context()
	s, err := newScratch(ctx, natsdeploy.Settings{}, "")
	require.NoError(t, err)
	defer s.close()
	ok := true
	var list []events.Event
	for i, p := range []struct {
		conversation string
		payload      events.Payload
	}{
		{"branch", &events.ConversationStarted{Title: "a branch before its trunk", Tags: []string{"x", "y"}, BranchedFrom: &events.BranchedAt{ConversationID: "trunk", MessageID: "m1"}}},
		{"trunk", &events.MessageCreated{MessageID: "m1", Role: "user", Content: "hello", References: []events.Reference{{File: "/a.go", StartLine: 1, EndLine: 2}, {File: "/b.go"}}}},
		{"trunk", &events.ToolReturned{ToolCallID: "t1", Result: events.TextResult("before its call"), Success: &ok}},
		{"trunk", &events.ToolCalled{ToolCallID: "t1", MessageID: "m2", ToolName: "Read", Arguments: []byte(`{"path":"/a.go"}`)}},
		{"trunk", &events.MessageCreated{MessageID: "m2", Role: "assistant", Content: "after its call", References: []events.Reference{{File: "/b.go"}}}},
		{"trunk", &events.ToolCalled{ToolCallID: "t2", ToolName: "Read", Arguments: []byte(`{}`)}},
		{"trunk", &events.ConversationUpdated{Title: new("another")}},
		{"trunk", &events.ToolCondensed{ToolCallID: "t1", Content: "short", Model: "m"}},
		{"trunk", &events.SummaryWritten{SummaryID: "s1", Level: 1, FirstSeq: 2, LastSeq: 4, Conversation: "said", Method: "extractive"}},
		{"trunk", &events.SummaryWritten{SummaryID: "s2", Level: 1, FirstSeq: 5, LastSeq: 7, Conversation: "said", Method: "extractive"}},
		{"trunk", &events.SummaryWritten{SummaryID: "p1", Level: 2, FirstSeq: 2, LastSeq: 7, Children: []string{"s1", "s2"}, Conversation: "said", Method: "extractive"}},
		{"other", &events.MessageCreated{MessageID: "m1", Role: "user", Content: "hello"}},
	} {
		e, err := events.New(p.conversation, "test", fmt.Sprint(i), p.payload)
		require.NoError(t, err)
		list = append(list, e)
	}
	acks, err := s.log.PublishAll(ctx, tenant, list)
	require.NoError(t, err)
	head := acks[len(acks)-1].Seq
	b, err := newNeo4jBackend(ctx, config)
	require.NoError(t, err)
	defer b.close()
	defer func() { require.NoError(t, b.clear(t.Context())) }()
	require.NotEmpty(t, b.store().Version)

	_, ends, err := b.graph(ctx, s.log, head)
	require.NoError(t, err)
	want, err := b.read(ctx)
	require.NoError(t, err)
	nodes, ties := count(want)
	require.Equal(t, 3+4+3+2+1+2+3+1, nodes, "conversations, versions, messages, calls, results, scopes, summaries, condensations")
	require.Equal(t, 1+4+3+1+1+3+3+1+2, ties, "branches, versions, messages, calls of a message, results, references, summaries, condensations, children")

	var alone []uint64
	for _, ack := range acks {
		alone = append(alone, ack.Seq)
	}
	for _, ends := range [][]uint64{ends, alone} {
		_, err = b.load(ctx, ends)
		require.NoError(t, err)
		got, err := b.read(ctx)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err = b.files(ctx, s.log, head)
	require.NoError(t, err)
	require.Positive(t, b.left(t))
	require.NoError(t, b.clear(ctx))
	require.Zero(t, b.left(t), "nodes of both projections")
}

// left counts the nodes left in the generation.
func (b *neo4jBackend) left(t *testing.T) int64 {
	found, err := b.query(t.Context(), "MATCH (n) WHERE n.key STARTS WITH $prefix OR n.conversation STARTS WITH $prefix OR n.generation = $generation RETURN count(n)",
		map[string]any{"prefix": fmt.Sprint(b.generation, "/"), "generation": b.generation})
	require.NoError(t, err)
	return found[0].Values[0].(int64)
}

func count(g graphRows) (nodes, ties int) {
	for _, b := range g {
		nodes, ties = nodes+b.nodes, ties+b.ties
	}
	return nodes, ties
}
