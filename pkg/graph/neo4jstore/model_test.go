package neo4jstore

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/storetest"
)

// told is a small history with every kind of row.
func told() *storetest.History {
	h := storetest.NewHistory()
	h.Time = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	yes, no, took := true, false, 12.5
	message := func(c, id, role, text string) {
		h.Add(c, &events.MessageCreated{
			MessageID: id, Role: role, Content: text, Reasoning: "because", Speaker: "s", Session: "1", Model: "m", Usage: json.RawMessage(`{"in":1}`), Origin: "compaction",
			References: []events.Reference{{File: "/w/a.go", StartLine: 3, EndLine: 9, Name: "main"}},
		})
	}
	call := func(c, id, tool, path string) {
		h.Add(c, &events.ToolCalled{ToolCallID: id, MessageID: "a1", ToolName: tool, Arguments: json.RawMessage(fmt.Sprintf(`{"file_path":%q}`, path)), Iteration: 1})
	}
	result := func(c, id string, success *bool) {
		h.Add(c, &events.ToolReturned{ToolCallID: id, Success: success, Result: events.TextResult("four"), Error: "e", DurationMS: &took})
	}
	h.Add("one", &events.ConversationStarted{Title: "First", Tags: []string{"x"}, Agent: "a", Model: "m", Cwd: "/w", Project: "p", Profile: "f", MaxContextChars: 9})
	message("one", "u1", "user", "change it")
	message("one", "a1", "assistant", "I do")
	call("one", "k1", "Edit", "/w/a.go")
	result("one", "k1", &no)
	call("one", "k2", "Edit", "/w/a.go")
	result("one", "k2", &yes)
	call("one", "k3", "Edit", "/w/b.go")
	result("one", "k3", &yes)
	call("one", "k4", "Read", "/w/b.go") // never answered
	title := "Renamed"
	h.Add("one", &events.ConversationUpdated{Title: &title})
	h.Add("two", &events.ConversationStarted{Title: "Second", BranchedFrom: &events.BranchedAt{ConversationID: "one", MessageID: "u1"}})
	message("two", "u2", "user", strings.Repeat("long ", graph.MaxBodyBytes))
	h.Add("two", &events.ToolCalled{ToolCallID: "k5", MessageID: "later", ToolName: "Read", Arguments: json.RawMessage(`{"file_path":"/w/a.go"}`)})
	h.Add("two", &events.ToolCalled{ToolCallID: "k6", MessageID: "later", ToolName: "Read", Arguments: json.RawMessage(`{"file_path":"/w/a.go"}`)})
	h.Add("two", &events.ToolCalled{ToolCallID: "k7", MessageID: "later", ToolName: "Grep", Arguments: json.RawMessage(`{"pattern":"x"}`)})
	h.Add("two", &events.ToolReturned{ToolCallID: "early", Result: events.TextResult("x"), Files: []events.FileOp{{Path: "/w/c", Op: "read"}}})
	h.Add("two", &events.ToolCalled{ToolCallID: "k8", MessageID: "later", ToolName: "Read", Arguments: json.RawMessage(`{"file_path":"/w/a.go"}`)})
	h.Add("two", &events.ToolReturned{ToolCallID: "k8", Success: &no, Result: events.TextResult("four"), DurationMS: &took})
	h.Add("orphan", &events.ConversationStarted{BranchedFrom: &events.BranchedAt{ConversationID: "nobody", MessageID: "m"}})
	h.Add("gone", &events.ConversationStarted{Cwd: "/w"})
	h.Add("gone", &events.ConversationDeleted{})
	h.Add("one", &events.ToolCondensed{ToolCallID: "k1", Content: strings.Repeat("short ", graph.MaxBodyBytes), Model: "m", PromptHash: "h", CharsIn: 9, CharsOut: 5})
	summary := func(id string, level int, last uint64, supersedes string, children ...string) {
		h.Add("one", &events.SummaryWritten{
			SummaryID: id, Level: level, FirstSeq: 1, LastSeq: last, FirstTurn: 1, LastTurn: 1, Children: children, Supersedes: supersedes, Conversation: "said by " + id, Actions: "done",
			Findings: []string{"f"}, Topics: []string{"t"}, Files: []string{"/w/a.go"}, Tools: []string{"Read"}, TurnCount: 1,
			Method: "extractive", FallbackReason: "no model", Model: "m", PromptHash: "h", CharsIn: 9, CharsOut: 5,
		})
	}
	summary("s1", 1, 11, "")
	summary("p1", 2, 11, "", "s1")
	summary("s1'", 1, 11, "s1")
	summary("p1'", 2, 11, "p1", "s1'")
	h.Time = time.Time{}
	h.Add("two", &events.ToolReturned{ToolCallID: "unheard", Result: events.TextResult("x")}) // without a time
	return h
}

// tell builds both read models from a history, in one batch or in one batch per event.
func tell(t *testing.T, h *storetest.History, together bool) (*Graph, *Files) {
	t.Helper()
	c, generation := testConfig(t), int(rand.Int64())
	g, err := OpenGraph(t.Context(), c, generation)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	f, err := OpenFiles(t.Context(), c, generation)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	p, q := graph.Projection(), graph.FilesProjection(files.DefaultTable())
	cp, err := g.Acquire(t.Context(), 0, p.Fingerprint())
	require.NoError(t, err)
	cq, err := f.Acquire(t.Context(), 0, q.Fingerprint())
	require.NoError(t, err)
	for batch := range slices.Chunk(h.Messages, map[bool]int{true: len(h.Messages), false: 1}[together]) {
		cp, err = p.Apply(t.Context(), g, cp, batch)
		require.NoError(t, err)
		cq, err = q.Apply(t.Context(), f, cq, batch)
		require.NoError(t, err)
	}
	return g, f
}

func TestTheExampleQueriesAnswerTheirQuestions(t *testing.T) {
	t.Parallel()
	g, _ := tell(t, told(), true)
	const dimensions = 7 // used by no other test
	embedded := openEmbedded(t, testConfig(t), g.generation, dimensions)
	embedded.history.Messages = told().Messages[:3]
	embedded.apply(t)
	vectors, err := sized(dimensions).Embed(t.Context(), "t", []string{"change it"})
	require.NoError(t, err)
	params := map[string]any{"vector": floats(vectors[0]), "listed": g.tenantKey("t"), "path": "/w/a.go", "file": "/w/a.go", "id": "one", "turn": 1}
	answers := map[string][][]any{
		"Which conversations read or changed a file?": {{"two", "Second", []any{"read"}, 2}, {"one", "Renamed", []any{"write"}, 1}},
		"Which conversations are about a piece of code?": {
			{"two", "Second", "main", 3, 9, 1, 13}, {"one", "Renamed", "main", 3, 9, 2, 3},
		},
		"Which tools fail most?":                           {{"Edit", 3, 1, 33.3}, {"Read", 4, 1, 25.0}},
		"How long do tools take?":                          {{"Edit", 3, 12.5, 12.5}, {"Read", 1, 12.5, 12.5}},
		"Which files are changed together in one turn?":    {{"/w/a.go", "/w/b.go", 1}},
		"Which calls never got a result?":                  {{"two", 1, "Grep", `{"pattern":"x"}`}, {"two", 1, "Read", `{"file_path":"/w/a.go"}`}, {"two", 1, "Read", `{"file_path":"/w/a.go"}`}, {"one", 1, "Read", `{"file_path":"/w/b.go"}`}},
		"Which tools' results fill the context?":           {{"Edit", 3, 12, 4}, {"Read", 1, 4, 4}},
		"Which conversations branched, and where?":         {{"one", "two", 1, "change it"}},
		"Which messages are closest in meaning to a text?": {{"one", "user", "change it", 1.0}, {"one", "assistant", "I do", 0.63}},
		"How did a conversation describe itself over time?": {
			{1, 11, "First", []any{"x"}, "active", "m"}, {11, nil, "Renamed", []any{"x"}, "active", "m"},
		},
		"What is the story of a conversation so far?":                    {{2, 1, 1, "said by p1'"}},
		"Which failed calls were retried successfully in the same turn?": {{"Edit", 1, 2.0}},
		"How much happens per day?":                                      {{"2026-03-01", 2, 3, 9 + 4 + 5*graph.MaxBodyBytes}},
		"What happened in a turn?": {
			{2, "user", "change it", nil, nil, nil, nil},
			{3, "assistant", "I do", "Edit", `{"file_path":"/w/a.go"}`, false, "four"}, {3, "assistant", "I do", "Edit", `{"file_path":"/w/a.go"}`, true, "four"},
			{3, "assistant", "I do", "Edit", `{"file_path":"/w/b.go"}`, true, "four"}, {3, "assistant", "I do", "Read", `{"file_path":"/w/b.go"}`, nil, nil},
		},
	}
	require.Len(t, answers, len(Queries()))
	for _, q := range Queries() {
		rows, err := g.Read(t.Context(), q.Cypher, params)
		require.NoError(t, err, q.Question)
		got, err := json.MarshalIndent(rows, "", " ")
		require.NoError(t, err)
		want, err := json.MarshalIndent(answers[q.Question], "", " ")
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got), q.Question)
	}
}

func TestDocumentedAndWrittenPropertiesAreTheSame(t *testing.T) {
	t.Parallel()
	g, _ := tell(t, told(), false)
	tellSummaries(t, g.generation)
	tellEmbeddings(t, g.generation)
	tellProjects(t, g.generation)
	tellInsight(t, g.generation)
	tellCodebase(t, g.generation)
	prefixOf := func(label string) string {
		if label == "CachedEmbedding" { // belongs to no generation
			return hex.EncodeToString(cachePrefix)
		}
		return g.prefix()
	}
	for _, label := range Labels() {
		if label.Name == "CodeEvent" { // each is a version or a scan too
			continue
		}
		documented := []string{}
		for _, p := range label.Properties {
			documented = append(documented, p.Name)
		}
		rows, err := g.Read(t.Context(), fmt.Sprintf(`MATCH (n:%s) WHERE coalesce(n.conversation, n.key) STARTS WITH $prefix
			AND (NOT $label IN ['SummariesEvent', 'ProjectsEvent', 'Scope'] OR size(labels(n)) = 1) UNWIND keys(n) AS name RETURN DISTINCT name`, label.Name), // marks, ranges, steps and scopes of code have these labels too
			map[string]any{"prefix": prefixOf(label.Name), "label": label.Name})
		require.NoError(t, err)
		stored := []string{}
		for _, row := range rows {
			stored = append(stored, row[0].(string))
		}
		require.NotEmpty(t, stored, label.Name)
		require.Subset(t, documented, stored, label.Name)
		for _, name := range documented {
			require.True(t, slices.Contains(stored, name) || rarely[label.Name+"."+name], "%s.%s is documented and not stored", label.Name, name)
		}
	}
	for _, r := range Relationships() {
		rows, err := g.Read(t.Context(), fmt.Sprintf("MATCH (a:%s)-[r:%s]->(:%s) WHERE coalesce(a.conversation, a.key) STARTS WITH $prefix RETURN count(r)", r.From, r.Type, r.To),
			map[string]any{"prefix": g.prefix()})
		require.NoError(t, err)
		require.Positive(t, rows[0][0], r.Type)
	}
}

// rarely lists properties that no node of the small history has at its end.
var rarely = map[string]bool{
	"Conversation.sweep": true, "FilesConversation.sweep": true, "SummariesConversation.sweep": true, "EmbeddingsConversation.sweep": true, "ProjectsConversation.sweep": true, "InsightConversation.sweep": true, "CodeConversation.sweep": true, // only while one is emptied
	"Message.reasoning_hash": true, "Message.updated_at": true, "ToolCall.arguments_hash": true, "ToolCall.updated_at": true, "ToolResult.result_hash": true, // long texts, no time
	"Summary.updated_at": true, "Condensed.updated_at": true, "Condensed.payload_key": true,
	"CodeVersion.payload_key": true, "CodeScan.payload_key": true, "Version.payload_key": true, "Version.updated_at": true, // no such event has a payload id
}
