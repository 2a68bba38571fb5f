// Package instance runs all of mneme in one process: the log on an embedded NATS server, every worker
// and the API. It is what `mneme up` starts.
package instance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/nats-io/nats.go"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/internal/audit"
	"mneme.dev/mneme/internal/capture"
	"mneme.dev/mneme/internal/erasure"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/otlp"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/rebuild"
	"mneme.dev/mneme/internal/redact"
	"mneme.dev/mneme/internal/service"
	"mneme.dev/mneme/internal/service/scratch"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/projection"
)

// ErrDataInUse means that another process uses the same data directory.
var ErrDataInUse = errors.New("the data directory is in use by another process")

// Config configures a process that runs everything.
type Config struct {
	Data       string             // directory; created if missing
	Models     settings.Models    // location of the read models; the zero value is SQLite
	Summaries  settings.Summaries // when summaries are written, and by whom
	Searching  settings.Searching // how contexts search the past
	Insights   settings.Insights  // what insights are computed with
	Erasing    settings.Erasing   // what is erased by age
	Auditing   settings.Auditing  // how long the audit log keeps entries
	Capture    []string           // agents whose transcripts are read
	OTLP       []string           // addresses at which exporters of OpenTelemetry are answered
	Redact     *redact.Rules      // what is redacted in what agents recorded; nil for nothing
	Settings   []settings.Setting // what the API shows as settings in effect
	Doctor     service.Doctor     // what checks the process for the API; nil for nothing
	Listen     string             // address of the HTTP API; a port of 0 takes a free one
	Hosts      settings.Hosts     // names under which the API answers, in addition to loopback names
	Access     settings.Access    // who may use the API; the zero value is everyone
	NATSListen string             // address at which agents publish over NATS
	MaxBytes   int64              // size of the log; 0 derives it from the disk
	// DuplicateWindow is how long the server drops duplicates; 0 means 30 s.
	DuplicateWindow time.Duration
	Retention       worker.Retention // of read models that a rebuild superseded
	Logger          *slog.Logger
}

// Instance is mneme in one process: the log, every projector and the API.
type Instance struct {
	Log *eventlog.Log

	lock        *flock.Flock
	server      *embedded.Server
	conn        *nats.Conn
	consumers   []worker.Worker // in the order in which they start
	paid        string          // the projection whose rebuild may cost money, "" for none
	rebuilding  func()          // ends requests for rebuilds
	eraser      *erasure.Eraser
	audit       *audit.Trail
	captured    *capture.Receiver
	receiver    *otlp.Receiver  // nil: nobody listens for exporters
	otlp        []*program.HTTP // where they are answered
	stores      worker.Stores
	http        *program.HTTP
	closeQuotas func()
	closeGate   func()
	telemetry   *telemetry.Telemetry
	logger      *slog.Logger
}

// Start starts everything in this process and returns once it answers.
//
// It returns [ErrDataInUse], an error that names the port in use or the address
// that is not loopback, and the named errors of deploy/nats and of the stores.
func Start(ctx context.Context, c Config) (_ *Instance, err error) {
	if err := c.checkAddresses(); err != nil {
		return nil, &program.UsageError{Err: err}
	}
	i := &Instance{}
	defer func() {
		if err != nil {
			_ = i.Close()
		}
	}()
	if i.telemetry, c.Logger, err = program.Observe(ctx, "mneme", c.Logger); err != nil {
		return nil, err
	}
	i.logger = c.Logger
	if err := i.lockData(c.Data); err != nil {
		return nil, err
	}
	if err := scratch.Clean(c.Data); err != nil {
		return nil, err
	}
	if i.http, err = program.Listen("--listen", c.Listen, program.ServingOf(c.Access, c.Hosts, false), c.Logger); err != nil {
		return nil, err
	}
	if err := i.listenOTLP(&c); err != nil {
		return nil, err
	}
	if err := i.openLog(ctx, &c); err != nil {
		return nil, err
	}
	self, err := worker.NewLeases(i.Log, "mneme up")
	if err != nil {
		return nil, err
	}
	i.stores = worker.NewStores(c.Data, c.Models)
	quotas, closeQuotas, err := program.OpenQuotas(ctx, c.Access.Quotas, c.Data, i.Log, c.Logger)
	if err != nil {
		return nil, err
	}
	i.closeQuotas = closeQuotas
	prices, err := service.Prices(c.Insights.Prices)
	if err != nil {
		return nil, &program.UsageError{Err: err}
	}
	models := service.OwnModels(c.Data)
	writer, err := i.openConsumers(ctx, &c, models, worker.Parts{
		Quotas: quotas, Prices: prices, Log: i.Log, Feed: projection.NewFeed(i.Log), Stores: i.stores, Telemetry: i.telemetry, Logger: c.Logger, Retention: c.Retention, Mended: true,
	})
	if err != nil {
		return nil, err
	}
	search, err := service.NewCache(c.Searching, i.telemetry)
	if err != nil {
		return nil, err
	}
	condense, err := service.Condensing(c.Summaries.Condensing)
	if err != nil {
		return nil, &program.UsageError{Err: err}
	}
	control, err := rebuild.NewControl(i.conn, i.stores.Backend())
	if err != nil {
		return nil, err
	}
	gate, closeGate, err := program.OpenGate(ctx, c.Access, i.conn, c.Logger)
	if err != nil {
		return nil, err
	}
	i.closeGate = closeGate
	if i.audit, err = service.OpenAudit(ctx, i.conn, c.Auditing, i.telemetry, c.Logger); err != nil {
		return nil, &program.UsageError{Err: err}
	}
	eraser, err := service.NewEraser(i.Log, self, i.stores, models, i.audit, c.Erasing, c.Logger)
	if err != nil {
		return nil, &program.UsageError{Err: err}
	}
	i.captured = i.capture(&c, models)
	i.receiver = i.exported(ctx, &c, models, quotas)
	for _, consumer := range i.consumers {
		consumer.Start()
	}
	i.eraser = eraser
	i.eraser.EmbeddedServer = true
	i.eraser.Start()
	rebuilds := service.NewRebuilds(control, i.stores, models, i.Log, c.Searching)
	config := httpapi.Config{
		Log: i.Log, LogHealth: i.server.WriteError, Logger: c.Logger, Telemetry: i.telemetry, Settings: c.Settings,
		Gate: gate, Quotas: quotas, Audit: i.audit,
		Models: models, Store: i.stores.Backend(), NotReady: worker.ErrNotThere, Cache: search, ProjectMemoryOff: c.Searching.ProjectMemory == "off",
		Condense: condense, Model: writer.Model(), Prices: prices,
		Rebuilds: rebuilds, Erasures: eraser,
		Doorbell: doorbell{i.captured, c.Capture}, Captured: i.captured.Status, Exported: i.exportedStatus(),
		States: i.Status, Self: func() projection.Member { return self.Member(i.Status()) },
	}
	if c.Doctor != nil {
		config.Doctor = c.Doctor(i.Log, c.Data)
	}
	i.http.Start(httpapi.New(config))
	i.startOTLP(gate, quotas)
	i.rebuilding = inBackground(func(ctx context.Context) { i.rebuildOtherBuilds(ctx, rebuilds) })
	return i, nil
}

// checkAddresses refuses addresses that others can reach without a token.
func (c *Config) checkAddresses() error {
	if err := errors.Join(c.Access.Listen("--listen", c.Listen, false), settings.Loopback("--nats-listen", c.NATSListen)); err != nil {
		return err
	}
	for _, address := range c.OTLP {
		if err := c.Access.Listen("--otlp-listen", address, false); err != nil {
			return err
		}
	}
	return nil
}

// answerWithin is how long the log's server, which can't be unreachable, may take to answer. A publisher that is told
// earlier that its event may not be stored publishes again, which makes a slow disk slower.
const answerWithin = 15 * time.Second

// openLog starts the NATS server and opens the log on it.
func (i *Instance) openLog(ctx context.Context, c *Config) (err error) {
	if i.server, err = embedded.Start(ctx, embedded.Config{
		Dir: filepath.Join(c.Data, "nats"), Listen: c.NATSListen, Logger: c.Logger.With("part", "nats"), MaxBytes: c.MaxBytes,
	}); errors.Is(err, natsdeploy.ErrPortInUse) {
		return fmt.Errorf("--nats-listen=%s: the port is in use by another program, perhaps a nats-server; stop it, or choose another port (:0 picks a free one)", c.NATSListen)
	} else if err != nil {
		return err
	}
	if i.conn, err = eventlog.Connect("", "up", c.Logger, i.server.InProcess()); err != nil {
		return fmt.Errorf("connect to the embedded server: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // without a deadline each request has five seconds, too few on a busy disk
	defer cancel()
	defer func() {
		if errors.Is(err, natsdeploy.ErrIncompatible) { // the server ends, to which the commands that this names must connect
			err = fmt.Errorf("%w; these commands reach this log while nats-server -js -a 127.0.0.1 -sd %s runs", err, filepath.Join(c.Data, "nats"))
		}
	}()
	if err := eventlog.EndSplit(ctx, i.conn); err != nil { // no other process can do it: the server ends with this one
		return err
	}
	stream, err := i.server.Apply(ctx, natsdeploy.Settings{MaxBytes: c.MaxBytes, DuplicateWindow: c.DuplicateWindow})
	if err != nil {
		return err
	}
	program.WarnOfSize(c.Logger, c.MaxBytes, stream.MaxBytes)
	if i.Log, err = eventlog.Open(ctx, i.conn, eventlog.OnPublish(i.telemetry.Metrics.Published), eventlog.AnswerWithin(answerWithin)); err != nil {
		return err
	}
	i.telemetry.Metrics.WatchLog(i.Log)
	return nil
}

// openConsumers opens every read model for writing, and adds it to models. The summarizer it returns reads
// the graph from them.
func (i *Instance) openConsumers(ctx context.Context, c *Config, models *service.Models, parts worker.Parts) (*service.Summarizer, error) {
	if err := consume(ctx, i, models, parts, readmodel.Graph()); err != nil {
		return nil, err
	}
	if err := consume(ctx, i, models, parts, readmodel.Files()); err != nil {
		return nil, err
	}
	if err := consume(ctx, i, models, parts, readmodel.Projects()); err != nil {
		return nil, err
	}
	if err := consume(ctx, i, models, parts, readmodel.Insight()); err != nil {
		return nil, err
	}
	if err := consume(ctx, i, models, parts, readmodel.Code()); err != nil {
		return nil, err
	}
	writer, err := service.NewSummarizer(ctx, parts, c.Summaries, models)
	if err != nil {
		return nil, err
	}
	i.consumers = append(i.consumers, writer)
	service.Own(models, writer.Consumer)
	if endpoint, ok := c.Searching.Endpoint(); ok {
		parts.Mended = false // by the operator alone
		embedder, err := service.NewEmbedder(ctx, parts, endpoint)
		if err != nil {
			return nil, err
		}
		i.consumers, i.paid = append(i.consumers, embedder), embedder.Name()
		service.Own(models, embedder.Consumer)
	}
	return writer, nil
}

// consume opens one read model for writing, and adds it to models.
func consume[U projection.Unit, S projection.Store[U]](ctx context.Context, i *Instance, models *service.Models, parts worker.Parts, declared *readmodel.Typed[U, S]) error {
	consumer, err := worker.NewConsumer(ctx, parts, declared)
	if err != nil {
		return err
	}
	i.consumers = append(i.consumers, consumer)
	service.Own(models, consumer)
	return nil
}

// Serve waits until ctx ends. It returns [eventlog.ErrPartitions] if the log is given more partitions
// while the instance runs: then close the instance and start another one on the same data.
func (i *Instance) Serve(ctx context.Context) error { return program.Serve(ctx, i.Log, i.logger) }

// HTTPURL returns the base URL of the API. If it answers on all addresses, that is the loopback one: clients can't count on
// [::], under which Go then knows the listener.
func (i *Instance) HTTPURL() string { return reachable.Replace(i.http.URL()) }

// Everywhere reports whether the API and the receiver of OpenTelemetry answer on all addresses of this machine.
func (i *Instance) Everywhere() (api, otlp bool) {
	all := func(l *program.HTTP) bool { return reachable.Replace(l.URL()) != l.URL() }
	return all(i.http), slices.ContainsFunc(i.otlp, all)
}

var reachable = strings.NewReplacer("//[::]:", "//127.0.0.1:", "//0.0.0.0:", "//127.0.0.1:")

// NATSURL returns the URL at which agents publish.
func (i *Instance) NATSURL() string { return i.server.ClientURL() }

// Status reports on every projector.
func (i *Instance) Status() []projection.Status {
	var list []projection.Status
	for _, c := range i.consumers {
		list = append(list, c.Status()...)
	}
	return list
}

// Close stops everything, readers first and the log last. It is idempotent.
func (i *Instance) Close() error {
	var errs []error
	if i.rebuilding != nil {
		i.rebuilding()
	}
	if i.http != nil {
		i.http.Stop()
	}
	for _, listener := range i.otlp {
		listener.Stop()
	}
	if i.receiver != nil {
		i.receiver.Close()
	}
	if i.captured != nil {
		i.captured.Close()
	}
	if i.eraser != nil {
		i.eraser.Stop()
	}
	if i.audit != nil {
		i.audit.Close()
	}
	for _, c := range slices.Backward(i.consumers) { // the summarizer reads the graph
		errs = append(errs, c.Stop())
	}
	i.consumers = nil
	if i.stores.Generations() != nil {
		errs = append(errs, i.stores.Close())
	}
	if i.closeQuotas != nil {
		i.closeQuotas()
	}
	if i.closeGate != nil {
		i.closeGate()
	}
	if i.conn != nil {
		i.conn.Close()
	}
	if i.server != nil {
		i.server.Stop()
	}
	if i.telemetry != nil {
		i.telemetry.Stop()
	}
	if i.lock != nil {
		errs = append(errs, i.lock.Unlock())
		i.lock = nil
	}
	return errors.Join(errs...)
}

// lockData locks the data directory for this process. The lock ends with the process,
// however it ends; the lock file names the holder.
func (i *Instance) lockData(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	path := filepath.Join(dir, "lock")
	lock := flock.New(path)
	locked, err := lock.TryLock()
	if err != nil {
		return fmt.Errorf("lock the data directory: %w", err)
	}
	if !locked {
		holder := "another process"
		if raw, err := os.ReadFile(path); err == nil && len(raw) > 0 {
			holder = "process " + strings.TrimSpace(string(raw))
		}
		return fmt.Errorf("%w: %s uses %s; stop it, or choose another directory with --data", ErrDataInUse, holder, dir)
	}
	i.lock = lock
	return os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644)
}
