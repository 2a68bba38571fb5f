package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"mneme.dev/mneme/internal/access/callout"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/quota"
	"mneme.dev/mneme/internal/rebuild"
	"mneme.dev/mneme/internal/salvage"
	"mneme.dev/mneme/internal/service/scratch"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/insight"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary/llm"
)

// RunContextAPI is the program context-api: it serves from the read models that
// ingestor, file-tracker and summarizer write, to the same data directory or Neo4j.
//
// Package doctor, which checks what a program needs, imports this one; so doctor is given. It may be nil.
func RunContextAPI(doctor Doctor) func(context.Context) error {
	return func(ctx context.Context) error {
		return program.Again(ctx, func(ctx context.Context) error { return runContextAPI(ctx, doctor) })
	}
}

// Doctor returns the checks that a program makes of itself, see [httpapi.Config].
type Doctor func(log *eventlog.Log, data string) func(context.Context, httpapi.Status) []httpapi.Check

func runContextAPI(ctx context.Context, doctor Doctor) (err error) {
	s := settings.ForContextAPI()
	if err := settings.Read(s); err != nil {
		return &program.UsageError{Err: err}
	}
	tell, logger, err := program.Observe(ctx, "mneme-context-api", settings.Logger(os.Stderr, s.LogLevel, s.LogFormat).With("program", "context-api"))
	if err != nil {
		return err
	}
	defer tell.Stop()
	LimitMemory(s.Memory)
	server, err := program.Listen("MNEME_LISTEN", s.Listen, program.ServingOf(s.Access, s.Hosts, s.Trust), logger)
	if err != nil {
		return err
	}
	defer server.Stop()
	if err := os.MkdirAll(filepath.Clean(s.Data), 0o700); err != nil {
		return fmt.Errorf("MNEME_DATA=%q: %w", s.Data, err)
	}
	if err := scratch.Clean(s.Data); err != nil {
		return err
	}
	log, err := program.OpenLog(ctx, program.LogConfig{URL: s.NATSURL, TLS: s.NATSTLS, Program: "context-api", Telemetry: tell, Logger: logger})
	if err != nil {
		return err
	}
	conn := log.Conn()
	defer conn.Close()
	tell.Metrics.WatchLog(log)
	self, err := worker.NewLeases(log, "context-api")
	if err != nil {
		return err
	}
	defer self.Announce(nil, logger)()
	gate, closeGate, err := program.OpenGate(ctx, s.Access, conn, logger)
	if err != nil {
		return err
	}
	defer closeGate()
	if s.Callout != "" {
		key, err := callout.ReadSeed(s.Callout)
		if err != nil {
			return &program.UsageError{Err: fmt.Errorf("MNEME_NATS_CALLOUT_SEED_FILE: %w", err)}
		}
		stop, err := callout.Serve(callout.Config{Conn: conn, Issuer: key, Gate: gate, Logger: logger, Now: time.Now})
		if err != nil {
			return err
		}
		defer stop()
	}
	quotas, closeQuotas, err := program.OpenQuotas(ctx, s.Access.Quotas, s.Data, log, logger)
	if err != nil {
		return err
	}
	defer closeQuotas()
	trail, err := OpenAudit(ctx, conn, s.Auditing, tell, logger)
	if err != nil {
		return err
	}
	defer trail.Close()
	condense, err := Condensing(s.Condensing)
	if err != nil {
		return &program.UsageError{Err: err}
	}
	search, err := NewCache(s.Searching, tell)
	if err != nil {
		return err
	}
	prices, err := Prices(s.Insights.Prices)
	if err != nil {
		return &program.UsageError{Err: err}
	}
	model, err := analysing(s.Analysing, quotas, prices)
	if err != nil {
		return &program.UsageError{Err: err}
	}
	stores := worker.NewStores(s.Data, s.Models)
	models := NewModels(s.Data, stores)
	defer func() { err = errors.Join(err, models.Close()) }()
	control, err := rebuild.NewControl(conn, stores.Backend())
	if err != nil {
		return err
	}
	eraser, err := NewEraser(log, self, stores, models, trail, s.Erasing, logger)
	if err != nil {
		return err
	}
	eraser.Start()
	defer eraser.Stop()
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { WarnOfStore(watching, models, logger) })
	watch.Go(func() { control.Watch(watching, logger, func(string) { models.Again() }) })
	defer watch.Wait()
	defer stop()
	config := httpapi.Config{
		Log: log, LogHealth: tell.Metrics.WriteError, Logger: logger, Telemetry: tell, Settings: settings.Effective(s, nil),
		Gate: gate, Quotas: quotas, Audit: trail,
		Models: models, Store: stores.Backend(), NotReady: worker.ErrNotThere, Cache: search, ProjectMemoryOff: s.ProjectMemory == "off",
		Condense: condense, Model: model, Prices: prices,
		Rebuilds: NewRebuilds(control, stores, models, log, s.Searching), Erasures: eraser,
		Self: func() projection.Member { return self.Member(nil) },
	}
	if doctor != nil {
		config.Doctor = doctor(log, s.Data)
	}
	server.Start(httpapi.New(config))
	logger.Info("running", "nats", conn.ConnectedUrlRedacted(), "store", stores.String(), "http", server.URL())
	err = program.Serve(ctx, log, logger)
	logger.Info("stopping")
	server.Stop() // first, because requests in flight need the log and the models
	return err
}

// WarnOfStore logs at the start if the read models can't be read, except that nothing has written them yet. The
// program serves anyway, and without the line its log would look well until the first request.
func WarnOfStore(ctx context.Context, models *Models, logger *slog.Logger) {
	pinned, err := models.Graph(ctx)
	switch {
	case err == nil:
		pinned.Release()
	case ctx.Err() == nil && !errors.Is(err, worker.ErrNotThere):
		logger.Warn("the read models can't be read now; requests for them are answered with 503 until they can", "error", err)
	}
}

// analysing returns the model that does analyses, nil if none is configured.
func analysing(s settings.Analysing, quotas *quota.Quotas, prices *insight.Prices) (*llm.Writer, error) {
	profile, ok := s.LLM()
	if !ok {
		return nil, nil
	}
	quotas.Spends()
	return llm.New(priced(profile, prices))
}

// Prices reads the price file, nil without one.
func Prices(path string) (*insight.Prices, error) {
	if path == "" {
		return nil, nil
	}
	p, err := insight.ReadPrices(path)
	if err != nil {
		return nil, fmt.Errorf("MNEME_PRICES_FILE: %w", err)
	}
	return p, nil
}

// priced adds what the price file says about a model whose settings do not name both prices.
func priced(p llm.Profile, prices *insight.Prices) llm.Profile {
	if p.InputPrice > 0 && p.OutputPrice > 0 {
		return p
	}
	if input, output, known := prices.Rates(p.Model); known {
		p.InputPrice, p.OutputPrice, p.Priced = input, output, true
	}
	return p
}

// NewRebuilds returns the rebuilds of all projections that run. A rebuild first checks that
// the log still holds everything that the read model graph holds.
func NewRebuilds(control *rebuild.Control, stores worker.Stores, models *Models, log *eventlog.Log, s settings.Searching) *rebuild.Rebuilds {
	var projections []string
	_, embeds := s.Endpoint()
	for _, m := range readmodel.Ours() {
		if m.Needs == "" || embeds {
			projections = append(projections, m.Name)
		}
	}
	check := func(ctx context.Context) error {
		state, err := log.State(ctx)
		if err != nil {
			return err
		}
		suspect := state.Missing > 0
		pinned, err := models.Graph(ctx)
		if err == nil {
			defer pinned.Release()
			suspect, err = salvage.Check(ctx, log, pinned.Model)
		}
		var loss *salvage.LossError
		switch {
		case err == nil, errors.As(err, &loss), ctx.Err() != nil:
			return err
		case !suspect && (errors.Is(err, projection.ErrDamaged) || errors.Is(err, worker.ErrNotThere) || errors.Is(err, projection.ErrRebuild)):
			return nil // nothing to compare with, and nothing is known to be lost
		case suspect:
			return fmt.Errorf("the log has lost events, and the read model graph, which would show which ones, cannot be read: %w", err)
		}
		return fmt.Errorf("the read model graph cannot be asked whether the log holds as much as it does: %w", err)
	}
	return rebuild.New(control, stores.Generations(), log, check, projections...)
}
