package neo4jstore

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/graph/storetest"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
)

var summariesProjection = summary.Projection()

// summarisedStore is a store of summaries with its history and a spy on its driver.
type summarisedStore struct {
	*Summaries
	cp      projection.Checkpoint
	history *storetest.History
	spy     *spy
	next    map[string]uint64 // where the next summary of level 1 begins, by conversation
	open    map[string][]*events.SummaryWritten
}

func openSummarised(t *testing.T, c Config, generation int) *summarisedStore {
	t.Helper()
	opened, err := Open(t.Context(), c, generation, SummariesCodec)
	require.NoError(t, err)
	store := &Summaries{opened}
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	s := &summarisedStore{Summaries: store, history: storetest.NewHistory(), next: map[string]uint64{}, open: map[string][]*events.SummaryWritten{}}
	s.spy = watch(&store.store)
	s.acquire(t)
	return s
}

func (s *summarisedStore) acquire(t *testing.T) {
	t.Helper()
	var err error
	s.cp, err = s.Acquire(t.Context(), 0, summariesProjection.Fingerprint())
	require.NoError(t, err)
}

// add adds an event and returns its sequence.
func (s *summarisedStore) add(conversation string, p events.Payload) uint64 {
	seq := s.history.Add(conversation, p)
	if s.next[conversation] == 0 {
		s.next[conversation] = seq
	}
	return seq
}

// apply applies the events added to the history since the last call, as one batch.
func (s *summarisedStore) apply(t *testing.T) {
	t.Helper()
	var err error
	s.cp, err = summariesProjection.Apply(t.Context(), s.Summaries, s.cp, s.history.Messages)
	require.NoError(t, err)
	s.history.Messages = nil
}

// turn adds a question with an answer and a call.
func (s *summarisedStore) turn(conversation string) {
	n := s.history.Next
	s.add(conversation, &events.MessageCreated{MessageID: fmt.Sprint("u", n), Role: "user", Content: "hello"})
	s.add(conversation, &events.MessageCreated{MessageID: fmt.Sprint("a", n), Role: "assistant", Content: "hello"})
	s.add(conversation, &events.ToolCalled{ToolCallID: fmt.Sprint("k", n), ToolName: "Read", Arguments: []byte(`{}`)})
	s.add(conversation, &events.ToolReturned{ToolCallID: fmt.Sprint("k", n), Result: events.TextResult("text")})
}

// cover summarizes everything up to a sequence.
func (s *summarisedStore) cover(conversation string, last uint64) *events.SummaryWritten {
	p := &events.SummaryWritten{
		SummaryID: fmt.Sprint("s", s.history.Next), Level: 1, FirstSeq: s.next[conversation], LastSeq: last, FirstTurn: 1, LastTurn: 2, Method: "extractive", CharsOut: 100,
		Findings: []string{}, Topics: []string{}, Files: []string{}, Tools: []string{},
	}
	s.add(conversation, p)
	s.next[conversation], s.open[conversation] = last+1, append(s.open[conversation], p)
	return p
}

// consolidate summarizes the open summaries.
func (s *summarisedStore) consolidate(conversation string) {
	list := s.open[conversation]
	p := *list[0]
	p.SummaryID, p.Level, p.LastSeq = fmt.Sprint("s", s.history.Next), 2, list[len(list)-1].LastSeq
	for _, child := range list {
		p.Children = append(p.Children, child.SummaryID)
	}
	s.add(conversation, &p)
	s.open[conversation] = nil
}

// revise adds a revision of a summary.
func (s *summarisedStore) revise(conversation string, old *events.SummaryWritten) {
	p := *old
	p.SummaryID, p.Supersedes = fmt.Sprint("s", s.history.Next), old.SummaryID
	s.add(conversation, &p)
}

// all makes every kind of write, in batches of one event and of many.
func (s *summarisedStore) all(t *testing.T, c string) {
	t.Helper()
	n := s.history.Next
	s.add(c, &events.ConversationStarted{MaxContextChars: 5_000, Profile: "p"})
	for range 2 {
		s.turn(c)
		list := s.history.Messages
		for i := range list {
			s.history.Messages = list[i : i+1]
			s.apply(t)
		}
		s.revise(c, s.cover(c, s.history.Next-5))
		s.apply(t)
		s.history.AddAs(c, "again", &events.MessageCreated{MessageID: "again", Role: "user"}) // a duplicate from the second time on
		s.apply(t)
	}
	gone := fmt.Sprint("gone", n)
	for range 60 {
		s.turn(c)
		s.turn(gone)
		s.turn(fmt.Sprint("other", s.history.Next))
	}
	s.history.AddRaw("ev.0.t."+gone+".message_created", nil, nil)
	s.apply(t)
	for range 60 {
		s.cover(c, s.next[c]+1)
	}
	s.consolidate(c)
	s.apply(t)
	s.add(gone, &events.ConversationDeleted{})
	s.add(c, &events.ConversationDeleted{Reason: "no"})
	s.history.Messages = s.history.Messages[:1]
	s.apply(t)
	require.NoError(t, s.Update(t.Context(), 0, func(tx projection.Tx[*summary.Unit]) error { return tx.Drop(t.Context(), conversation(gone)) }))
	require.NoError(t, s.Halt(t.Context(), 0, s.cp.Epoch, ""))
	s.acquire(t)
}

// reads makes the reads of a conversation and of the waiting conversations.
func (s *summarisedStore) reads(t *testing.T, c string) {
	t.Helper()
	ctx, id := t.Context(), conversation(c)
	found, err := s.Conversation(ctx, id)
	require.NoError(t, err)
	require.NotZero(t, found.Chars)
	marks, err := s.Marks(ctx, id, 0, 5)
	require.NoError(t, err)
	require.NotEmpty(t, marks)
	taken, err := s.Ranges(ctx, id, 1, 0, 5)
	require.NoError(t, err)
	require.NotEmpty(t, taken)
	waiting, err := s.Waiting(ctx, summary.WaitingQuery{Pending: 1, Turns: 1, Untitled: true, Limit: 1_000})
	require.NoError(t, err)
	require.NotEmpty(t, waiting)
}

// rest makes every other read.
func (s *summarisedStore) rest(t *testing.T, c string) {
	t.Helper()
	ctx, id := t.Context(), conversation(c)
	_, err := s.Checkpoints(ctx)
	require.NoError(t, err)
	_, err = s.Failed(ctx, projection.FailedQuery{Limit: 10})
	require.NoError(t, err)
	_, err = s.Failed(ctx, projection.FailedQuery{Tenant: "t", Conversation: id.ID, Limit: 10})
	require.NoError(t, err)
	_, err = s.CountFailed(ctx)
	require.NoError(t, err)
	_, err = s.Holders(ctx, []projection.Claim{{Conversation: id}})
	require.NoError(t, err)
	require.NoError(t, s.Hashes(ctx, func(projection.ConversationHash) error { return nil }))
}

// sentBySummaries uses everything that the store can do, and returns each statement once.
func sentBySummaries(t *testing.T, s *summarisedStore) map[string]sent {
	t.Helper()
	s.all(t, "c")
	s.all(t, "c")
	s.reads(t, "c")
	s.rest(t, "c")
	byText := map[string]sent{}
	for _, one := range s.spy.since() {
		byText[one.statement] = one
	}
	requireSent(t, byText, summariesLayout.dialect())
	return byText
}

func TestWarmSummariesSendsAllStatementsAndWritesNothing(t *testing.T) {
	t.Parallel()
	s := openSummarised(t, testConfig(t), generationOf(t.Name()))
	s.all(t, "c")
	requireWarmed(t, s.spy, &s.store, s.Warm, func() {
		s.all(t, "c")
		s.reads(t, "c")
	})
}

// The cost of an append and a read must not depend on the length of the conversation, nor
// on the number of its summaries.
func TestSummariesOfALongConversationCostWhatThoseOfAShortOneCost(t *testing.T) {
	t.Parallel()
	s := openSummarised(t, testConfig(t), generationOf(t.Name()))
	turns := 400
	if mnemetest.All {
		turns = 25_000
	}
	for n := range turns {
		for _, c := range []string{"long", "short"} {
			if c == "long" || n >= turns-30 {
				s.turn(c)
			}
			if n%10 == 9 && (c == "long" || n > turns-15) {
				s.cover(c, s.history.Next-uint64(25))
			}
			if len(s.open[c]) == 20 {
				s.consolidate(c)
			}
		}
		if n%50 == 49 {
			s.apply(t)
		}
	}
	failed, err := s.CountFailed(t.Context())
	require.NoError(t, err)
	require.Empty(t, failed)
	s.spy.since()
	s.spy.prefix = "PROFILE "
	costs := map[string]map[string]int64{}
	for _, c := range []string{"short", "long"} {
		costs[c] = s.costs(t, c)
	}
	for _, name := range slices.Sorted(maps.Keys(costs["long"])) {
		short, long := costs["short"][name], costs["long"][name]
		t.Logf("%-40s %5d db hits in the short conversation, %5d in the long one", name, short, long)
		require.Positive(t, short, name)
		if float64(long) > 1.1*float64(short)+5 {
			t.Errorf("%s grows with the conversation", name)
		}
	}
}

// costs measures everything whose cost must not grow.
func (s *summarisedStore) costs(t *testing.T, c string) map[string]int64 {
	t.Helper()
	ctx, id, costs := t.Context(), conversation(c), map[string]int64{}
	cost := func(name string, err error) {
		t.Helper()
		require.NoError(t, err, name)
		costs[name] = hits(t, s.spy.since())
	}
	found, err := s.Conversation(ctx, id)
	cost("conversation", err)
	_, err = s.Marks(ctx, id, 0, 10)
	cost("10 marks", err)
	_, err = s.Ranges(ctx, id, 1, found.Ledger.Last(1)-1, 10)
	cost("the newest range", err)
	// Enough batches of each for older states to be removed once.
	appends := func(name string, payload func() events.Payload) {
		t.Helper()
		for range keptStates {
			s.add(c, payload())
			s.apply(t)
		}
		cost(name, nil)
	}
	message := func() events.Payload {
		return &events.MessageCreated{MessageID: fmt.Sprint("u", s.history.Next), Role: "user", Content: "hello"}
	}
	for range 2 { // from then on as many states are removed as added
		appends("append a message", message)
	}
	appends("append a start", func() events.Payload { return &events.ConversationStarted{Profile: "p"} })
	appends("append a message", message)
	appends("append a call", func() events.Payload {
		return &events.ToolCalled{ToolCallID: fmt.Sprint("k", s.history.Next), ToolName: "Read", Arguments: []byte(`{}`)}
	})
	appends("append a result", func() events.Payload {
		return &events.ToolReturned{ToolCallID: fmt.Sprint("r", s.history.Next), Result: events.TextResult("text")}
	})
	for range keptStates {
		s.cover(c, s.next[c]+1)
		s.apply(t)
	}
	cost("append a summary", nil)
	return costs
}
