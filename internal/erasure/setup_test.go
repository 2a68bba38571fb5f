package erasure_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/erasure"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
	"mneme.dev/mneme/internal/service"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/projection"
)

// patience is how long a test waits for what must happen.
const patience = mnemetest.Patience

// world is a log and its read models in SQLite, without an eraser of its own.
type world struct {
	*testing.T
	data     string
	log      *eventlog.Log
	stores   worker.Stores
	models   *service.Models
	leases   *projection.Leases
	graph    *worker.Consumer[*graph.Unit, graph.Store]
	files    *worker.Consumer[*graph.FilesUnit, graph.FilesStore]
	projects *worker.Consumer[*project.Unit, project.Store]
}

func setup(t *testing.T) *world {
	t.Helper()
	data := t.TempDir()
	_, conn := natstest.Alone(t, embedded.Config{Dir: filepath.Join(data, "nats")}, natsdeploy.Settings{MaxBytes: 1 << 29, Partitions: 2})
	return setupOn(t, data, conn)
}

// setupOn makes a world with the log of a server.
func setupOn(t *testing.T, data string, conn *nats.Conn) *world {
	t.Helper()
	w := &world{T: t, data: data}
	logger := slog.New(slog.DiscardHandler)
	var err error
	w.log, err = eventlog.Open(mnemetest.Context(t), conn)
	require.NoError(t, err)
	tell, err := telemetry.Setup(t.Context(), "test", settings.Telemetry{}, logger)
	require.NoError(t, err)
	t.Cleanup(tell.Stop)
	w.stores = worker.NewStores(w.data, settings.Models{})
	parts := worker.Parts{Log: w.log, Stores: w.stores, Telemetry: tell, Logger: logger, Retention: worker.Retention{Kept: 300 * time.Millisecond, Rests: 100 * time.Millisecond}}
	w.graph, err = worker.NewConsumer(t.Context(), parts, readmodel.Graph())
	require.NoError(t, err)
	w.files, err = worker.NewConsumer(t.Context(), parts, readmodel.Files())
	require.NoError(t, err)
	w.projects, err = worker.NewConsumer(t.Context(), parts, readmodel.Projects())
	require.NoError(t, err)
	counter, err := worker.NewConsumer(t.Context(), parts, readmodel.Insight())
	require.NoError(t, err)
	w.models = service.NewModels(w.data, w.stores)
	summarizer, err := service.NewSummarizer(t.Context(), parts, settings.Summaries{}, w.models)
	require.NoError(t, err)
	for _, one := range []worker.Worker{w.graph, w.files, w.projects, counter, summarizer} {
		one.Start()
		t.Cleanup(func() { require.NoError(t, one.Stop()) })
	}
	t.Cleanup(func() { require.NoError(t, w.models.Close()) })
	w.leases, err = worker.NewLeases(w.log, "test")
	require.NoError(t, err)
	return w
}

// eraser returns an eraser that is not started. change may be nil.
func (w *world) eraser(change func(*erasure.Config)) *erasure.Eraser {
	w.Helper()
	c := erasure.Config{
		Log: w.log, Leases: w.leases, Store: w.stores.Backend(), Generations: w.stores.Generations(), Projections: readmodel.Ours(), Logger: slog.New(slog.DiscardHandler),
		Graph: func(ctx context.Context, read func(graph.Reader) error) error {
			return view.Lend(ctx, w.models.Graph, read)
		},
		Projects: func(ctx context.Context, read func(project.Reader) error) error {
			return view.Lend(ctx, w.models.Projects, read)
		},
		Audited: func(_ context.Context, _ erasure.Scope, ask func() error) error { return ask() },
	}
	if change != nil {
		change(&c)
	}
	e, err := erasure.New(c)
	require.NoError(w, err)
	return e
}

// started starts an eraser that stops with the test.
func (w *world) started(e *erasure.Eraser) *erasure.Eraser {
	e.Start()
	w.Cleanup(e.Stop)
	return e
}

// ended waits until an erasure is done.
func (w *world) ended(e *erasure.Eraser) (r erasure.Record) {
	w.Helper()
	require.Eventually(w, func() bool {
		var err error
		r, err = e.Last(w.Context())
		return err == nil && r.State == erasure.Done
	}, patience, 5*time.Millisecond, "%s: %s", r.State, r.Doing)
	return r
}

// erase erases a scope from beginning to end.
func (w *world) erase(s erasure.Scope) erasure.Report {
	w.Helper()
	e := w.eraser(nil)
	e.Start()
	defer e.Stop()
	_, err := e.Ask(mnemetest.Context(w), s)
	require.NoError(w, err)
	return w.ended(e).Report
}

// until runs an eraser and kills it when it comes to a step for the nth time. It returns false if the erasure was done
// before. A kill ends the goroutine where it is, so that nothing after it is recorded.
func (w *world) until(step string, nth int) (killed bool) {
	e := w.eraser(nil)
	var mu sync.Mutex
	times := 0
	dead := make(chan struct{})
	e.Step = func(now string) {
		mu.Lock()
		defer mu.Unlock()
		if !strings.HasPrefix(now, step) {
			return
		}
		if times++; times == nth {
			close(dead)
			runtime.Goexit()
		}
	}
	e.Start()
	defer e.Stop()
	for {
		select {
		case <-dead:
			return true
		case <-time.After(5 * time.Millisecond):
			if r, err := e.Last(w.Context()); err == nil && r.State == erasure.Done {
				return false
			}
		}
	}
}

func event(t testing.TB, conversation, id string, payload events.Payload) events.Event {
	e, err := events.New(conversation, "test", id, payload)
	require.NoError(t, err)
	e.Time = time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	return e
}

// history is events of every kind, with the canary wherever there is text. Some of the events fail.
func history(t testing.TB, conversation, canary, project string) []events.Event {
	long := strings.Repeat(canary+" ", 9000) // more than a read model keeps
	yes := true
	return []events.Event{
		event(t, conversation, "started", &events.ConversationStarted{Title: "title " + canary, Tags: []string{canary}, Project: project, Cwd: "/home/" + canary}),
		event(t, conversation, "u1", &events.MessageCreated{MessageID: "u1", Role: "user", Content: "question " + canary}),
		event(t, conversation, "a1", &events.MessageCreated{MessageID: "a1", Role: "assistant", Content: long, Reasoning: "because " + canary, References: []events.Reference{{File: canary + ".go", StartLine: 1, EndLine: 2, Name: canary}}}),
		event(t, conversation, "c1", &events.ToolCalled{ToolCallID: "c1", MessageID: "a1", ToolName: "Read", Arguments: json.RawMessage(fmt.Sprintf(`{"file_path":"/src/%s.go"}`, canary))}),
		event(t, conversation, "r1", &events.ToolReturned{ToolCallID: "c1", Success: &yes, Result: events.TextResult("result " + canary)}),
		event(t, conversation, "c2", &events.ToolCalled{ToolCallID: "c2", MessageID: "a1", ToolName: "Edit", Arguments: json.RawMessage(fmt.Sprintf(`{"file_path":"/src/%s.go","old_string":"%s"}`, canary, canary))}),
		event(t, conversation, "updated", &events.ConversationUpdated{Title: new("other " + canary)}),
		event(t, conversation, "again", &events.MessageCreated{MessageID: "u1", Role: "user", Content: "the same id with other content: " + canary}), // fails
	}
}

// publish publishes the histories of conversations, interleaved, and waits until they are applied.
func (w *world) publish(histories ...[]events.Event) {
	w.Helper()
	var list []events.Event
	for i := range histories[0] {
		for _, h := range histories {
			list = append(list, h[i])
		}
	}
	_, err := w.log.PublishAll(mnemetest.Context(w), "default", list)
	require.NoError(w, err)
	w.applied()
}

// applied waits until every read model has applied the whole log.
func (w *world) applied() {
	w.Helper()
	require.Eventually(w, func() bool {
		for _, name := range []string{"graph", "files", "projects", "summaries", "insight"} {
			cps, err := w.stores.Generations().Checkpoints(w.Context(), name, w.serving(name))
			require.NoError(w, err)
			at := map[int]uint64{}
			for _, cp := range cps {
				at[cp.Partition] = cp.Seq
			}
			for n := range w.log.Partitions() {
				last, err := w.log.LastOf(mnemetest.Context(w), n)
				require.NoError(w, err)
				if at[n] < last {
					return false
				}
			}
		}
		return true
	}, patience, 5*time.Millisecond)
}

func (w *world) serving(name string) int {
	w.Helper()
	builds, err := w.stores.Generations().Builds(w.Context(), name)
	require.NoError(w, err)
	return builds.Serving
}

// search counts where a canary is in any file of the log and the read models.
func (w *world) search(canary string) []erasure.Hit {
	w.Helper()
	found, err := erasure.Search(w.Context(), []string{w.data}, []string{canary})
	require.NoError(w, err)
	require.Greater(w, found.Files, 4)
	return found.Hits
}

// consistent checks that nothing counts as lost and that the read models equal a replay of the log.
func (w *world) consistent() {
	w.Helper()
	state, err := w.log.State(mnemetest.Context(w))
	require.NoError(w, err)
	require.Zero(w, state.Missing)
	list, err := w.models.Verify(w.Context(), w.log, func(string, uint64, uint64) {})
	require.NoError(w, err)
	require.NotEmpty(w, list)
	for _, v := range list {
		require.True(w, v.Equal(), "%s: %v", v.Projection, v.Differences)
	}
}

// hash returns the hash of a conversation's rows in the read model graph.
func (w *world) hash(id string) (h projection.ConversationHash) {
	w.Helper()
	require.NoError(w, view.Lend(w.Context(), w.models.Graph, func(g graph.Reader) (err error) {
		h, err = g.Hash(w.Context(), events.ConversationID{Tenant: "default", ID: id})
		return err
	}))
	return h
}
