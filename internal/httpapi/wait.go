package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/indexes"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/window"
)

// How long at_least waits without wait_ms, and how often it polls if no announcement
// arrives.
const (
	defaultWait = 5 * time.Second
	pollEvery   = 50 * time.Millisecond
)

// WaitParams let a client read its own writes.
type WaitParams struct {
	AtLeast uint64 `query:"at_least" doc:"wait until all events up to this sequence of this conversation, and of those it branched from, are applied (read your own write)"`
	WaitMS  int    `query:"wait_ms" minimum:"1" maximum:"60000" default:"5000" doc:"how long at_least waits before it answers 504, in milliseconds"`
}

// WaitAllParams are [WaitParams] for reads of all conversations.
type WaitAllParams struct {
	AtLeast uint64 `query:"at_least" doc:"wait until all events up to this sequence of the log, of any conversation, are applied (read your own write)"`
	WaitMS  int    `query:"wait_ms" minimum:"1" maximum:"60000" default:"5000" doc:"how long at_least waits before it answers 504, in milliseconds"`
}

// graph returns the read model "graph" once it has applied the requested sequences.
func (a *api) graph(ctx context.Context, id events.ConversationID, wait WaitParams, past AsOfParam) (graph.Reader, error) {
	g, m, err := a.pinnedGraph(ctx)
	if err != nil {
		return nil, err
	}
	lineage, err := a.lineage(ctx, g, id, wait, past, m)
	if err != nil {
		return nil, err
	}
	return lineage.Graph(g), nil
}

// source returns the source of a context once its read models have applied the requested sequences.
func (a *api) source(ctx context.Context, id events.ConversationID, wait WaitParams, past AsOfParam) (s window.Source, err error) {
	g, inGraph, err := a.pinnedGraph(ctx)
	if err != nil {
		return s, err
	}
	f, inFiles, err := a.pinnedFiles(ctx)
	if err != nil {
		return s, err
	}
	models := []model{inGraph, inFiles}
	lineage, err := a.appliedLineage(ctx, g, id, wait, past, models)
	if err != nil {
		return s, err
	}
	if !a.searchesRemotely() { // remote vectors arrive late, and a server may not answer: the answer can change at the same positions
		if err := a.unchangedConversation(ctx, lineage, past, models); err != nil {
			return s, err
		}
	}
	read := lineage.Graph(g)
	s = window.Source{Graph: read, Files: lineage.Files(f)}
	if a.Indexes != nil {
		edition := fmt.Sprint(inGraph.generation, " ", lineage.Descent())
		search := indexes.Source{Messages: read, Edition: edition}
		if a.searchesRemotely() {
			search.Embeddings, search.Absent = a.embeddings(ctx, lineage)
		}
		s.Recall = a.Indexes.Of(search)
		s.Graph = a.Indexes.Graph(read, edition)
	}
	return s, a.admitRead(ctx)
}

// searchesRemotely reports whether searches need vectors from an embedding endpoint.
func (a *api) searchesRemotely() bool { return a.Indexes != nil && a.Indexes.Remote() }

// embeddings returns the vectors of a lineage, or an error if there are none to use.
func (a *api) embeddings(ctx context.Context, lineage *graph.Lineage) (graph.EmbeddingsReader, error) {
	e, _, err := a.pinnedEmbeddings(ctx)
	if err == nil {
		err = graph.CheckEmbeddings(ctx, e, a.Indexes.Model())
	}
	if err != nil {
		return nil, err
	}
	return lineage.Embeddings(e), nil
}

// lineage begins every read of a conversation. It waits until models have applied the
// requested sequences of the conversation and its ancestors, finds the ancestors (or
// returns graph.ErrNotFound), answers 304 if the client already has the answer (see
// [api.unchanged]), and waits for a place among the reads. The read may use only these models.
func (a *api) lineage(ctx context.Context, g graph.Reader, id events.ConversationID, wait WaitParams, past AsOfParam, models ...model) (*graph.Lineage, error) {
	lineage, err := a.appliedLineage(ctx, g, id, wait, past, models)
	if err != nil {
		return nil, err
	}
	if err := a.unchangedConversation(ctx, lineage, past, models); err != nil {
		return nil, err
	}
	return lineage, a.admitRead(ctx)
}

// appliedLineage returns the lineage of a conversation once models have applied the
// requested sequences.
func (a *api) appliedLineage(ctx context.Context, g graph.Reader, id events.ConversationID, wait WaitParams, past AsOfParam, models []model) (*graph.Lineage, error) {
	if wait.AtLeast == 0 && past.AsOf == 0 {
		return graph.LineageOf(ctx, g, id, graph.Latest)
	}
	if err := a.inLog(ctx, wait, past); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, wait.wait())
	defer cancel()
	awaited := map[events.ConversationID]bool{}
	for unknown := []events.ConversationID{id}; ; {
		for _, one := range unknown {
			if err := a.awaitApplied(ctx, waiting, one, wait, past, models); err != nil {
				return nil, err
			}
			awaited[one] = true
		}
		lineage, err := graph.LineageOf(ctx, g, id, past.seq())
		if err != nil {
			return nil, err
		}
		unknown = slices.DeleteFunc(slices.Clone(lineage.Ancestors()), func(one events.ConversationID) bool { return awaited[one] })
		if len(unknown) == 0 {
			return lineage, nil
		}
	}
}

// awaitApplied waits until models have applied at_least, or this conversation's last event
// if that comes earlier. It treats as_of in the same way, because otherwise the answer
// would change a moment later. The context waiting bounds only the wait; other reads use
// ctx, so that a short wait does not refuse what is already applied.
func (a *api) awaitApplied(ctx, waiting context.Context, id events.ConversationID, p WaitParams, past AsOfParam, models []model) error {
	last, partition, err := a.Log.Last(ctx, id.Tenant, id.ID)
	if err != nil {
		return err
	}
	for _, m := range models {
		if err := a.awaitPartition(ctx, waiting, p, m, partition, min(max(p.AtLeast, past.AsOf), last)); err != nil {
			return err
		}
	}
	return nil
}

// awaitAll waits until a model has applied at_least for all conversations: in each
// partition, at_least or the partition's last event if that comes earlier.
func (a *api) awaitAll(ctx context.Context, wait WaitAllParams, m model) error {
	p := WaitParams(wait)
	if p.AtLeast == 0 {
		return nil
	}
	if err := a.inLog(ctx, p, AsOfParam{}); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, p.wait())
	defer cancel()
	for partition := range a.Log.Partitions() {
		last, err := a.Log.LastOf(ctx, partition)
		if err != nil {
			return err
		}
		if err := a.awaitPartition(ctx, waiting, p, m, partition, min(p.AtLeast, last)); err != nil {
			return err
		}
	}
	return nil
}

// inLog refuses sequences beyond the end of the log.
func (a *api) inLog(ctx context.Context, p WaitParams, past AsOfParam) error {
	state, err := a.Log.State(ctx)
	if err != nil {
		return err
	}
	for _, asked := range []struct {
		name string
		seq  uint64
	}{{"at_least", p.AtLeast}, {"as_of", past.AsOf}} {
		if asked.seq > state.Head {
			return huma.Error422UnprocessableEntity(fmt.Sprintf("%s=%d is beyond the end of the log, which is %d", asked.name, asked.seq, state.Head),
				&huma.ErrorDetail{Location: "query." + asked.name, Message: "beyond the end of the log", Value: asked.seq})
		}
	}
	return nil
}

func (p WaitParams) wait() time.Duration {
	if p.WaitMS > 0 {
		return time.Duration(p.WaitMS) * time.Millisecond
	}
	return defaultWait
}

// awaitPartition checks once, bounded by ctx, and then waits until waiting ends.
func (a *api) awaitPartition(ctx, waiting context.Context, p WaitParams, m model, partition int, goal uint64) error {
	waiting, reached := a.awaiting(waiting, m.name, goal)
	ok, err := applied(ctx, m.store, partition, goal)
	if !ok && err == nil {
		err = a.Log.AwaitProgress(waiting, m.name, partition, pollEvery, func() (bool, error) { return applied(waiting, m.store, partition, goal) })
	}
	reached(err)
	timeout := errors.Is(err, context.DeadlineExceeded)
	if goal > 0 && (err == nil || timeout) {
		if other := a.sameLog(context.WithoutCancel(ctx), m, partition); other != nil {
			return other
		}
	}
	if timeout {
		return huma.NewError(http.StatusGatewayTimeout, fmt.Sprintf("%s has not applied sequence %d within %s; see mneme status", m.name, goal, p.wait()))
	}
	return err
}

func applied(ctx context.Context, model projection.ReadStore, partition int, goal uint64) (bool, error) {
	if goal == 0 {
		return true, nil
	}
	cps, err := model.Checkpoints(ctx)
	if err != nil {
		return false, err
	}
	for _, cp := range cps {
		if cp.Partition == partition {
			return cp.Seq >= goal, nil
		}
	}
	return false, nil
}
