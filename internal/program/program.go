package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
	"mneme.dev/mneme/pkg/eventlog"
)

// RetryEvery is how often a program tries to reach a server that is not up yet.
const RetryEvery = time.Second

// SayEvery is how often it logs that it is still waiting.
const SayEvery = time.Minute

// ErrNeverAvailable means that a program was ended while it still waited for a server. That is no failure of the program.
var ErrNeverAvailable = errors.New("never became available")

// Main is the body of a main function and returns the exit code: 0 done, 1 failed, 2
// wrong usage. --help prints the settings, --healthy asks the running program whether it is
// ready, and an interrupt or SIGTERM ends run.
func Main(name string, run func(context.Context) error) int {
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
	ctx, stop := Interruptible(func() { fmt.Fprintf(os.Stderr, "%s: %s\n", name, Stopping) })
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		var usage *UsageError
		switch {
		case errors.As(err, &usage):
			return 2
		case errors.Is(err, ErrNeverAvailable):
			return 0
		}
		return 1
	}
	return 0
}

// UsageError is a mistake in the settings.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// WarnOfSize logs that the requested size differs from the log's; 0 means unknown.
func WarnOfSize(logger *slog.Logger, asked, have int64) {
	if asked != 0 && have != 0 && asked != have {
		logger.Warn("MNEME_LOG_SIZE applies only when the log is created; the existing log keeps its size. To change it, run `nats stream edit "+natsdeploy.Stream+" --max-bytes`",
			"asked", asked, "size", have)
	}
}

// WarnOfPartitions logs that the requested number of partitions differs from the log's. 1 is not a
// request: it is the default.
func WarnOfPartitions(logger *slog.Logger, asked, have int) {
	if asked > 1 && have != 0 && asked != have {
		logger.Warn("MNEME_PARTITIONS applies only when the log is created; the existing log keeps its partitions. To give it more, run `mneme partitions`", "asked", asked, "partitions", have)
	}
}

// WarnOfReplicas logs that the requested number of copies differs from the log's; 0 means unknown.
func WarnOfReplicas(logger *slog.Logger, asked, have int) {
	if asked != 0 && have != 0 && asked != have {
		logger.Warn("MNEME_REPLICAS applies only when the log is created; the existing log keeps its copies. To change their number, run `nats stream edit "+natsdeploy.Stream+" --replicas`", "asked", asked, "replicas", have)
	}
}

// Again runs a program, and runs it again whenever it ends because the log was given more
// partitions.
func Again(ctx context.Context, run func(context.Context) error) error {
	for {
		if err := run(ctx); ctx.Err() != nil || !errors.Is(err, eventlog.ErrPartitions) {
			return err
		}
	}
}

// Serve waits until the program is to stop. If it is to run again, it returns [eventlog.ErrPartitions].
func Serve(ctx context.Context, log *eventlog.Log, logger *slog.Logger) error {
	err := log.AwaitSplit(ctx)
	if err != nil {
		logger.Warn("the log has been given more partitions: the program starts again with them", "before", log.Partitions())
	}
	return err
}

// Observe sets up the telemetry of a program and the matching logger.
func Observe(ctx context.Context, name string, logger *slog.Logger) (*telemetry.Telemetry, *slog.Logger, error) {
	s, err := settings.ReadTelemetry()
	if err != nil {
		return nil, nil, &UsageError{err}
	}
	logger = telemetry.Logger(logger)
	warnOfUnknown(logger)
	t, err := telemetry.Setup(ctx, name, s, logger)
	return t, logger, err
}

// warnOfUnknown logs which variables no program knows. A mistyped name would otherwise leave a default in force unseen,
// such as no quotas.
func warnOfUnknown(logger *slog.Logger) {
	for _, p := range settings.Environment() {
		if p.Unknown {
			logger.Warn("an environment variable is not a setting of mneme", "reason", p.Reason)
		}
	}
}

// LogConfig says which log a program opens, and how.
type LogConfig struct {
	URL       string // of NATS
	TLS       settings.NATSTLS
	Program   string
	Telemetry *telemetry.Telemetry
	Logger    *slog.Logger

	// Apply makes sure that the log exists. Without it, another program has to.
	Apply func(context.Context, jetstream.JetStream) error
}

// OpenLog connects to NATS and opens the log; the caller closes the log's connection. It waits for a server or log that
// does not exist yet, but fails at once on one that is wrong.
func OpenLog(ctx context.Context, c LogConfig) (*eventlog.Log, error) {
	var said time.Time
	reason := ""
	for {
		log, err := c.open(ctx)
		if err == nil {
			return log, nil
		}
		what, remedy := Refusal(err)
		if errors.Is(err, nats.ErrAuthorization) {
			return nil, fmt.Errorf("NATS at %s: %w: %s: %s", settings.Redacted(c.URL), err, what, remedy)
		}
		if errors.Is(err, natsdeploy.ErrIncompatible) {
			return nil, err
		}
		missing, remedy := "NATS", ": "+cmp.Or(remedy, "start its server, or correct MNEME_NATS_URL")
		switch {
		case what != "":
			err = fmt.Errorf("%w: %s", err, what)
		case errors.Is(err, natsdeploy.ErrNoStream):
			missing, remedy = "the log", ": start ingestor, which creates it"
		case errors.Is(err, natsdeploy.ErrNoSpace), errors.Is(err, natsdeploy.ErrRestoring), errors.Is(err, natsdeploy.ErrSplitting):
			missing, remedy = "the log", ""
		}
		if err.Error() != reason || time.Since(said) > SayEvery {
			said, reason = time.Now(), err.Error()
			c.Logger.Warn("waiting for "+missing+remedy, "url", settings.Redacted(c.URL), "error", err)
		}
		select {
		case <-time.After(RetryEvery):
		case <-ctx.Done():
			return nil, fmt.Errorf("%s at %s %w: %w", missing, settings.Redacted(c.URL), ErrNeverAvailable, err)
		}
	}
}

func (c *LogConfig) open(ctx context.Context) (log *eventlog.Log, err error) {
	conn, err := eventlog.Connect(c.URL, c.Program, c.Logger, NATSOptions(c.TLS)...)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			conn.Close()
		}
	}()
	if c.Apply != nil {
		js, err := jetstream.New(conn)
		if err != nil {
			return nil, err
		}
		if err := c.Apply(ctx, js); err != nil {
			return nil, err
		}
	}
	return eventlog.Open(ctx, conn, eventlog.OnPublish(c.Telemetry.Metrics.Published))
}
