package service

import (
	"context"
	"errors"
	"fmt"

	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/summarizer"
	"mneme.dev/mneme/internal/telemetry"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
	"mneme.dev/mneme/pkg/summary/llm"
)

// RunSummarizer is the program summarizer: log → read model "summaries", and summaries that
// are due → log. With an embedding endpoint it also runs the projection "embeddings".
func RunSummarizer(ctx context.Context) (err error) {
	s := settings.ForSummarizer()
	if err := settings.Read(s); err != nil {
		return &program.UsageError{Err: err}
	}
	models := NewModels(s.Data, worker.NewStores(s.Data, s.Models))
	defer func() { err = errors.Join(err, models.Close()) }()
	closeQuotas := func() {}
	defer func() { closeQuotas() }()
	return worker.Run(ctx, "summarizer", &s.Worker, func(p worker.Parts) (_ worker.Worker, err error) {
		closeQuotas() // those of the previous run, if the log was given more partitions
		if p.Quotas, closeQuotas, err = program.OpenQuotas(ctx, s.Quotas, "", nil, p.Logger); err != nil {
			closeQuotas = func() {}
			return nil, err
		}
		if p.Prices, err = Prices(s.Prices); err != nil {
			return nil, &program.UsageError{Err: err}
		}
		writer, err := NewSummarizer(ctx, p, s.Summaries, models)
		if err != nil {
			return nil, err
		}
		endpoint, ok := s.Endpoint()
		if !ok {
			return writer, nil
		}
		embedder, err := NewEmbedder(ctx, p, endpoint)
		if err != nil {
			return nil, errors.Join(err, writer.Stop())
		}
		return worker.Several{writer, embedder}, nil
	})
}

// Summarizer runs the projection "summaries" and the reactor that writes summaries when
// they are due.
type Summarizer struct {
	*worker.Consumer[*summary.Unit, summary.Store]
	reactor *summarizer.Reactor
	model   *llm.Writer
}

// Model returns the model of the default profile, nil if there is none. All its users share its caps and its limit of
// concurrent calls.
func (c *Summarizer) Model() *llm.Writer { return c.model }

// NewSummarizer opens the read model "summaries" for writing and creates its projector and
// its reactor, which reads the graph from models. With zero settings it writes no summaries.
func NewSummarizer(ctx context.Context, p worker.Parts, s settings.Summaries, models *Models) (*Summarizer, error) {
	endpoints := new(llm.Endpoints)
	profiles, err := profiles(s, endpoints, p.Prices)
	if err != nil {
		return nil, &program.UsageError{Err: err}
	}
	consumer, err := worker.NewConsumer(ctx, p, readmodel.Summaries())
	if err != nil {
		return nil, err
	}
	c := &Summarizer{Consumer: consumer}
	c.model, _ = profiles.Default.Model.(*llm.Writer)
	c.reactor = summarizer.New(summarizer.Config{
		Log: p.Log, State: c.state, Live: c.Live, Profiles: profiles, Files: files.DefaultTable(), Parallel: max(1, s.Parallel), Logger: p.Logger,
		Views: view.New(view.Config{Log: p.Log, Models: models}), Spend: p.Quotas.Spend,
	})
	p.Quotas.Spends()
	consumer.Hooks = worker.Hooks{Touched: c.reactor.Touch, Switched: c.reactor.Rescan, Explain: c.explain}
	p.Telemetry.Metrics.WatchSummaries(func() telemetry.Summaries {
		f := c.reactor.Figures()
		return telemetry.Summaries{
			Written: f.Written - f.Fallbacks, Fallbacks: f.Fallbacks, Titles: f.Titles, Condensed: f.Condensed, Insights: f.Insights, Chapters: f.Chapters, Calls: f.Calls,
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
		s, w := &list[i], waits[list[i].Partition]
		switch {
		case s.State != projection.StateLive || s.Error != "":
		case w.Conversations > 0:
			s.Error = fmt.Sprintf("%s waiting to be summarized: %v", counted(w.Conversations, "conversation is", "conversations are"), w.Err)
		case w.Unusable > 0:
			s.Error = fmt.Sprintf("%s could not be analyzed: %v", counted(w.Unusable, "finished conversation", "finished conversations"), w.Reason)
		}
	}
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// state calls read with the generation that serves.
func (c *Summarizer) state(read func(summary.Reader) error) error {
	v := c.Current().Take()
	if v == nil {
		return worker.ErrStopping
	}
	defer v.Release()
	return read(v.Store)
}
