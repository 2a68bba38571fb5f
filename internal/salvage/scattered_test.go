package salvage_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/salvage"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
)

// chat makes the events of conversations that go on side by side, with condensed results and summaries of two levels,
// some of them revised.
type chat struct {
	r    *rand.Rand
	list []events.Event
}

func (c *chat) say(id, event string, p events.Payload) uint64 {
	e, err := events.New(id, "agent", event, p)
	if err != nil {
		panic(err)
	}
	c.list = append(c.list, e)
	return uint64(len(c.list)) // becomes its sequence
}

// hold returns a conversation that says a little more at each call.
func (c *chat) hold(id string) (more func()) {
	var open []summary.Range // of level 1
	first, next, turn, summaries := uint64(0), uint64(0), 0, 0
	write := func(p *events.SummaryWritten) {
		summaries++
		p.SummaryID = fmt.Sprint("s", summaries)
		p.Conversation, p.Method, p.Model = "said", "llm", "m"
		c.say(id, p.SummaryID, p)
	}
	return func() {
		if turn == 0 && c.r.IntN(2) == 0 {
			first = c.say(id, "started", &events.ConversationStarted{Title: "T"})
		}
		turn++
		call := fmt.Sprint("t", turn)
		seq := c.say(id, fmt.Sprint("u", turn), &events.MessageCreated{MessageID: fmt.Sprint("u", turn), Role: "user", Content: "question"})
		if first == 0 {
			first = seq
		}
		if next == 0 {
			next = first
		}
		c.say(id, call, &events.ToolCalled{ToolCallID: call, ToolName: "Read", Arguments: []byte(`{}`)})
		last := c.say(id, "r"+call, &events.ToolReturned{ToolCallID: call, Result: events.TextResult("lines")})
		if c.r.IntN(3) == 0 {
			last = c.say(id, "k"+call, &events.ToolCondensed{ToolCallID: call, Content: "short", Model: "m"})
		}
		if c.r.IntN(2) == 0 {
			return
		}
		write(&events.SummaryWritten{Level: 1, FirstSeq: next, LastSeq: last})
		open = append(open, summary.Range{ID: fmt.Sprint("s", summaries), First: next, Last: last})
		next = last + 1
		if c.r.IntN(4) == 0 {
			write(&events.SummaryWritten{Level: 1, FirstSeq: open[len(open)-1].First, LastSeq: last, Supersedes: fmt.Sprint("s", summaries)})
		}
		if len(open) == 3 {
			write(&events.SummaryWritten{Level: 2, FirstSeq: open[0].First, LastSeq: open[1].Last, Children: []string{open[0].ID, open[1].ID}})
			open = open[2:]
		}
	}
}

func TestWhateverWasLostARebuildAcceptsWhatARepairWroteBack(t *testing.T) {
	b := setup(t)
	c := chat{r: rand.New(rand.NewPCG(1, 2))}
	const conversations, turns = 40, 8
	var say []func()
	for i := range conversations {
		say = append(say, c.hold(fmt.Sprint("c", i)))
	}
	for range conversations * turns {
		say[c.r.IntN(conversations)]()
	}
	_, err := b.log.PublishAll(mnemetest.Context(t), "t", c.list)
	require.NoError(t, err)
	b.applied(b.model)
	failed, err := b.model.CountFailed(t.Context())
	require.NoError(t, err)
	require.Empty(t, failed)

	head, lost, loses := b.head(), []uint64(nil), map[string]func() bool{}
	for i := range conversations {
		chance, until := c.r.Float64()/2, c.r.IntN(turns*3)
		loses[fmt.Sprint("c", i)] = func() bool { return c.r.Float64() < chance }
		if i%4 == 0 { // the beginning is lost whole
			loses[fmt.Sprint("c", i)] = func() bool { until--; return until >= 0 }
		}
	}
	for i, e := range c.list {
		if loses[e.Subject]() {
			lost = append(lost, uint64(i+1))
		}
	}
	b.lose(lost...)
	report := b.repair(salvage.Options{})
	left := 0
	for _, l := range report.Conversations {
		for _, u := range l.Unrestorable {
			require.Equal(t, "summary_written", u.Kind, "%+v", u)
			left++
		}
	}
	t.Logf("%d events, %d lost, %d restored, %d not", head, len(lost), report.Restored, left)

	list, err := b.build().Failed(t.Context(), projection.FailedQuery{Limit: 1_000_000})
	require.NoError(t, err)
	for _, f := range list {
		if f.Seq > head {
			t.Errorf("the rebuild refuses what was written back: %+v", f)
		}
	}
}
