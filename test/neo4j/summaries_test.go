package neo4j_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/graph/storetest"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
)

var summaries = summary.Projection()

// random makes histories of agents that work in several conversations, with ids and tenants
// whose order depends on bytes. It summarizes what is due like a summarizer, and sometimes
// adds invalid summaries.
type random struct {
	*rand.Rand
	history *storetest.History
	names   []events.ConversationID
}

func newRandom(seed uint64) *random {
	r := &random{Rand: rand.New(rand.NewPCG(seed, 0)), history: storetest.NewHistory()}
	for _, tenant := range []string{"t", "t-u", "t/", "é", "\uFFFD", "😀"} {
		for _, id := range []string{"a", "a-b", "\uFFFD", "😀", "Z"} {
			r.names = append(r.names, events.ConversationID{Tenant: tenant, ID: id})
		}
	}
	return r
}

func (r *random) add(id events.ConversationID, p events.Payload) {
	r.history.Tenant = id.Tenant
	r.history.Add(id.ID, p)
}

// step adds some events.
func (r *random) step() {
	id, n := r.names[min(r.IntN(len(r.names)), r.IntN(len(r.names)), r.IntN(len(r.names)))], r.history.Next
	switch what := r.IntN(200); {
	case what == 0:
		r.add(id, &events.ConversationDeleted{})
	case what < 8:
		r.add(id, &events.ConversationStarted{Title: []string{"", "title"}[r.IntN(2)], Profile: []string{"", "é"}[r.IntN(2)], MaxContextChars: r.IntN(2) * 9_000})
	case what < 12:
		title := ""
		r.add(id, &events.ConversationUpdated{Title: &title})
	case what < 16: // of any range
		p := written(id, fmt.Sprint("wrong", n), 1+r.IntN(3), r.Uint64N(n+1)+1)
		p.LastSeq = min(p.FirstSeq+r.Uint64N(n+1), n-1)
		if p.FirstSeq <= p.LastSeq {
			r.add(id, p)
		}
	default:
		r.add(id, &events.MessageCreated{MessageID: fmt.Sprint("u", n), Role: "user", Content: strings.Repeat("é", r.IntN(300))})
		for range r.IntN(4) {
			r.add(id, &events.MessageCreated{MessageID: fmt.Sprint("a", r.history.Next), Role: "assistant", Content: strings.Repeat("x", r.IntN(300))})
			call := fmt.Sprint("k", r.history.Next)
			r.add(id, &events.ToolCalled{ToolCallID: call, ToolName: "Read", Arguments: []byte(`{}`)})
			r.add(id, &events.ToolReturned{ToolCallID: call, Result: events.TextResult(strings.Repeat("y", r.IntN(3_000)))})
		}
	}
}

func written(id events.ConversationID, name string, level int, first uint64) *events.SummaryWritten {
	return &events.SummaryWritten{
		SummaryID: name, Level: level, FirstSeq: first, LastSeq: first, Conversation: id.ID, Method: "extractive", CharsOut: 1_400,
		Findings: []string{}, Topics: []string{}, Files: []string{}, Tools: []string{},
	}
}

// summarise adds the summary that is due, and sometimes a revision of it.
func (r *random) summarise(t *testing.T, s summary.Reader) {
	t.Helper()
	settings := summary.DefaultSettings()
	settings.MaxContextChars = 30_000
	for _, id := range r.names {
		_, plan, due, err := summary.Read(t.Context(), s, id, settings, r.IntN(20) == 0)
		require.NoError(t, err)
		if !due {
			continue
		}
		p := written(id, fmt.Sprint("s", r.history.Next), plan.Level, plan.First)
		p.LastSeq, p.FirstTurn, p.LastTurn = plan.Last, plan.FirstTurn, plan.LastTurn
		for _, child := range plan.Children {
			p.Children = append(p.Children, child.ID)
		}
		r.add(id, p)
		if r.IntN(4) == 0 {
			revised := *p
			revised.SummaryID, revised.Supersedes = "again-"+p.SummaryID, p.SummaryID
			r.add(id, &revised)
		}
	}
}

// TestSummariesAreTheSameInBothBackends applies random histories to both backends, batch by
// batch, and compares every read.
func TestSummariesAreTheSameInBothBackends(t *testing.T) {
	t.Parallel()
	histories, rounds := 2, 25
	if mnemetest.All {
		histories, rounds = 10, 60
	}
	for seed := range histories {
		t.Run(fmt.Sprint("history ", seed), func(t *testing.T) {
			t.Parallel()
			r := newRandom(uint64(seed))
			file, err := sqlitestore.Open(t.Context(), filepath.Join(t.TempDir(), "summaries.db"), sqlitestore.SummariesCodec)
			require.NoError(t, err)
			lite := &sqlitestore.Summaries{Store: file}
			t.Cleanup(func() { require.NoError(t, lite.Close()) })
			node, err := neo4jstore.Open(t.Context(), shared(t), generation(t), neo4jstore.SummariesCodec)
			require.NoError(t, err)
			neo := &neo4jstore.Summaries{Store: node}
			t.Cleanup(func() { require.NoError(t, neo.Close()) })
			for range rounds {
				for range 1 + r.IntN(30) {
					r.step()
				}
				r.summarise(t, lite)
				require.Empty(t, drive(t, summaries, lite, 4000, r.history.Messages))
				require.Empty(t, drive(t, summaries, neo, 1+r.IntN(200), r.history.Messages))
				require.Equal(t, stateOf(t, lite).Hashes, stateOf(t, neo).Hashes)
			}
			require.Equal(t, stateOf(t, lite), stateOf(t, neo))
			require.Equal(t, saidOf(t, lite, r.names), saidOf(t, neo, r.names))
			levels := 0
			for _, id := range r.names {
				c, err := neo.Conversation(t.Context(), id)
				require.NoError(t, err)
				levels = max(levels, len(c.Ledger.Levels))
			}
			require.Greater(t, levels, 1, "the history says little: no summary of summaries")
		})
	}
}

// said holds the answers of a read model.
type said struct {
	Conversations []summary.Conversation
	Marks         [][]summary.Mark
	Ranges        [][]summary.Taken
	Waiting       map[string][]summary.Conversation
	Held          map[int]projection.Claim
}

func saidOf(t *testing.T, s summary.Store, names []events.ConversationID) (a said) {
	t.Helper()
	ctx := t.Context()
	var claims []projection.Claim
	for _, id := range names {
		c, err := s.Conversation(ctx, id)
		require.NoError(t, err)
		a.Conversations = append(a.Conversations, withoutKey(c))
		for _, limit := range []int{3, 10_000} {
			marks, err := s.Marks(ctx, id, c.LastSeq/2, limit)
			require.NoError(t, err)
			a.Marks = append(a.Marks, marks)
			for level := 1; level <= 3; level++ {
				taken, err := s.Ranges(ctx, id, level, c.LastSeq/3, limit)
				require.NoError(t, err)
				a.Ranges = append(a.Ranges, taken)
			}
		}
		claims = append(claims, projection.Claim{Conversation: id, Key: projection.PayloadKey(id, events.MessageKey("u1"))})
	}
	var err error
	a.Held, err = s.Holders(ctx, claims)
	require.NoError(t, err)
	a.Waiting = map[string][]summary.Conversation{}
	for name, q := range map[string]summary.WaitingQuery{
		"all": {}, "pending": {Pending: 2_000}, "turns": {Pending: 1 << 30, Turns: 3}, "untitled": {Pending: 1 << 30, Untitled: true}, "any": {Pending: 4_000, Turns: 9, Untitled: true},
	} {
		for _, limit := range []int{1, 3, 1_000} {
			a.Waiting[fmt.Sprint(name, " by ", limit)] = waiting(ctx, t, s, q, limit)
		}
	}
	return a
}

// waiting reads all pages.
func waiting(ctx context.Context, t *testing.T, s summary.Reader, q summary.WaitingQuery, limit int) (all []summary.Conversation) {
	t.Helper()
	for q.Limit = limit; ; {
		page, err := s.Waiting(ctx, q)
		require.NoError(t, err)
		for _, c := range page {
			all = append(all, withoutKey(c))
		}
		if len(page) < limit {
			return all
		}
		q.After = page[len(page)-1].ID
	}
}

func withoutKey(c summary.Conversation) summary.Conversation {
	c.Key = 0
	return c
}
