package projects

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/graph/storetest"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/window"
)

var update = flag.Bool("update", false, "write the golden files")

// young builds the context of a conversation of a history, with and without its project.
func young(t tester, dir string, h *storetest.History, id string, req window.Request) (with, without *window.Context) {
	ctx := context.Background()
	g, err := sqlitestore.OpenGraph(ctx, filepath.Join(dir, "graph.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = g.Close() })
	declared := graph.Projection()
	cp, err := g.Acquire(ctx, 0, declared.Fingerprint())
	require.NoError(t, err)
	_, err = declared.Apply(ctx, g, cp, h.Messages)
	require.NoError(t, err)
	req.Conversation = events.ConversationID{Tenant: "t", ID: id}
	c, err := g.Conversation(ctx, req.Conversation, graph.Latest)
	require.NoError(t, err)
	source := window.Source{Graph: g}
	without, err = window.Build(ctx, source, req)
	require.NoError(t, err)
	e, err := EarlierThan(ctx, Source{Projects: openStore(t, dir, h)}, []events.ConversationID{req.Conversation}, c.FirstSeq, graph.Latest)
	require.NoError(t, err)
	if e != nil {
		source.Earlier = e
	}
	with, err = window.Build(ctx, source, req)
	require.NoError(t, err)
	return with, without
}

func call(id, tool, arguments string) *events.ToolCalled {
	return &events.ToolCalled{ToolCallID: id, ToolName: tool, Arguments: []byte(arguments)}
}

func said(id, role, text string) *events.MessageCreated {
	return &events.MessageCreated{MessageID: id, Role: role, Content: text}
}

func noted(id, text string) *events.MessageCreated {
	m := said(id, "user", text)
	m.Origin = events.OriginNote
	return m
}

func TestTheContextOfAYoungConversation(t *testing.T) {
	h := storetest.NewHistory()
	yes, no := true, false
	h.Add("first", &events.ConversationStarted{Cwd: "/w/cli", Agent: "scout", Title: "Uploads"})
	h.Add("first", said("u1", "user", "Fix the flaky upload test."))
	h.Add("first", call("k1", "Edit", `{"file_path":"/w/cli/upload/retry.go"}`))
	for i, ok := range []*bool{&no, &yes} {
		h.Add("first", call(fmt.Sprint("r", i), "Bash", `{"command":"go test ./upload"}`))
		h.Add("first", &events.ToolReturned{ToolCallID: fmt.Sprint("r", i), Success: ok, Result: events.TextResult("FAIL: upload: connection reset by peer")})
		h.Add("first", call(fmt.Sprint("e", i), "Edit", `{"file_path":"/w/cli/upload/retry.go"}`))
	}
	h.Add("first", said("a1", "assistant", "The test waited for a fixed time. It now waits for the signal."))
	h.Add("first", said("u2", "user", "No, use the clock of the tests, never sleep."))
	h.Add("first", said("a2", "assistant", "Done: all waits use the clock of the tests."))
	h.Add("other", &events.ConversationStarted{Cwd: "/w/site"})
	h.Add("other", said("u1", "user", "Always write the site in French."))
	h.Add("young", &events.ConversationStarted{Cwd: "/w/cli", Agent: "scout"})
	h.Add("young", said("u1", "user", "The upload test fails again. Why?"))
	h.Add("young", said("a1", "assistant", "I look."))
	with, without := young(t, t.TempDir(), h, "young", window.Request{})
	path := filepath.Join("testdata", "young.md")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(with.Markdown()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), with.Markdown())
	require.Equal(t, without.Sections, with.Sections[1:])
}

func TestEarlierSessionsNeverExceedTheBudgetOrChangeTheRest(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		h := storetest.NewHistory()
		mates := rapid.IntRange(0, 3).Draw(t, "mates")
		for c := range mates + 1 {
			id := fmt.Sprint("c", c)
			h.Add(id, &events.ConversationStarted{Project: "p", Cwd: "/w", Title: hostile.Draw(t, "title"), Agent: hostile.Draw(t, "agent")})
			for k := range rapid.IntRange(0, 5).Draw(t, "turns") {
				h.Add(id, said(fmt.Sprint("u", k), "user", hostile.Draw(t, "request")+id+"#"))
				h.Add(id, said(fmt.Sprint("a", k), "assistant", hostile.Draw(t, "answer")))
				h.Add(id, call(fmt.Sprint("k", k), "Read", fmt.Sprintf(`{"file_path":"/w/d%d/%d.go"}`, k%2, k)))
			}
		}
		id := fmt.Sprint("c", mates)
		req := window.Request{MaxChars: rapid.IntRange(window.MinMaxChars, 6_000).Draw(t, "budget")}
		with, without := young(t, filepath.Join(dir, fmt.Sprint(n)), h, id, req)
		text := with.Markdown()
		require.LessOrEqual(t, utf8.RuneCountInString(text), req.MaxChars)
		require.Equal(t, utf8.RuneCountInString(text), with.Chars)
		if len(with.Sections) == len(without.Sections) {
			require.Equal(t, without, with, "without earlier sessions not a byte is different")
			return
		}
		require.Positive(t, mates)
		require.Equal(t, window.SectionEarlier, with.Sections[0].Name)
		require.Equal(t, without.Sections, with.Sections[1:])
		for _, it := range with.Sections[0].Items {
			require.NotContains(t, it.Markdown(), id+"#", "nothing of the conversation itself")
			require.False(t, strings.ContainsAny(it.Markdown(), "\r\u2028"))
		}
	})
}

// counting counts reads, which run in parallel.
type counting struct {
	project.Reader
	lock sync.Mutex
	reads
}

type reads struct{ calls, entries, digests, names int }

func (c *counting) add(more reads) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.calls, c.entries, c.digests, c.names = c.calls+1, c.entries+more.entries, c.digests+more.digests, c.names+more.names
}

func (c *counting) Members(ctx context.Context, tenant string, q project.MemberQuery) ([]project.Member, error) {
	list, err := c.Reader.Members(ctx, tenant, q)
	c.add(reads{entries: len(list)})
	return list, err
}

func (c *counting) Names(ctx context.Context, tenant string, q project.NameQuery) ([]string, error) {
	list, err := c.Reader.Names(ctx, tenant, q)
	c.add(reads{names: len(list)})
	return list, err
}

func (c *counting) Digests(ctx context.Context, ids []events.ConversationID, asOf uint64) ([]*project.Digest, error) {
	list, err := c.Reader.Digests(ctx, ids, asOf)
	n := 0
	for _, d := range list {
		if d != nil { // a project may have no notes
			n++
		}
	}
	c.add(reads{digests: n})
	return list, err
}

func TestAReadOfALargeProjectCostsWhatASmallOneCosts(t *testing.T) {
	mnemetest.Long(t)
	of := func(conversations int) reads {
		h := storetest.NewHistory()
		for i := range conversations {
			id := fmt.Sprint("c", i)
			h.Add(id, &events.ConversationStarted{Cwd: "/w/cli/.worktrees/1"})
			h.Add(id, said("u", "user", fmt.Sprint("fix the parser of part ", i%7)))
		}
		c := counting{Reader: openStore(t, t.TempDir(), h)}
		_, err := Build(t.Context(), Source{Projects: &c}, Request{Tenant: "t", Project: "/w/cli", Query: "the parser of part 3"})
		require.NoError(t, err)
		return c.reads
	}
	small, large, larger := of(50), of(2_500), of(5_000)
	require.Equal(t, small.calls, larger.calls)
	require.Equal(t, small.names, larger.names)
	require.LessOrEqual(t, larger.digests, project.MaxSessions+1)
	require.LessOrEqual(t, larger.entries, project.MaxEntries)
	require.Equal(t, large, larger)
}
