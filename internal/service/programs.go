package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/rebuild"
	"mneme.dev/mneme/internal/salvage"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/projection"
)

// retryEvery is how often a program tries to reach a server that is not up yet.
const retryEvery = time.Second

// sayEvery is how often it logs that it is still waiting.
const sayEvery = time.Minute

// Program is the body of a main function and returns the exit code: 0 done, 1 failed, 2
// wrong usage. --help prints the settings, --healthy asks the running program whether it is
// ready, and an interrupt or SIGTERM ends run.
func Program(name string, run func(context.Context) error) int {
	if len(os.Args) > 1 {
		switch arg := os.Args[1]; arg {
		case "--help", "-h":
			if usage(os.Stdout, name) != nil {
				return 1
			}
			return 0
		case "--healthy":
			run = func(ctx context.Context) error { return healthy(ctx, name) }
		default:
			fmt.Fprintf(os.Stderr, "%s: unknown argument %q: it is configured by environment variables, see %s --help\n", name, arg, name)
			return 2
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		var usage *UsageError
		if errors.As(err, &usage) {
			return 2
		}
		return 1
	}
	return 0
}

// UsageError is a mistake in the settings.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// RunIngestor is the program ingestor: log → read model "graph".
func RunIngestor(ctx context.Context) error {
	s, err := readWorker(settings.ForIngestor())
	if err != nil {
		return err
	}
	return runWorker(ctx, "ingestor", s, func(p Parts) (Worker, error) { return p.Ingestor(ctx) })
}

// RunFileTracker is the program file-tracker: log → read model "files".
func RunFileTracker(ctx context.Context) error {
	s, err := readWorker(settings.ForFileTracker())
	if err != nil {
		return err
	}
	return runWorker(ctx, "file-tracker", s, func(p Parts) (Worker, error) { return p.FileTracker(ctx) })
}

// RunSummarizer is the program summarizer: log → read model "summaries", and summaries that
// are due → log. With an embedding endpoint it also runs the projection "embeddings".
func RunSummarizer(ctx context.Context) (err error) {
	s := settings.ForSummarizer()
	if err := settings.Read(s); err != nil {
		return &UsageError{err}
	}
	models := NewModels(s.Data, NewStores(s.Data, s.Models))
	defer func() { err = errors.Join(err, models.Close()) }()
	return runWorker(ctx, "summarizer", &s.Worker, func(p Parts) (Worker, error) {
		writer, err := p.Summarizer(ctx, s.Summaries, models)
		if err != nil {
			return nil, err
		}
		endpoint, ok := s.Endpoint()
		if !ok {
			return writer, nil
		}
		embedder, err := p.Embedder(ctx, endpoint)
		if err != nil {
			return nil, errors.Join(err, writer.Stop())
		}
		return several{writer, embedder}, nil
	})
}

// warnOfSize logs that the requested size differs from the log's; 0 means unknown.
func warnOfSize(logger *slog.Logger, asked, have int64) {
	if asked != 0 && have != 0 && asked != have {
		logger.Warn("MNEME_LOG_SIZE applies only when the log is created; the existing log keeps its size. To change it, run `nats stream edit "+natsdeploy.Stream+" --max-bytes`",
			"asked", asked, "size", have)
	}
}

// readWorker reads the settings of a program that has only these.
func readWorker(s *settings.Worker) (*settings.Worker, error) {
	if err := settings.Read(s); err != nil {
		return nil, &UsageError{err}
	}
	return s, nil
}

// runWorker runs a program that drives a projection.
func runWorker(ctx context.Context, name string, s *settings.Worker, open func(Parts) (Worker, error)) (err error) {
	tell, logger, err := observe(ctx, "mneme-"+name, settings.Logger(os.Stderr, s.LogLevel, s.LogFormat).With("program", name))
	if err != nil {
		return err
	}
	defer tell.Stop()
	health, err := Listen("MNEME_LISTEN", s.Listen, s.Hosts, s.Trust, logger)
	if err != nil {
		return err
	}
	defer health.Stop()
	log, conn, err := openLog(ctx, s.NATSURL, name, tell, logger, func(ctx context.Context, js jetstream.JetStream) error {
		info, err := natsdeploy.Apply(ctx, js, natsdeploy.Settings{Partitions: s.Partitions, Replicas: s.Replicas, MaxBytes: s.LogSize})
		warnOfSize(logger, s.LogSize, info.MaxBytes)
		return err
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	tell.Metrics.WatchLog(log)
	parts := Parts{Log: log, Stores: NewStores(s.Data, s.Models), Telemetry: tell, Logger: logger}
	defer func() { err = errors.Join(err, parts.Stores.Close()) }()
	self, err := NewLeases(log, name)
	if err != nil {
		return err
	}
	if parts.Stores.Shared() {
		parts.Leases = self
	}
	consumer, err := open(parts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, consumer.Stop()) }()
	consumer.Start()
	if !parts.Stores.Shared() {
		defer self.Announce(consumer.Status, logger)()
	}
	health.Start(Health(consumer, tell))
	logger.Info("running", "nats", conn.ConnectedUrlRedacted(), "store", parts.Stores.String(), "health", health.URL()+"/readyz")
	<-ctx.Done()
	logger.Info("stopping")
	return nil
}

// RunContextAPI is the program context-api: it serves from the read models that
// ingestor, file-tracker and summarizer write, to the same data directory or Neo4j.
func RunContextAPI(ctx context.Context) (err error) {
	s := settings.ForContextAPI()
	if err := settings.Read(s); err != nil {
		return &UsageError{err}
	}
	tell, logger, err := observe(ctx, "mneme-context-api", settings.Logger(os.Stderr, s.LogLevel, s.LogFormat).With("program", "context-api"))
	if err != nil {
		return err
	}
	defer tell.Stop()
	server, err := Listen("MNEME_LISTEN", s.Listen, s.Hosts, s.Trust, logger)
	if err != nil {
		return err
	}
	defer server.Stop()
	if err := os.MkdirAll(filepath.Clean(s.Data), 0o700); err != nil {
		return fmt.Errorf("MNEME_DATA=%q: %w", s.Data, err)
	}
	if err := removeScratch(s.Data); err != nil {
		return err
	}
	log, conn, err := openLog(ctx, s.NATSURL, "context-api", tell, logger, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	tell.Metrics.WatchLog(log)
	self, err := NewLeases(log, "context-api")
	if err != nil {
		return err
	}
	defer self.Announce(nil, logger)()
	condense, err := condensing(s.Condensing)
	if err != nil {
		return &UsageError{err}
	}
	search, err := searching(s.Searching, tell)
	if err != nil {
		return err
	}
	stores := NewStores(s.Data, s.Models)
	models := NewModels(s.Data, stores)
	defer func() { err = errors.Join(err, models.Close()) }()
	control, err := rebuild.NewControl(conn, stores.Backend())
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { control.Watch(watching, logger, func(string) { models.Again() }) })
	defer watch.Wait()
	defer stop()
	server.Start(httpapi.New(httpapi.Config{
		Log: log, Models: models, Rebuilds: rebuilds(control, stores, models, log, s.Searching), Logger: logger, Store: stores.Backend(), NotReady: ErrNotThere, Telemetry: tell, Condense: condense, Cache: search,
		Self: func() projection.Member { return self.Member(nil) },
	}))
	logger.Info("running", "nats", conn.ConnectedUrlRedacted(), "store", stores.String(), "http", server.URL())
	<-ctx.Done()
	logger.Info("stopping")
	server.Stop() // first, because requests in flight need the log and the models
	return nil
}

// rebuilds returns the rebuilds of all projections that run. A rebuild first checks that
// the log still holds everything that the read model graph holds.
func rebuilds(control *rebuild.Control, stores Stores, models *Models, log *eventlog.Log, s settings.Searching) *rebuild.Rebuilds {
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
		case !suspect && (errors.Is(err, projection.ErrDamaged) || errors.Is(err, ErrNotThere) || errors.Is(err, projection.ErrRebuild)):
			return nil // nothing to compare with, and nothing is known to be lost
		case suspect:
			return fmt.Errorf("the log has lost events, and the read model graph, which would show which ones, cannot be read: %w", err)
		}
		return fmt.Errorf("the read model graph cannot be asked whether the log holds as much as it does: %w", err)
	}
	return rebuild.New(control, stores.Generations(), log, check, projections...)
}

// observe sets up the telemetry of a program and the matching logger.
func observe(ctx context.Context, name string, logger *slog.Logger) (*telemetry.Telemetry, *slog.Logger, error) {
	s, err := settings.ReadTelemetry()
	if err != nil {
		return nil, nil, &UsageError{err}
	}
	logger = telemetry.Logger(logger)
	t, err := telemetry.Setup(ctx, name, s, logger)
	return t, logger, err
}

// openLog connects to NATS and opens the log, or creates it if apply is given. It waits for
// a server or log that does not exist yet, but fails at once on one that is wrong.
func openLog(ctx context.Context, url, name string, t *telemetry.Telemetry, logger *slog.Logger, apply func(context.Context, jetstream.JetStream) error) (*eventlog.Log, *nats.Conn, error) {
	for {
		log, conn, err := tryOpenLog(ctx, url, name, t, logger, apply)
		if err == nil {
			return log, conn, nil
		}
		if conn != nil {
			conn.Close()
		}
		if errors.Is(err, natsdeploy.ErrIncompatible) || errors.Is(err, nats.ErrAuthorization) {
			return nil, nil, err
		}
		logger.Warn("waiting for NATS", "url", settings.Redacted(url), "error", err)
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("NATS at %s never became available: %w", settings.Redacted(url), err)
		}
	}
}

func tryOpenLog(ctx context.Context, url, name string, t *telemetry.Telemetry, logger *slog.Logger, apply func(context.Context, jetstream.JetStream) error) (*eventlog.Log, *nats.Conn, error) {
	conn, err := eventlog.Connect(url, name, logger)
	if err != nil {
		return nil, nil, err
	}
	if apply != nil {
		js, err := jetstream.New(conn)
		if err != nil {
			return nil, conn, err
		}
		if err := apply(ctx, js); err != nil {
			return nil, conn, err
		}
	}
	log, err := eventlog.Open(ctx, conn, eventlog.OnPublish(t.Metrics.Published))
	return log, conn, err
}
