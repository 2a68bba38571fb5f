package service

import (
	"context"
	"fmt"

	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/summarizer"
	"mneme.dev/mneme/internal/telemetry"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
	"mneme.dev/mneme/pkg/summary/llm"
)

// Summarizer runs the projection "summaries" and the reactor that writes summaries when
// they are due.
type Summarizer struct {
	*Consumer[*summary.Unit, SummariesStore]
	reactor *summarizer.Reactor
}

// Summarizer opens the read model "summaries" for writing and creates its projector and
// its reactor, which reads the graph from models. With zero settings it writes no summaries.
func (p Parts) Summarizer(ctx context.Context, s settings.Summaries, models *Models) (*Summarizer, error) {
	endpoints := new(llm.Endpoints)
	profiles, err := profiles(s, endpoints)
	if err != nil {
		return nil, &UsageError{err}
	}
	consumer, err := newConsumer(ctx, p, summary.Projection(), p.Stores.openSummaries)
	if err != nil {
		return nil, err
	}
	c := &Summarizer{Consumer: consumer}
	c.reactor = summarizer.New(summarizer.Config{
		Log: p.Log, State: c.state, Live: c.live, Profiles: profiles, Files: files.DefaultTable(), Parallel: max(1, s.Parallel), Logger: p.Logger,
		Graph: func(ctx context.Context, read func(graph.Reader) error) error {
			return view.Lend(ctx, models.Graph, read)
		},
	})
	consumer.touched, consumer.explain = c.reactor.Touch, c.explain
	p.Telemetry.Metrics.WatchSummaries(func() telemetry.Summaries {
		f := c.reactor.Figures()
		return telemetry.Summaries{
			Written: f.Written - f.Fallbacks, Fallbacks: f.Fallbacks, Titles: f.Titles, Condensed: f.Condensed, Calls: f.Calls,
			InputTokens: f.Input, OutputTokens: f.Output, Failures: endpoints.Failures(), Queued: f.Queued, Running: f.Running, Waiting: f.Waiting,
		}
	})
	return c, nil
}

// Start begins to follow the log and to write summaries that are due.
func (c *Summarizer) Start() {
	c.Consumer.Start()
	c.reactor.Start()
}

// Stop cancels running model calls, finishes the current batches and closes the stores.
func (c *Summarizer) Stop() error {
	c.reactor.Stop()
	return c.Consumer.Stop()
}

// explain adds to the status why conversations are waiting to be summarized.
func (c *Summarizer) explain(list []projection.Status) {
	waits := c.reactor.Waits()
	for i := range list {
		if s, w := &list[i], waits[list[i].Partition]; w.Conversations > 0 && s.State == projection.StateLive && s.Error == "" {
			s.Error = fmt.Sprintf("%d conversations are waiting to be summarized: %v", w.Conversations, w.Err)
		}
	}
}

// state calls read with the generation that serves.
func (c *Summarizer) state(read func(summary.Reader) error) error {
	v := c.shelf.take()
	if v == nil {
		return errEnds
	}
	defer v.release()
	return read(v.store)
}

// live returns the position of the serving generation on a partition.
func (c *Summarizer) live(partition int) (seq uint64, live bool) {
	s := c.now().projector.Status()[partition]
	return s.Checkpoint.Seq, s.State == projection.StateLive
}
