package summarizer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/llmtest"
	"mneme.dev/mneme/internal/service"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/summarizer"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
	"mneme.dev/mneme/pkg/summary/extractive"
	"mneme.dev/mneme/pkg/summary/llm"
)

// bundle is mneme in this process with its own summarizer switched off, and a reactor that
// condenses and whose reads are counted.
type bundle struct {
	t *testing.T
	*instance.Instance
	reactor  *summarizer.Reactor
	state    func(func(summary.Reader) error) error
	endpoint *llmtest.Endpoint
	logged   mnemetest.Log
	late     atomic.Pointer[summary.Conversation] // what a state that lags behind says of a conversation, if it is set

	mu      sync.Mutex
	rows    int // transcript rows read
	results int // results read by id
}

var conversation = events.ConversationID{Tenant: "default", ID: "c"}

func setup(t *testing.T, change ...func(*summarizer.Profile)) *bundle {
	t.Helper()
	b := &bundle{t: t, endpoint: llmtest.New(t)}
	data := t.TempDir()
	var err error
	b.Instance, err = instance.Start(t.Context(), instance.Config{Data: data, Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	models := service.NewModels(data, worker.NewStores(data, settings.Models{}))
	t.Cleanup(func() { require.NoError(t, models.Close()) })
	profile := summarizer.Profile{
		Settings: summary.Settings{MaxContextChars: 1_000_000_000, L1ThresholdPercent: 10, L2ThresholdPercent: 10}, Condenser: modelAt(t, b.endpoint), Condense: true,
	}
	for _, c := range change {
		c(&profile)
	}
	b.state = func(read func(summary.Reader) error) error {
		return view.Lend(context.Background(), models.Summaries, func(r summary.Reader) error { return read(lagging{r, b}) })
	}
	b.reactor = summarizer.New(summarizer.Config{
		Log: b.Log, Live: b.live, Files: files.DefaultTable(), Parallel: 1, Logger: slog.New(slog.NewTextHandler(&b.logged, nil)),
		Profiles: summarizer.Profiles{Without: extractive.Writer{}, Default: profile},
		State:    b.state,
		Views:    view.New(view.Config{Log: b.Log, Models: countingModels{models, b}}),
	})
	b.reactor.Start()
	t.Cleanup(b.reactor.Stop)
	return b
}

func modelAt(t *testing.T, e *llmtest.Endpoint) *llm.Writer {
	t.Helper()
	model, err := llm.New(llm.Profile{Provider: llm.OpenAI, URL: e.URL(), Model: "small", Timeout: time.Minute})
	require.NoError(t, err)
	return model
}

// lagging is a state that has not applied what came last.
type lagging struct {
	summary.Reader
	b *bundle
}

func (l lagging) Conversation(ctx context.Context, id events.ConversationID) (summary.Conversation, error) {
	if c := l.b.late.Load(); c != nil {
		return *c, nil
	}
	return l.Reader.Conversation(ctx, id)
}

// live returns how far the read model "summaries" is.
func (b *bundle) live(partition int) (seq uint64, live bool) {
	for _, s := range b.Status() {
		if s.Projection == "summaries" && s.Partition == partition {
			return s.Checkpoint.Seq, s.State == projection.StateLive
		}
	}
	return 0, false
}

// countingModels lends a graph whose reads are counted.
type countingModels struct {
	view.Models
	*bundle
}

func (m countingModels) Graph(ctx context.Context) (view.Pinned[graph.Reader], error) {
	p, err := m.Models.Graph(ctx)
	p.Model = &counting{p.Model, m.bundle}
	return p, err
}

// counting counts reads of the graph.
type counting struct {
	graph.Reader
	*bundle
}

func (c *counting) Transcript(ctx context.Context, id events.ConversationID, q graph.TranscriptQuery) ([]graph.Entry, error) {
	list, err := c.Reader.Transcript(ctx, id, q)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows += len(list)
	return list, err
}

func (c *counting) Results(ctx context.Context, id events.ConversationID, calls []graph.Ref, asOf uint64) (map[graph.Ref]graph.ToolResult, error) {
	found, err := c.Reader.Results(ctx, id, calls, asOf)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.results += len(found)
	return found, err
}

// read returns the counts since the last call.
func (b *bundle) read() (rows, results int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rows, results, b.rows, b.results = b.rows, b.results, 0, 0
	return rows, results
}

// step publishes a call with a large result, then messages, and tells the reactor.
func (b *bundle) step(n, messages int) {
	b.t.Helper()
	call := fmt.Sprint("k", n)
	list := []events.Payload{
		&events.ToolCalled{ToolCallID: call, ToolName: "Bash", Arguments: json.RawMessage(`{}`)},
		&events.ToolReturned{ToolCallID: call, Result: events.TextResult(strings.Repeat("x", 2_000))},
	}
	for m := range messages {
		list = append(list, &events.MessageCreated{MessageID: fmt.Sprint("m", n, "-", m), Role: "user", Content: "go on"})
	}
	b.publish(fmt.Sprint(n), list...)
}

// publish publishes events at once, and tells the reactor.
func (b *bundle) publish(name string, list ...events.Payload) {
	b.t.Helper()
	var all []events.Event
	for i, p := range list {
		e, err := events.New(conversation.ID, "test", fmt.Sprint(name, "-", i), p)
		require.NoError(b.t, err)
		all = append(all, e)
	}
	acks, err := b.Log.PublishAll(mnemetest.Context(b.t), conversation.Tenant, all)
	require.NoError(b.t, err)
	last := acks[len(acks)-1].Seq
	b.await("applied", func() bool {
		seq, live := b.live(b.Log.PartitionOf(conversation.Tenant, conversation.ID))
		return live && seq >= last
	})
	b.reactor.Touch([]events.ConversationID{conversation})
}

func (b *bundle) await(what string, is func() bool) {
	b.t.Helper()
	require.Eventually(b.t, is, mnemetest.Patience, time.Millisecond, what)
}

func TestTouchReadsOnlyNewRows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.endpoint.Reply(llmtest.Chat("shorter"))
	b.step(0, 150)
	b.step(1, 3)
	b.await("condensed", func() bool { return b.reactor.Figures().Condensed == 1 })
	b.read()
	const steps = 5
	for n := range steps {
		b.step(2+n, 3)
		b.await("condensed", func() bool { return b.reactor.Figures().Condensed == int64(2+n) })
	}
	rows, results := b.read()
	t.Logf("%d rows and %d results were read for %d new rows", rows, results, steps*5)
	require.Equal(t, steps*5, rows)
	require.Equal(t, steps, results)
}

func TestResultIsCondensedOnceItsModelIsBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	away := llmtest.Failure(http.StatusServiceUnavailable, "", "")
	b.endpoint.Reply(away, away, away, llmtest.Chat("shorter"))
	b.step(0, 3)
	b.await("it waits", func() bool { return b.reactor.Figures().Waiting == 1 })
	b.await("condensed", func() bool { return b.reactor.Figures().Condensed == 1 })
	rows, results := b.read()
	require.Equal(t, []int{5, 2}, []int{rows, results}, "its transcript is read once")
}

func TestResultIsCondensedOnceEnoughMessagesFollow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.endpoint.Reply(llmtest.Chat("longer than the result"+strings.Repeat(" or so", 1_000)), llmtest.Chat("shorter"))
	b.step(0, 3) // the model can't condense this one
	b.await("asked", func() bool { return b.endpoint.Calls() == 1 })
	b.step(1, 2)
	b.step(2, 1)
	b.await("condensed", func() bool { return b.reactor.Figures().Condensed == 1 })
	require.Equal(t, 2, b.endpoint.Calls(), "nothing that is too new, and no retry of what the model can't condense")
}

func TestAnImageIsNeitherCondensedNorShownToTheModel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.endpoint.Reply(llmtest.Chat("shorter"))
	image := "data:image/png;base64," + strings.Repeat("AZr3", 5_000)
	b.publish("image",
		&events.ToolCalled{ToolCallID: "i1", ToolName: "screenshot", Arguments: json.RawMessage(`{}`)}, &events.ToolReturned{ToolCallID: "i1", Result: events.TextResult(image)},
		&events.ToolCalled{ToolCallID: "i2", ToolName: "open", Arguments: json.RawMessage(`{}`)}, &events.ToolReturned{ToolCallID: "i2", Result: events.TextResult(image + strings.Repeat(" and a text", 200))},
		&events.MessageCreated{MessageID: "m1", Role: "user", Content: "go on"}, &events.MessageCreated{MessageID: "m2", Role: "user", Content: "go on"}, &events.MessageCreated{MessageID: "m3", Role: "user", Content: "go on"})
	b.await("condensed", func() bool { return b.reactor.Figures().Condensed == 1 })
	require.Equal(t, 1, b.endpoint.Calls(), "only the result with a long text")
	asked := b.endpoint.Requests()[0].Text
	require.Contains(t, asked, "[image/png, 15 kB] and a text")
	require.NotContains(t, asked, "AZr3AZr3")
}

// The two read models apply a deletion at different times, and nobody can mend that.
func TestADeletionThatOnlyTheGraphHasAppliedIsNoTrouble(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.step(0, 1)
	require.NoError(t, b.state(func(r summary.Reader) error {
		c, err := r.Conversation(t.Context(), conversation)
		b.late.Store(&c)
		return err
	}))
	e, err := events.New(conversation.ID, "test", "deleted", &events.ConversationDeleted{})
	require.NoError(t, err)
	ack, err := b.Log.Publish(mnemetest.Context(t), conversation.Tenant, e)
	require.NoError(t, err)
	response, err := http.Get(fmt.Sprintf("%s/v1/conversations/%s?at_least=%d", b.HTTPURL(), conversation.ID, ack.Seq))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusNotFound, response.StatusCode)
	b.reactor.Touch([]events.ConversationID{conversation})
	b.await("it is tried", func() bool { return b.reactor.Figures().Waiting == 1 })
	b.late.Store(nil)
	b.await("it is over", func() bool { return b.reactor.Figures().Waiting == 0 })
	require.NotContains(t, b.logged.String(), "level=WARN")
}

func TestAnInvalidDeletionDoesNotEndTheWorkOnAConversation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn, err := nats.Connect(b.NATSURL(), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.RequestMsg(&nats.Msg{
		Subject: "mneme.default.c.conversation_deleted", Data: []byte("{"), Header: nats.Header{"Content-Type": {events.ContentTypeEvent}},
	}, mnemetest.Patience)
	require.NoError(t, err)
	b.endpoint.Reply(llmtest.Chat("shorter"))
	b.step(0, 3)
	b.await("condensed", func() bool { return b.reactor.Figures().Condensed == 1 })
}
