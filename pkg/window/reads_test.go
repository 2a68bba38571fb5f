package window_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/window"
)

// counting is a source that counts the rows it returns.
type counting struct {
	window.Graph
	files  window.Files
	recall window.Recall
	rows   int
	reads  int
}

func (s *counting) source() window.Source { return window.Source{Graph: s, Files: s, Recall: s.recall} }

func (s *counting) count(rows int) { s.rows, s.reads = s.rows+rows, s.reads+1 }

func (s *counting) Messages(ctx context.Context, id events.ConversationID, q graph.MessageQuery) ([]graph.Message, error) {
	list, err := s.Graph.Messages(ctx, id, q)
	s.count(len(list))
	return list, err
}

func (s *counting) MessagesAt(ctx context.Context, id events.ConversationID, seqs []uint64) ([]graph.Message, error) {
	list, err := s.Graph.MessagesAt(ctx, id, seqs)
	s.count(len(list))
	return list, err
}

func (s *counting) Transcript(ctx context.Context, id events.ConversationID, q graph.TranscriptQuery) ([]graph.Entry, error) {
	list, err := s.Graph.Transcript(ctx, id, q)
	s.count(len(list))
	return list, err
}

func (s *counting) Results(ctx context.Context, id events.ConversationID, ids []graph.Ref, asOf uint64) (map[graph.Ref]graph.ToolResult, error) {
	s.count(len(ids))
	return s.Graph.Results(ctx, id, ids, asOf)
}

func (s *counting) Calls(ctx context.Context, id events.ConversationID, ids []graph.Ref, asOf uint64) (map[graph.Ref]graph.ToolCall, error) {
	s.count(len(ids))
	return s.Graph.Calls(ctx, id, ids, asOf)
}

func (s *counting) Files(ctx context.Context, id events.ConversationID, q graph.FileQuery) ([]graph.FileAccess, error) {
	list, err := s.files.Files(ctx, id, q)
	s.count(len(list))
	return list, err
}

// steady is a conversation of identical turns with 10 rows each.
func steady(t testing.TB, id string, turns int) []events.Event {
	c := newTalk(t, id)
	for i := range turns {
		c.user(fmt.Sprintf("Question %06d: %s", i, strings.Repeat("what ", 20)))
		for k := range 3 {
			call := fmt.Sprintf("%06d-%d", i, k)
			c.assistant("I look at it. " + strings.Repeat("word ", 30))
			c.call(call, "read_file", args{"path": fmt.Sprintf("src/%03d.go", (i*3+k)%500)})
			c.result(call, true, strings.Repeat("line of code\n", 60))
		}
	}
	return c.events
}

// oneTurn is a single turn of many steps after a short one.
func oneTurn(t testing.TB, id string, steps int) []events.Event {
	c := newTalk(t, id)
	c.user("The plan.")
	c.user("Do it all.")
	for i := range steps {
		call := fmt.Sprintf("%06d", i)
		c.assistant("Next. " + strings.Repeat("word ", 30))
		c.call(call, "run", args{"command": "make"})
		c.result(call, true, strings.Repeat("line of output\n", 60))
	}
	return c.events
}

func TestALongConversationReadsNoMoreRowsThanAShortOne(t *testing.T) {
	s := newStore(t)
	s.apply(steady(t, "short", 200))
	s.apply(steady(t, "long", 2_000))
	s.apply(oneTurn(t, "short turn", 700))
	s.apply(oneTurn(t, "long turn", 6_700))
	for _, pair := range [][2]string{{"short", "long"}, {"short turn", "long turn"}} {
		for _, strategy := range window.Strategies() {
			for _, budget := range []int{1_000, 10_000, 100_000} {
				t.Run(fmt.Sprint(pair[1], " ", strategy, " ", budget), func(t *testing.T) {
					var rows, reads [2]int
					for i, id := range pair {
						src := &counting{Graph: s.graph, files: s.files, recall: s.source().Recall}
						c, err := window.Build(t.Context(), src.source(), window.Request{Conversation: idOf(id), MaxChars: budget, Strategy: strategy})
						require.NoError(t, err)
						if strategy != window.StrategyPruned { // which shows 10 messages
							assert.Greater(t, c.Chars, (budget-c.Manifest.Frame)*7/10, "the budget is used")
						}
						for _, m := range c.Manifest.Sections {
							assert.LessOrEqual(t, m.Used, m.Budget, m.Name)
						}
						rows[i], reads[i] = src.rows, src.reads
					}
					t.Logf("rows %v, reads %v", rows, reads)
					if strategy == window.StrategyHybrid || strategy == window.StrategyRelevant { // the length of what is found only shows when it is read
						rows[0], reads[0] = rows[0]*3/2, reads[0]+4
					}
					assert.LessOrEqual(t, rows[1], rows[0])
					assert.LessOrEqual(t, reads[1], reads[0])
				})
			}
		}
	}
}

// The first instruction is found even between other conversations' events, and after any number of
// messages of other roles.
func TestTheFirstInstructionIsFoundWithFewReads(t *testing.T) {
	s := newStore(t)
	c := newTalk(t, "wanted")
	c.add(&events.ConversationStarted{Title: "T"})
	s.apply(c.events)
	s.apply(steady(t, "other", 500))
	c.events = nil
	for range 300 {
		c.say("system", "notice")
	}
	c.user("The first instruction.")
	s.apply(c.events)
	s.apply(steady(t, "another", 500))
	c = newTalk(t, "wanted")
	c.n = 100_000
	for i := range 400 {
		c.user(fmt.Sprintf("Question %d. %s", i, strings.Repeat("why ", 50)))
		c.assistant("Because.")
	}
	s.apply(c.events)
	for _, strategy := range window.Strategies() {
		src := &counting{Graph: s.graph, files: s.files, recall: s.source().Recall}
		got, err := window.Build(t.Context(), src.source(), window.Request{Conversation: idOf("wanted"), MaxChars: 2_000, Strategy: strategy})
		require.NoError(t, err)
		assert.Contains(t, got.Markdown(), "[Turn 1]")
		assert.Contains(t, got.Markdown(), "The first instruction.")
		assert.Less(t, src.reads, 60)
		t.Logf("%s: %d rows in %d reads", strategy, src.rows, src.reads)
	}
}

func BenchmarkBuild(b *testing.B) {
	s := newStore(b)
	s.apply(steady(b, "short", 200))
	s.apply(steady(b, "long", 10_000))
	for _, id := range []string{"short", "long"} {
		for _, budget := range []int{10_000, 100_000} {
			b.Run(fmt.Sprint(id, "/", budget), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := window.Build(b.Context(), s.source(), window.Request{Conversation: idOf(id), MaxChars: budget}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
