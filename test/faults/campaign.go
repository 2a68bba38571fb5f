package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"mneme.dev/mneme/pkg/eventlog"
)

// Config configures a campaign.
type Config struct {
	Plan
	Events   int
	Dir      string // for all stored data; must not exist
	Sessions string // folder of recorded sessions
	Jars     string // folder of Neo4j's jars
	Recovery time.Duration
	Report   func(*Report) error // receives the progress every few seconds, and at the end
	Say      func(format string, args ...any)
}

// connections of the publishers.
const connections = 4

// reportEvery is how often the report is written.
const reportEvery = 10 * time.Second

// campaign is one run.
type campaign struct {
	Config
	dir      string
	system   *system
	ledger   *ledger
	book     *book
	pace     *pace
	tally    *tally // of publishers
	reads    *tally
	readers  map[string]*reader
	watchers map[string]*watcher
	rebuilds rebuilds

	began   time.Time
	first   atomic.Pointer[time.Time] // when the schedule began
	hits    atomic.Int64              // faults begun
	active  atomic.Int64              // faults without recovery so far
	running atomic.Bool               // system is set
	ending  atomic.Bool               // programs now end on purpose

	mu         sync.Mutex
	outcomes   []Outcome
	violations []string
	violating  int // the total, listed or not
	checked    Checked
	summarized time.Duration // how long summarizers took for what was due at the end
}

// maxViolations limits the list of violations; further ones are only counted.
const maxViolations = 200

func (c *campaign) violated(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.mu.Lock()
	c.violating++
	listed := len(c.violations) < maxViolations
	if listed {
		c.violations = append(c.violations, text)
	}
	c.mu.Unlock()
	if listed {
		c.Say("VIOLATION: %s", text)
	}
}

// clock returns the time since the start of the schedule, 0 before the first fault.
func (c *campaign) clock() time.Duration {
	if first := c.first.Load(); first != nil {
		return time.Since(*first)
	}
	return 0
}

// aheadOfFaults is how many faults the events may be ahead of the schedule. Faults run late when
// they wait for something that an earlier fault has hit.
const aheadOfFaults = 3

// share returns how much of the campaign is over, below 0 before the first fault.
func (c *campaign) share(duration time.Duration) float64 {
	if c.first.Load() == nil {
		return -1
	}
	return min(float64(c.clock())/float64(duration), float64(c.hits.Load()+aheadOfFaults)/float64(c.Plan.Faults))
}

// behind returns how far the slowest store is behind, if a store reports it.
func (c *campaign) behind() (events uint64) {
	for _, w := range c.watchers {
		if v := w.view(); time.Since(v.asked) < freshView {
			events = max(events, v.lag)
		}
	}
	return events
}

// Run runs a campaign. The report holds the findings; the error says why the campaign did not
// finish.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	c := &campaign{Config: cfg, dir: cfg.Dir, book: &book{}, tally: newTally(), reads: newTally(), readers: map[string]*reader{}, watchers: map[string]*watcher{}}
	err := c.run(ctx)
	report := c.report()
	report.Complete = err == nil
	if err != nil {
		report.Error = err.Error()
	}
	return report, errors.Join(err, cfg.Report(report))
}

func (c *campaign) run(ctx context.Context) (err error) {
	list, err := sessions(ctx, c.Sessions)
	if err != nil {
		return err
	}
	load, err := newLoad(c.Seed, list)
	if err != nil {
		return err
	}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return err
	}
	c.Say("building the programs and starting them in %s", c.dir)
	if c.system, err = start(ctx, c.dir, c.Jars, memoryFor(c.Events), c.crashed); err != nil {
		return err
	}
	c.running.Store(true)
	defer func() {
		c.ending.Store(true)
		c.system.kill()
	}()
	if c.ledger, err = newLedger(filepath.Join(c.dir, ledgerName)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.ledger.close()) }()
	for name, a := range c.system.apis {
		c.readers[name] = &reader{api: a, book: c.book, tally: c.reads, marks: map[string]int{}, report: func(text string) { c.violated("%s", text) }}
		c.watchers[name] = &watcher{api: a, halted: func(reason string) { c.violated("%s: halted: %s", name, reason) }}
	}
	if err := c.hitAndPublish(ctx, load); err != nil {
		return err
	}
	c.Say("all events are published and all faults are over: healing, and waiting until everything is applied")
	_, last := c.ledger.acknowledged()
	if err := c.settle(ctx, last); err != nil {
		return err
	}
	c.Say("waiting for the running rebuilds")
	if err := c.awaitRebuilds(ctx); err != nil {
		return err
	}
	if err := c.awaitSummaries(ctx); err != nil {
		return err
	}
	c.ledger.sync()
	checking := &checking{dir: c.dir, system: c.system, found: c.violated, say: c.Say}
	c.checked, err = checking.run(ctx)
	if err != nil {
		return err
	}
	c.Say("ending everything")
	c.ending.Store(true)
	if err := c.system.stop(); err != nil {
		c.violated("%v", err)
	}
	return nil
}

const ledgerName = "acknowledged.txt"

// crashed records that a program exited by itself, and starts it again, as a supervisor would.
func (c *campaign) crashed(name string, err error, output string) {
	if c.ending.Load() {
		return
	}
	c.violated("%s exited by itself (%v); it printed:\n%s", name, err, output)
	if !c.running.Load() { // the start of the system fails, and says why
		return
	}
	time.Sleep(time.Second)
	if err := c.system.machines[name].start(); err != nil {
		c.violated("%v", err)
	}
}

// hitAndPublish publishes all events while the faults of the schedule happen.
func (c *campaign) hitAndPublish(ctx context.Context, load *load) error {
	schedule := Schedule(c.Plan)
	logs, done, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	watching, stop := context.WithCancel(ctx)
	var background sync.WaitGroup
	defer background.Wait()
	defer stop()
	var started []func()
	for name, a := range c.system.apis {
		started = append(started, a.hit()) // it need not answer yet
		background.Go(func() { c.watchers[name].run(watching) })
	}
	background.Go(func() { c.keepReporting(watching) })

	duration := max(c.Duration, End(schedule))
	c.began = time.Now()
	c.pace = &pace{total: c.Events, behind: c.behind, share: func() float64 { return c.share(duration) }}
	p := &publisher{
		load: load, ledger: c.ledger, book: c.book, tally: c.tally, logs: logs,
		pace: c.pace,
	}
	for _, a := range c.system.apis {
		p.apis = append(p.apis, a)
	}
	publishing, abort := context.WithCancel(ctx)
	published := make(chan struct{})
	var failed error
	go func() {
		defer close(published)
		failed = p.run(publishing)
	}()
	defer func() {
		abort()
		<-published
	}()

	c.Say("%d faults and %d events in about %s", len(schedule), c.Events, duration.Round(time.Second))
	if err := c.warmUp(ctx); err != nil {
		return err
	}
	for _, done := range started {
		done()
	}
	for _, r := range c.readers {
		background.Go(func() { r.run(watching) })
	}
	c.first.Store(new(time.Now()))
	if err := c.hitAll(ctx, schedule); err != nil {
		return err
	}
	select {
	case <-published:
		return failed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// connect makes the publishers' connections to the log.
func (c *campaign) connect(ctx context.Context) (logs []*eventlog.Log, done func(), err error) {
	var conns []*nats.Conn
	done = func() {
		for _, conn := range conns {
			conn.Close()
		}
	}
	for range connections {
		conn, err := eventlog.Connect(as("operator", c.system.links[link(targetNATS, publishers)].Address()), "publisher", slog.New(slog.DiscardHandler))
		if err != nil {
			return nil, done, err
		}
		conns = append(conns, conn)
		log, err := eventlog.Open(ctx, conn)
		if err != nil {
			return nil, done, err
		}
		logs = append(logs, log)
	}
	return logs, done, nil
}

// warmUp waits until both stores have applied something in every partition, and copies the read
// models on SQLite.
func (c *campaign) warmUp(ctx context.Context) error {
	ready := func() bool {
		for _, w := range c.watchers {
			if w.view().parts != parts {
				return false
			}
		}
		return true
	}
	for began := time.Now(); !ready(); pause(ctx, 50*time.Millisecond) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if time.Since(began) > c.Recovery {
			return fmt.Errorf("after %s not every partition has begun; the logs of the programs are in %s", c.Recovery, filepath.Join(c.dir, "output"))
		}
	}
	if err := c.copyModels(); err != nil {
		return err
	}
	_, last := c.ledger.acknowledged()
	c.recover(ctx, time.Now(), last)
	return nil
}

// hitAll runs the schedule and returns after the recovery from the last fault.
func (c *campaign) hitAll(ctx context.Context, schedule []Fault) error {
	busy := map[string]chan struct{}{}
	for _, f := range schedule {
		for _, domain := range f.domains() {
			if busy[domain] == nil {
				busy[domain] = make(chan struct{}, 1)
			}
		}
	}
	var all sync.WaitGroup
	defer all.Wait()
	for _, f := range schedule {
		for c.clock() < f.At && ctx.Err() == nil {
			pause(ctx, min(f.At-c.clock(), 100*time.Millisecond))
		}
		for _, domain := range f.domains() {
			select {
			case busy[domain] <- struct{}{}:
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c.hits.Add(1)
		all.Go(func() {
			c.hit(ctx, f, func() {
				for _, domain := range f.domains() {
					<-busy[domain]
				}
			})
		})
	}
	all.Wait()
	return nil
}

// hit runs one fault from its beginning to the recovery. free releases the fault's domains for the
// next one.
func (c *campaign) hit(ctx context.Context, f Fault, free func()) {
	o := Outcome{Fault: f, Began: c.clock(), Amid: int(c.active.Add(1)) - 1}
	defer c.active.Add(-1)
	publishing, reading, stall := c.tally.snapshot(), c.reads.snapshot(), c.tally.stall()
	var over []func()
	for _, domain := range f.domains() {
		if a := c.system.apis[domain]; a != nil {
			over = append(over, a.hit())
		}
	}
	c.Say("%s", f)
	err := c.inflict(ctx, f)
	healed := time.Now()
	if err != nil && ctx.Err() == nil {
		c.violated("fault %s: %v", f, err)
	}
	_, last := c.ledger.acknowledged()
	pause(ctx, f.settle())
	free()
	ok := c.recover(ctx, healed, last)
	for _, end := range over {
		end()
	}
	if !ok && ctx.Err() == nil {
		c.violated("fault %s: no recovery after %s", f, c.Recovery)
	}
	o.Recovered, o.Recovery, o.Stall = ok, time.Since(healed), stall()
	o.Publish, o.Read = c.tally.since(publishing), c.reads.since(reading)
	c.note(o)
}

// recover waits until an event is acknowledged again, or none is due, and both stores have applied
// everything acknowledged by then.
func (c *campaign) recover(ctx context.Context, healed time.Time, last uint64) bool {
	recovered := func() bool {
		for _, w := range c.watchers {
			if !w.applied(healed, last) {
				return false
			}
		}
		return c.pace.idle() || c.tally.lastAck().After(healed)
	}
	for !recovered() {
		if ctx.Err() != nil || time.Since(healed) > c.Recovery {
			return false
		}
		pause(ctx, 20*time.Millisecond)
	}
	return true
}

// settleWithin is how long both stores may take to apply the rest.
const settleWithin = 5 * time.Minute

// settle heals everything and waits until both stores have applied everything up to a sequence.
// Summaries may still be written, so a moment without lag may never come.
func (c *campaign) settle(ctx context.Context, last uint64) error {
	if err := c.system.heal(ctx); err != nil {
		return err
	}
	return c.await(ctx, func(w *watcher, since time.Time) bool { return w.applied(since, last) })
}

// await waits until the API of each store reports the wanted state in an answer to a request made
// after this call.
func (c *campaign) await(ctx context.Context, settled func(w *watcher, since time.Time) bool) error {
	began := time.Now()
	for _, w := range c.watchers {
		for !settled(w, began) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if time.Since(began) > settleWithin {
				c.violated("%s: the lag is still %d, %s after everything was healed", w.api.name, w.view().lag, time.Since(began).Round(time.Second))
				return nil
			}
			w.look(ctx)
			pause(ctx, 50*time.Millisecond)
		}
	}
	return nil
}

// Check starts the programs on the directory of an earlier campaign, lets them catch up, checks the
// result, and completes the campaign's report if the campaign was interrupted.
func Check(ctx context.Context, dir, jars string, report *Report, say func(string, ...any)) (violations int, err error) {
	if _, err := os.Stat(filepath.Join(dir, ledgerName)); err != nil {
		return 0, fmt.Errorf("%s is not the directory of a campaign: %w", dir, err)
	}
	c := &campaign{Config: Config{Say: say}, dir: dir, tally: newTally(), watchers: map[string]*watcher{}}
	if c.system, err = start(ctx, dir, jars, much, c.crashed); err != nil {
		return 0, err
	}
	defer func() {
		c.ending.Store(true)
		c.system.kill()
	}()
	for name, a := range c.system.apis {
		c.watchers[name] = &watcher{api: a, halted: func(reason string) { c.violated("%s: halted: %s", name, reason) }}
	}
	if err := c.settle(ctx, 0); err != nil { // both answer
		return 0, err
	}
	if err := c.settle(ctx, c.head(ctx)); err != nil {
		return 0, err
	}
	if err := c.awaitSummaries(ctx); err != nil {
		return 0, err
	}
	checking := &checking{dir: dir, system: c.system, found: c.violated, say: say}
	if c.checked, err = checking.run(ctx); err != nil {
		return c.violating, err
	}
	report.checkedLater(c)
	say("%d acknowledged events checked, %d violations", c.checked.Acknowledged, c.violating)
	return c.violating, nil
}
