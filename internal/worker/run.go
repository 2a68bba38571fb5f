package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/projection"
)

// RunIngestor is the program ingestor: log → read models "graph", "projects" and "code".
func RunIngestor(ctx context.Context) error {
	s, err := readSettings(settings.ForIngestor())
	if err != nil {
		return err
	}
	return Run(ctx, "ingestor", s, func(p Parts) (Worker, error) {
		ingestor, err := NewConsumer(ctx, p, readmodel.Graph())
		if err != nil {
			return nil, err
		}
		projects, err := NewConsumer(ctx, p, readmodel.Projects())
		if err != nil {
			return nil, errors.Join(err, ingestor.Stop())
		}
		code, err := NewConsumer(ctx, p, readmodel.Code())
		if err != nil {
			return nil, errors.Join(err, ingestor.Stop(), projects.Stop())
		}
		return Several{ingestor, projects, code}, nil
	})
}

// RunFileTracker is the program file-tracker: log → read models "files" and "insight".
func RunFileTracker(ctx context.Context) error {
	s, err := readSettings(settings.ForFileTracker())
	if err != nil {
		return err
	}
	return Run(ctx, "file-tracker", s, func(p Parts) (Worker, error) {
		tracker, err := NewConsumer(ctx, p, readmodel.Files())
		if err != nil {
			return nil, err
		}
		counter, err := NewConsumer(ctx, p, readmodel.Insight())
		if err != nil {
			return nil, errors.Join(err, tracker.Stop())
		}
		return Several{tracker, counter}, nil
	})
}

// readSettings reads the settings of a program that has only these.
func readSettings(s *settings.Worker) (*settings.Worker, error) {
	if err := settings.Read(s); err != nil {
		return nil, &program.UsageError{Err: err}
	}
	return s, nil
}

// Run runs a program that drives a projection, and again if the log is given more partitions.
func Run(ctx context.Context, name string, s *settings.Worker, open func(Parts) (Worker, error)) error {
	return program.Again(ctx, func(ctx context.Context) error { return run(ctx, name, s, open) })
}

func run(ctx context.Context, name string, s *settings.Worker, open func(Parts) (Worker, error)) (err error) {
	tell, logger, err := program.Observe(ctx, "mneme-"+name, settings.Logger(os.Stderr, s.LogLevel, s.LogFormat).With("program", name))
	if err != nil {
		return err
	}
	defer tell.Stop()
	health, err := program.Listen("MNEME_LISTEN", s.Listen, program.Serving{Hosts: s.Hosts, AnyAddress: s.Trust}, logger)
	if err != nil {
		return err
	}
	defer health.Stop()
	if s.Store == "sqlite" {
		if err := os.MkdirAll(filepath.Clean(s.Data), 0o700); err != nil {
			return fmt.Errorf("MNEME_DATA=%q: %w", s.Data, err)
		}
	}
	log, err := program.OpenLog(ctx, program.LogConfig{
		URL: s.NATSURL, TLS: s.NATSTLS, Program: name, Telemetry: tell, Logger: logger,
		Apply: func(ctx context.Context, js jetstream.JetStream) error { return makeLog(ctx, js, s, logger) },
	})
	if err != nil {
		return err
	}
	defer log.Conn().Close()
	tell.Metrics.WatchLog(log)
	parts := Parts{Log: log, Feed: projection.NewFeed(log), Stores: NewStores(s.Data, s.Models), Telemetry: tell, Logger: logger}
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
	logger.Info("running", "nats", log.Conn().ConnectedUrlRedacted(), "store", parts.Stores.String(), "health", health.URL()+"/readyz")
	err = program.Serve(ctx, log, logger)
	logger.Info("stopping")
	return err
}

// makeLog makes sure that the log exists.
func makeLog(ctx context.Context, js jetstream.JetStream, s *settings.Worker, logger *slog.Logger) error {
	_, before := natsdeploy.Inspect(ctx, js)
	info, err := natsdeploy.Apply(ctx, js, natsdeploy.Settings{Partitions: s.Partitions, Replicas: s.Replicas, MaxBytes: int64(s.LogSize)})
	if err == nil && s.LogSize == 0 && errors.Is(before, natsdeploy.ErrNoStream) {
		logger.Warn("the log was created with room for 64 GiB, because MNEME_LOG_SIZE names no size and this program does not see the disk of the NATS server. If that disk has less than 80 GiB, it is full before the log is, and then nothing is stored until NATS is restarted: make the log smaller with `nats stream edit "+natsdeploy.Stream+" --max-bytes`, to four fifths of the disk", "size", info.MaxBytes)
	}
	program.WarnOfSize(logger, int64(s.LogSize), info.MaxBytes)
	program.WarnOfPartitions(logger, s.Partitions, info.Partitions)
	program.WarnOfReplicas(logger, s.Replicas, info.Replicas)
	return err
}
