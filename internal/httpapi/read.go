package httpapi

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/window"
)

// Models are the read models that the API serves.
type Models interface {
	view.Models
	// Verify replays the log into temporary read models and compares.
	Verify(ctx context.Context, log *eventlog.Log, progress func(projection string, done, total uint64)) ([]projection.Verification, error)
}

// WaitParams let a client read its own writes.
type WaitParams struct {
	AtLeast uint64 `query:"at_least" doc:"wait until all events up to this sequence of this conversation, and of those it branched from, are applied (read your own write)"`
	WaitMS  int    `query:"wait_ms" minimum:"1" maximum:"60000" default:"5000" doc:"how long at_least waits before it answers 504, in milliseconds"`
}

func (p WaitParams) at(past AsOfParam) view.At {
	return view.At{AtLeast: p.AtLeast, AsOf: past.AsOf, Wait: time.Duration(p.WaitMS) * time.Millisecond}
}

// WaitAllParams are [WaitParams] for reads of all conversations.
type WaitAllParams struct {
	AtLeast uint64 `query:"at_least" doc:"wait until all events up to this sequence of the log, of any conversation, are applied (read your own write)"`
	WaitMS  int    `query:"wait_ms" minimum:"1" maximum:"60000" default:"5000" doc:"how long at_least waits before it answers 504, in milliseconds"`
}

// awaitAll waits until models have applied at_least for all conversations.
func (a *api) awaitAll(ctx context.Context, p WaitAllParams, models ...view.Model) error {
	for _, m := range models {
		if err := a.views.AwaitAll(ctx, WaitParams(p).at(AsOfParam{}), m); err != nil {
			return err
		}
	}
	return nil
}

// beginList begins a read of many conversations: it waits for the models, answers 304 if the client has the answer, and waits
// for a place among the reads.
func (a *api) beginList(ctx context.Context, tenant string, wait WaitAllParams, models ...view.Model) error {
	if err := a.awaitAll(ctx, wait, models...); err != nil {
		return err
	}
	if err := a.unchangedList(ctx, models...); err != nil {
		return err
	}
	return a.admitRead(ctx, tenant)
}

// pins are the read models of a request.
func (a *api) pins(ctx context.Context) *view.Pins { return exchangeOf(ctx).pins }

// graph begins a read of a conversation in the read model "graph".
func (a *api) graph(ctx context.Context, id events.ConversationID, wait WaitParams, past AsOfParam) (graph.Reader, error) {
	v, err := a.view(ctx, id, wait, past)
	if err != nil {
		return nil, err
	}
	return v.Graph(), nil
}

// view opens a conversation, see [api.begin].
func (a *api) view(ctx context.Context, id events.ConversationID, wait WaitParams, past AsOfParam) (*view.View, error) {
	v, err := a.pins(ctx).Open(ctx, id, wait.at(past))
	if err != nil {
		return nil, err
	}
	return v, a.begin(ctx, v)
}

// exists returns graph.ErrNotFound if there is no such conversation. The request holds nothing afterwards, neither a place
// among the reads nor a generation, so it may take as long as it likes.
func (a *api) exists(ctx context.Context, id events.ConversationID) error {
	pins := a.views.Pin()
	defer pins.Release()
	_, err := pins.Open(ctx, id, view.At{})
	return err
}

// begin answers 304 if the client already has the answer, see [api.unchanged]. Otherwise it
// waits for a place among the reads.
func (a *api) begin(ctx context.Context, v *view.View) error {
	if err := a.unchangedView(ctx, v); err != nil {
		return err
	}
	return a.admitView(ctx, v)
}

// admitView waits for a place among the reads. The request holds it only until its answer is
// rendered, so a slow client does not block other reads.
func (a *api) admitView(ctx context.Context, v *view.View) error {
	x := exchangeOf(ctx)
	x.worked = append(x.worked, v.Release)
	return v.Begin(ctx)
}

// admitRead is [api.admitView] for a read that is not of one conversation.
func (a *api) admitRead(ctx context.Context, tenant string) error {
	leave, err := a.views.Enter(ctx, tenant)
	if err == nil {
		x := exchangeOf(ctx)
		x.worked = append(x.worked, leave)
	}
	return err
}

// load loads what a read searches, before it takes a place among the reads: see [view.View.Load].
type load = func(*view.View, context.Context) error

// needs are the parts of a source that a read uses.
type needs struct {
	loads         []load
	asks          bool // a model that may not answer, so the answer can change at the same positions
	coded         bool // a context that shows the code of its project too
	earlierWithin int  // budget of a context that shows earlier sessions too, 0 for none

	// found, if not nil, is called when the conversation is found, before anything is loaded. It returns what the answer
	// depends on besides positions, "" for nothing.
	found func(own *graph.Conversation) (more string, err error)
}

// source begins a read that searches a conversation, or builds a context from it.
func (a *api) source(ctx context.Context, id events.ConversationID, wait WaitParams, past AsOfParam, of needs) (s window.Source, err error) {
	v, err := a.pins(ctx).OpenWithFiles(ctx, id, wait.at(past))
	if err != nil {
		return s, err
	}
	var positions []string
	if of.found != nil {
		own := v.Lineage().Own()
		more, err := of.found(&own)
		if err != nil {
			return s, err
		}
		positions = append(positions, more)
	}
	var code *indexesNear
	if of.coded {
		code = a.projectCode(ctx, v)
		defer code.wait()
	}
	var earlier window.Earlier
	if of.earlierWithin > 0 {
		var more []string
		if earlier, more, err = a.earlier(ctx, a.pins(ctx), v, of.earlierWithin); err != nil {
			return s, err
		}
		positions = append(positions, more...)
	}
	var counted *projectCode
	if of.coded {
		var more []string
		if counted, more, err = code.counting(ctx); err != nil {
			return s, err
		}
		positions = append(positions, more...)
	}
	if !a.Cache.Remote() && !of.asks { // remote vectors arrive late, and a server may not answer: the answer can change at the same positions
		if err := a.unchangedView(ctx, v, positions...); err != nil {
			return s, err
		}
	}
	for _, load := range of.loads {
		if err := load(v, ctx); err != nil {
			return s, err
		}
	}
	s = v.Source(ctx)
	s.Earlier = earlier
	if counted != nil {
		s.Project = counted
	}
	return s, a.admitView(ctx, v)
}

// buildOf identifies a model to other processes.
func (a *api) buildOf(m view.Model) projection.Build {
	return projection.Build{Store: a.Store, Projection: m.Name, Generation: m.Generation}
}

// RerankParams ask for another order of the best messages.
type RerankParams struct {
	Rerank   string   `query:"rerank" enum:"true,false" doc:"whether a reranking model orders the best 100 messages; defaults to the server's setting. If it gives no order, the answer or the manifest says why"`
	Reranked []uint64 `query:"reranked" maxItems:"100" doc:"sequences of messages in the order in which a reranker put them, which the manifest of a context reports: repeats that order instead of asking a model"`
}

// reranking returns what the parameters ask for, and refuses a model that the server does not have.
func (a *api) reranking(in RerankParams) (window.Reranking, error) {
	there := a.Cache != nil && a.Cache.Reranker != nil
	switch {
	case len(in.Reranked) > 0:
		return window.Reranking{Order: in.Reranked}, nil
	case in.Rerank == "true" && !there:
		return window.Reranking{}, huma.Error422UnprocessableEntity("this server has no reranking model: whoever runs it sets MNEME_RERANK to one", &huma.ErrorDetail{Location: "query.rerank", Message: "needs MNEME_RERANK", Value: true})
	}
	return window.Reranking{Wanted: in.Rerank == "true" || in.Rerank == "" && there && a.Cache.RerankAlways}, nil
}
