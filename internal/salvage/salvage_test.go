package salvage_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
	"mneme.dev/mneme/internal/salvage"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

// bench is a log and the read model "graph" that was made from it.
type bench struct {
	t     *testing.T
	js    jetstream.JetStream
	log   *eventlog.Log
	model *sqlitestore.Graph
}

var conversation = events.ConversationID{Tenant: "t", ID: "c"}

func setup(t *testing.T) *bench {
	t.Parallel()
	_, conn := natstest.Alone(t, embedded.Config{}, natsdeploy.Settings{MaxBytes: 64 << 20, Partitions: 2})
	b := &bench{t: t}
	var err error
	b.js, err = jetstream.New(conn)
	require.NoError(t, err)
	b.log, err = eventlog.Open(mnemetest.Context(t), conn)
	require.NoError(t, err)
	b.model = b.build()
	return b
}

// build makes a read model from the log.
func (b *bench) build() *sqlitestore.Graph {
	b.t.Helper()
	model, err := sqlitestore.OpenGraph(b.t.Context(), filepath.Join(b.t.TempDir(), "graph-1.db"))
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = model.Close() })
	projector, err := projection.NewProjector(graph.Projection(), b.log, model, slog.New(slog.DiscardHandler))
	require.NoError(b.t, err)
	projector.Start()
	b.t.Cleanup(projector.Stop)
	b.applied(model)
	return model
}

// applied waits until a read model has applied the whole log.
func (b *bench) applied(model *sqlitestore.Graph) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		at := map[int]uint64{}
		cps, err := model.Checkpoints(b.t.Context())
		require.NoError(b.t, err)
		for _, cp := range cps {
			at[cp.Partition] = cp.Seq
		}
		for partition := range b.log.Partitions() {
			last, err := b.log.LastOf(mnemetest.Context(b.t), partition)
			require.NoError(b.t, err)
			if at[partition] < last {
				return false
			}
		}
		return true
	}, mnemetest.Patience, time.Millisecond)
}

func (b *bench) publish(id string, p events.Payload) uint64 {
	b.t.Helper()
	e, err := events.New("c", "agent", id, p)
	require.NoError(b.t, err)
	e.Time = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ack, err := b.log.Publish(mnemetest.Context(b.t), "t", e)
	require.NoError(b.t, err)
	return ack.Seq
}

// talk publishes turns of a message, a call and its result each.
func (b *bench) talk(from, to int) {
	for i := from; i < to; i++ {
		b.publish(fmt.Sprint("u", i), &events.MessageCreated{MessageID: fmt.Sprint("u", i), Role: "user", Content: fmt.Sprint("question ", i)})
		b.publish(fmt.Sprint("t", i), &events.ToolCalled{ToolCallID: fmt.Sprint("t", i), ToolName: "Read", Arguments: []byte(`{"n":1}`)})
		b.publish(fmt.Sprint("r", i), &events.ToolReturned{ToolCallID: fmt.Sprint("t", i), Result: events.JSONResult([]byte(`{"lines":[1,2]}`))})
	}
}

// condense publishes shorter texts for results, between the turns and after them.
func (b *bench) condense(calls ...int) {
	for _, i := range calls {
		b.publish(fmt.Sprint("k", i), &events.ToolCondensed{ToolCallID: fmt.Sprint("t", i), Content: "short", Model: "m"})
	}
}

func (b *bench) summarize(id string, first, last uint64) uint64 {
	return b.publish(id, &events.SummaryWritten{SummaryID: id, Level: 1, FirstSeq: first, LastSeq: last, Conversation: "said", Method: "llm", Model: "m"})
}

// lose deletes messages from the stream as a disk would, without a record.
func (b *bench) lose(seqs ...uint64) {
	b.t.Helper()
	stream, err := b.js.Stream(mnemetest.Context(b.t), natsdeploy.Stream)
	require.NoError(b.t, err)
	for _, seq := range seqs {
		require.NoError(b.t, stream.DeleteMsg(mnemetest.Context(b.t), seq))
	}
}

func span(first, last uint64) (list []uint64) {
	for ; first <= last; first++ {
		list = append(list, first)
	}
	return list
}

func (b *bench) head() uint64 {
	state, err := b.log.State(mnemetest.Context(b.t))
	require.NoError(b.t, err)
	return state.Head
}

func (b *bench) repair(o salvage.Options) salvage.Report {
	b.t.Helper()
	report, err := salvage.Repair(b.t.Context(), b.log, b.model, o)
	require.NoError(b.t, err)
	b.applied(b.model)
	return report
}

// hash returns the conversation's hash in a read model. It depends on identities, contents
// and order, not on sequences.
func hash(t *testing.T, model *sqlitestore.Graph) events.Digest {
	h, err := model.Hash(t.Context(), conversation)
	require.NoError(t, err)
	return h.Hash
}

func TestNothingIsFoundInAWholeLog(t *testing.T) {
	b := setup(t)
	b.publish("s", &events.ConversationStarted{Title: "T", Tags: []string{"x"}, Cwd: "/src"})
	b.talk(0, 5)
	b.publish("a", &events.ConversationUpdated{Status: "archived"})
	b.applied(b.model)
	suspect, err := salvage.Check(t.Context(), b.log, b.model)
	require.NoError(t, err)
	require.False(t, suspect)
	require.Equal(t, salvage.Report{}, b.repair(salvage.Options{}))
}

func TestALostConversationComesBackWithItsSummariesAndCondensedResults(t *testing.T) {
	b := setup(t)
	b.publish("s", &events.ConversationStarted{Title: "T", Cwd: "/src"})
	b.talk(0, 3)
	b.condense(1, 0)
	first := b.summarize("L1-a", 1, 7)
	b.talk(3, 5)
	b.condense(3, 4)
	b.summarize("L1-b", 8, b.head())
	b.publish("a", &events.ConversationUpdated{Status: "archived"})
	require.Positive(t, first)
	b.applied(b.model)
	before, head := hash(t, b.model), b.head()
	failed, err := b.model.CountFailed(t.Context())
	require.NoError(t, err)
	require.Empty(t, failed)
	b.lose(span(1, head)...)

	suspect, err := salvage.Check(t.Context(), b.log, b.model)
	var loss *salvage.LossError
	require.ErrorAs(t, err, &loss)
	require.True(t, suspect)
	require.Zero(t, loss.Unrestorable)
	report := b.repair(salvage.Options{})
	require.Equal(t, head, report.Missing)
	require.Equal(t, report.Events, report.Restored)
	_, err = salvage.Check(t.Context(), b.log, b.model)
	require.NoError(t, err)

	again := b.build()
	failed, err = again.CountFailed(t.Context())
	require.NoError(t, err)
	require.Empty(t, failed, "ranges leave no gap")
	c, err := again.Conversation(t.Context(), conversation, graph.Latest)
	require.NoError(t, err)
	require.Equal(t, 2, c.SummaryCount)
	require.Equal(t, 4, c.CondensedCount)
	require.Equal(t, "archived", c.Status)
	require.Equal(t, "/src", c.Cwd)
	require.NotEqual(t, before, hash(t, again), "the description has events of its own")

	require.Zero(t, b.repair(salvage.Options{}).Events, "a second repair finds nothing")
}

func TestTheLostEndOfAConversationComesBackInItsOrder(t *testing.T) {
	b := setup(t)
	b.talk(0, 4)
	b.summarize("L1-a", 1, 6)
	b.summarize("L1-b", 7, 12)
	b.applied(b.model)
	before := hash(t, b.model)
	b.lose(span(8, 14)...)
	report := b.repair(salvage.Options{})
	require.Equal(t, 7, report.Restored)
	require.Zero(t, report.Left)
	require.Equal(t, before, hash(t, b.build()))
	require.Zero(t, b.repair(salvage.Options{}).Events)
}

func TestASummaryWhoseEventsChangeTheirOrderIsListedInEveryRepair(t *testing.T) {
	b := setup(t)
	b.talk(0, 4)
	b.summarize("L1-a", 1, 12)
	b.applied(b.model)
	b.lose(3, 4, 5, 6, 13)
	for n, want := range []int{5, 1} {
		report := b.repair(salvage.Options{})
		require.Equal(t, want, report.Events, n)
		require.Len(t, report.Conversations[0].Unrestorable, 1, n)
		require.Equal(t, "L1-a", report.Conversations[0].Unrestorable[0].ID)
	}
	var loss *salvage.LossError
	_, err := salvage.Check(t.Context(), b.log, b.model)
	require.ErrorAs(t, err, &loss)
	require.Contains(t, loss.Remedy(), "--accept")
	require.Zero(t, b.repair(salvage.Options{Accept: true}).Left)
	_, err = salvage.Check(t.Context(), b.log, b.model)
	require.NoError(t, err)
}

func TestARepairGoesOnWhereItFailed(t *testing.T) {
	b := setup(t)
	b.talk(0, 3)
	b.summarize("L1-a", 1, 9)
	b.applied(b.model)
	before := hash(t, b.model)
	b.lose(span(1, 10)...)
	report := b.repair(salvage.Options{})
	require.Equal(t, 10, report.Restored)
	b.lose(b.head()) // as if it had ended before the summary
	report = b.repair(salvage.Options{})
	require.Equal(t, 1, report.Restored)
	require.Equal(t, before, hash(t, b.build()))
}

// breaking is a source that fails after some transcripts.
type breaking struct {
	*sqlitestore.Graph
	left int
}

func (s *breaking) Transcript(ctx context.Context, id events.ConversationID, q graph.TranscriptQuery) ([]graph.Entry, error) {
	if s.left--; s.left < 0 {
		return nil, errors.New("broken off")
	}
	return s.Graph.Transcript(ctx, id, q)
}

func TestWhatARepairWroteBackBeforeItFailedIsNoLongerMissing(t *testing.T) {
	b := setup(t)
	b.talk(0, 3)
	other, err := events.New("d", "agent", "u", &events.MessageCreated{MessageID: "u", Role: "user", Content: "another conversation"})
	require.NoError(t, err)
	_, err = b.log.Publish(mnemetest.Context(t), "t", other)
	require.NoError(t, err)
	b.applied(b.model)
	b.lose(span(1, 10)...)
	_, err = salvage.Repair(t.Context(), b.log, &breaking{b.model, 1}, salvage.Options{})
	require.ErrorContains(t, err, "broken off")
	report := b.repair(salvage.Options{})
	require.EqualValues(t, 1, report.Missing)
	require.Equal(t, 1, report.Restored)
	require.Zero(t, report.Left)
}

// A repair is killed after it has published and before it has recorded that.
func TestWhatAKilledRepairWroteBackIsNoLongerMissingAfterTheNext(t *testing.T) {
	b := setup(t)
	b.talk(0, 3)
	b.summarize("L1-a", 1, 9)
	b.applied(b.model)
	b.lose(span(4, 10)...)
	stream, err := b.js.Stream(mnemetest.Context(t), natsdeploy.Stream)
	require.NoError(t, err)
	config := stream.CachedInfo().Config
	require.Zero(t, b.repair(salvage.Options{}).Left)
	_, err = b.js.UpdateStream(mnemetest.Context(t), config) // without the record
	require.NoError(t, err)

	require.Zero(t, b.repair(salvage.Options{DryRun: true}).Left)
	report := b.repair(salvage.Options{})
	require.EqualValues(t, 7, report.Missing)
	require.Zero(t, report.Events)
	require.Zero(t, report.Left)
	require.Equal(t, salvage.Report{}, b.repair(salvage.Options{}))

	b.lose(2)
	require.Equal(t, 1, b.repair(salvage.Options{}).Restored)
	require.Zero(t, b.repair(salvage.Options{}).Left)
}

func TestALostDescriptionComesBack(t *testing.T) {
	b := setup(t)
	b.publish("s", &events.ConversationStarted{Title: "First", Cwd: "/src", Agent: "a", Tags: []string{"x"}})
	b.talk(0, 2)
	title, tags := "Better", []string{"y"}
	updated := b.publish("p", &events.ConversationUpdated{Title: &title, Tags: &tags})
	b.applied(b.model)
	for _, lost := range []uint64{updated, 1} {
		b.lose(lost)
		require.Equal(t, 1, b.repair(salvage.Options{}).Restored, lost)
		c, err := b.build().Conversation(t.Context(), conversation, graph.Latest)
		require.NoError(t, err)
		require.Equal(t, "Better", c.Title)
		require.Equal(t, []string{"y"}, c.Tags)
		require.Equal(t, "/src", c.Cwd)
	}
}

func TestAnImageComesBackAsItsName(t *testing.T) {
	b := setup(t)
	b.publish("image", &events.MessageCreated{MessageID: "image", Role: "user", Content: "See data:image/png;base64," + strings.Repeat("AZr3", 30_000)})
	b.applied(b.model)
	b.lose(1)
	report := b.repair(salvage.Options{})
	require.EqualValues(t, []int{1, 1, 0}, []int{report.Restored, int(report.Inexact), int(report.Left)})
	list, err := b.build().Messages(t.Context(), conversation, graph.MessageQuery{})
	require.NoError(t, err)
	require.Equal(t, "See [image/png, 90 kB]", list[0].Content.Text)
	require.True(t, list[0].Content.Recorded())
}

func TestATextThatIsNotWholeIsListed(t *testing.T) {
	b := setup(t)
	b.publish("long", &events.MessageCreated{MessageID: "long", Role: "user", Content: strings.Repeat("x", graph.MaxBodyBytes+1)})
	b.talk(0, 1)
	b.applied(b.model)
	b.lose(1, 2)
	report := b.repair(salvage.Options{DryRun: true})
	require.EqualValues(t, 2, report.Missing)
	require.EqualValues(t, 1, report.Left, "what a repair will leave")
	require.EqualValues(t, 4, b.head(), "nothing is published")
	require.Zero(t, b.repair(salvage.Options{DryRun: true, Accept: true}).Left)
	report = b.repair(salvage.Options{})
	require.Equal(t, 1, report.Restored)
	require.EqualValues(t, 1, report.Left)
	require.Equal(t, []salvage.Unrestorable{{Seq: 1, Kind: "message_created", ID: "long", Reason: "the read model holds only the beginning of its text"}}, report.Conversations[0].Unrestorable)
}

func TestASummaryOfWhatCannotComeBackIsListed(t *testing.T) {
	b := setup(t)
	b.publish("long", &events.MessageCreated{MessageID: "long", Role: "user", Content: strings.Repeat("x", graph.MaxBodyBytes+1)})
	b.summarize("L1-a", 1, 1)
	b.applied(b.model)
	b.lose(1, 2)
	report := b.repair(salvage.Options{})
	require.Zero(t, report.Restored)
	require.EqualValues(t, 2, report.Left)
	list := report.Conversations[0].Unrestorable
	require.Len(t, list, 2)
	require.Equal(t, salvage.Unrestorable{Seq: 2, Kind: "summary_written", ID: "L1-a", Reason: "none of the events that it summarizes is left"}, list[1])
}

func TestATextThatIsNotWholeDoesNotKeepItsSummaryFromComingBack(t *testing.T) {
	b := setup(t)
	b.talk(0, 1)
	b.publish("long", &events.MessageCreated{MessageID: "long", Role: "user", Content: strings.Repeat("x", graph.MaxBodyBytes+1)})
	b.talk(1, 2)
	b.summarize("L1-a", 1, 7)
	b.applied(b.model)
	b.lose(4, 8)
	report := b.repair(salvage.Options{})
	require.Equal(t, 1, report.Restored)
	require.EqualValues(t, 1, report.Left)
	list, err := b.build().Summaries(t.Context(), conversation, graph.SummaryQuery{Limit: 10})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.EqualValues(t, []uint64{1, 7}, []uint64{list[0].FirstSeq, list[0].LastSeq}, "no other event has moved")
}

func TestARepairEndsWithItsContext(t *testing.T) {
	b := setup(t)
	b.talk(0, 2)
	b.applied(b.model)
	b.lose(1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := salvage.Repair(ctx, b.log, b.model, salvage.Options{})
	require.ErrorIs(t, err, context.Canceled)
}

// moving is a source that continues to apply events: before each read of a conversation an event is published and
// applied.
type moving struct {
	*sqlitestore.Graph
	b *bench
	n int
}

func (m *moving) goOn() {
	m.n++
	m.b.publish(fmt.Sprint("title", m.n), &events.ConversationUpdated{Title: new(fmt.Sprint("Title ", m.n))})
	m.b.talk(1000+m.n, 1001+m.n)
	m.b.summarize(fmt.Sprint("moving", m.n), m.b.head()-2, m.b.head()-2)
	m.b.applied(m.Graph)
}

func (m *moving) Hashes(ctx context.Context, yield func(projection.ConversationHash) error) error {
	m.goOn()
	return m.Graph.Hashes(ctx, yield)
}

func (m *moving) Conversation(ctx context.Context, id events.ConversationID, asOf uint64) (graph.Conversation, error) {
	m.goOn()
	return m.Graph.Conversation(ctx, id, asOf)
}

func (m *moving) Transcript(ctx context.Context, id events.ConversationID, q graph.TranscriptQuery) ([]graph.Entry, error) {
	m.goOn()
	return m.Graph.Transcript(ctx, id, q)
}

func TestWhatIsAppliedDuringAComparisonIsNotLost(t *testing.T) {
	b := setup(t)
	b.publish("s", &events.ConversationStarted{Title: "T", Cwd: "/src"})
	b.talk(0, 5)
	b.applied(b.model)
	m := &moving{Graph: b.model, b: b}
	require.NoError(t, salvage.Find(t.Context(), b.log, m, func(l salvage.Loss) error {
		t.Errorf("%d events are said to be lost", l.Count())
		return nil
	}))
	require.GreaterOrEqual(t, m.n, 3)

	b.lose(3)
	found := 0
	require.NoError(t, salvage.Find(t.Context(), b.log, m, func(l salvage.Loss) error {
		found += l.Count()
		return nil
	}))
	require.Equal(t, 1, found, "a real loss is found meanwhile")
}

// torn is a source that reads parts of two commits as one checkpoint, until it is read again.
type torn struct {
	*sqlitestore.Graph
	reads int
}

func (r *torn) Checkpoints(ctx context.Context) ([]projection.Checkpoint, error) {
	list, err := r.Graph.Checkpoints(ctx)
	if r.reads++; r.reads <= 4 { // the commit lasts for some reads
		for i := range list {
			list[i].Event = events.DigestOf("of the commit before")
		}
	}
	return list, err
}

func TestACheckpointThatWasReadDuringACommitIsReadAgain(t *testing.T) {
	b := setup(t)
	b.talk(0, 5)
	b.applied(b.model)
	suspect, err := salvage.Check(t.Context(), b.log, &torn{Graph: b.model})
	require.NoError(t, err)
	require.False(t, suspect)
}

func TestACondensedTextOfAResultThatCannotComeBackIsListed(t *testing.T) {
	b := setup(t)
	b.talk(0, 1)
	b.publish("t", &events.ToolCalled{ToolCallID: "t7", ToolName: "Read", Arguments: []byte(`{}`)})
	b.publish("r", &events.ToolReturned{ToolCallID: "t7", Result: events.TextResult(strings.Repeat("x", graph.MaxBodyBytes+1))})
	b.condense(7)
	b.applied(b.model)
	b.lose(5, 6)
	report := b.repair(salvage.Options{})
	require.Zero(t, report.Restored)
	list := report.Conversations[0].Unrestorable
	require.Len(t, list, 2)
	require.Equal(t, salvage.Unrestorable{Seq: 6, Kind: "tool_condensed", ID: "k7", Reason: "its result does not come back"}, list[1])
}
