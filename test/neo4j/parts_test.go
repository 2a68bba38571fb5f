package neo4j_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph/storetest"
)

// pause returns a channel that receives after some milliseconds.
func pause(ms int) <-chan time.Time { return time.After(time.Duration(ms) * time.Millisecond) }

// referring returns a history whose messages refer to the same files and scopes, and whose
// calls touch the same files, in a different order for each history.
func referring(conversation string, messages, files int, backwards bool) []eventlog.Message {
	h := storetest.NewHistory()
	for i := range messages {
		var refs []events.Reference
		var touched []events.FileOp
		for n := range files {
			if backwards {
				n = files - 1 - n
			}
			file := fmt.Sprintf("/src/%d-%d.go", i, n)
			refs = append(refs, events.Reference{File: file, StartLine: 1, EndLine: 9, Name: "main"})
			touched = append(touched, events.FileOp{Path: file, Op: "edit"})
		}
		h.Add(conversation, &events.MessageCreated{MessageID: fmt.Sprint("m", i), Role: "user", Content: "x", References: refs})
		h.Add(conversation, &events.ToolCalled{ToolCallID: fmt.Sprint("k", i), ToolName: "apply", Arguments: []byte("{}")})
		h.Add(conversation, &events.ToolReturned{ToolCallID: fmt.Sprint("k", i), Result: events.TextResult("x"), Files: touched})
	}
	return h.Messages
}

func TestPartitionsCanMakeTheSameFilesConcurrently(t *testing.T) {
	t.Parallel()
	messages := 20
	if mnemetest.All {
		messages = 400
	}
	c, g := shared(t), generation(t)
	inGraph, inFiles := openGraph(t, c, g), openFiles(t, c, g)
	histories := [][]eventlog.Message{referring("a", messages, 8, false), referring("b", messages, 8, true)}
	var ended sync.WaitGroup
	for partition, list := range histories {
		ended.Go(func() {
			cp, err := inGraph.Acquire(t.Context(), partition, graphs.Fingerprint())
			for err == nil && cp.Seq < list[len(list)-1].Seq {
				rest := since(list, cp.Seq)
				cp, err = graphs.Apply(t.Context(), inGraph, cp, rest[:min(9, len(rest))])
			}
			if err != nil {
				t.Error(err)
			}
		})
		ended.Go(func() {
			cp, err := inFiles.Acquire(t.Context(), partition, tracked.Fingerprint())
			for err == nil && cp.Seq < list[len(list)-1].Seq {
				rest := since(list, cp.Seq)
				cp, err = tracked.Apply(t.Context(), inFiles, cp, rest[:min(9, len(rest))])
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	ended.Wait()
	for _, list := range histories {
		wantGraph, wantFiles := inSQLite(t, list)
		require.Contains(t, hashesOf(t, inGraph), wantGraph.Hashes[0])
		require.Contains(t, hashesOf(t, inFiles), wantFiles.Hashes[0])
	}
	require.Empty(t, failedOf(t, inGraph))
	require.Empty(t, failedOf(t, inFiles))
}

func TestGenerationsInOneDatabaseAreSeparate(t *testing.T) {
	t.Parallel()
	c, one, other := shared(t), generation(t), generation(t)
	h, more := storetest.Realistic(2, 2), storetest.Realistic(1, 1)
	first, second := openGraph(t, c, one), openGraph(t, c, other)
	firstFiles, secondFiles := openFiles(t, c, one), openFiles(t, c, other)
	require.Empty(t, drive(t, graphs, first, 4000, h.Messages))
	require.Empty(t, drive(t, tracked, firstFiles, 4000, h.Messages))
	want, wantFiles := stateOf(t, first), stateOf(t, firstFiles)

	more.Add("conversation-0", &events.ConversationDeleted{})
	require.Empty(t, drive(t, graphs, second, 4000, more.Messages))
	require.Empty(t, drive(t, tracked, secondFiles, 4000, more.Messages))
	require.Equal(t, want, stateOf(t, first))
	require.Equal(t, wantFiles, stateOf(t, firstFiles))
	gone, goneFiles := inSQLite(t, more.Messages)
	require.Equal(t, gone, stateOf(t, second))
	require.Equal(t, goneFiles, stateOf(t, secondFiles))
}

func TestCypherAndLuceneSyntaxInTextIsHarmless(t *testing.T) {
	t.Parallel()
	odd := []string{
		"`", "``) DETACH DELETE n //", "' OR 1=1 //", `" OR ""="`, "$key", "$rows.messages", "{}", "}) MATCH (n) DETACH DELETE n", "\\", "\\u0027", "\n", "\r\n\t", "\x00", "a\x00b",
		"AND", "+content:(x)", "title:* OR *", "a~2^5", "[a TO z]", "/re.*/", "😀", "👩‍👩‍👧", "\u202Ertl", "\uFEFF", "\uFFFD", "é", "e\u0301",
		strings.Repeat("x", 512), strings.Repeat("😀", 128), "null", "true", "1", "1e400", "-0",
	}
	h := storetest.NewHistory()
	for i, s := range odd {
		h.AddAs(s, s, &events.ConversationStarted{Title: s, Tags: []string{s}, Cwd: "/" + s, Project: s, Agent: s})
		long := "/" + strings.Repeat(s+"/", 1+9000/len(s)) + "x.go"
		h.Add(s, &events.MessageCreated{MessageID: s, Role: "user", Content: s, References: []events.Reference{{File: "/" + s, Name: s}, {File: long, Name: s}}})
		h.Add(s, &events.ToolCalled{ToolCallID: s, ToolName: s, Arguments: []byte(`{}`), MessageID: s})
		h.Add(s, &events.ToolReturned{ToolCallID: s, Result: events.TextResult(s), Error: s, Files: []events.FileOp{{Path: "/" + s, Op: "edit"}, {Path: long, Op: "read"}}})
		if i%5 == 0 {
			h.Add(s, &events.ConversationDeleted{Reason: s})
		}
	}
	wantGraph, wantFiles := inSQLite(t, h.Messages)
	c := shared(t)
	for _, batch := range []int{1, 4000} {
		g := generation(t)
		inGraph, inFiles := openGraph(t, c, g), openFiles(t, c, g)
		require.Empty(t, drive(t, graphs, inGraph, batch, h.Messages))
		require.Empty(t, drive(t, tracked, inFiles, batch, h.Messages))
		require.Equal(t, wantGraph, stateOf(t, inGraph))
		require.Equal(t, wantFiles, stateOf(t, inFiles))
	}
}
