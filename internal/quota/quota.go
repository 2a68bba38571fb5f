// Package quota bounds what one tenant may use, so that a flood from one leaves the others their share.
// Each process counts momentary use, such as requests and events per second, for itself: with
// three replicas of the API a tenant has three times its quota. What is stored is counted in the log, see
// [Meter].
package quota

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/pkg/summary/llm"
)

// maxFileBytes bounds the file.
const maxFileBytes = 1 << 20

// burst is how many seconds of its quota a tenant may use at once, after it used less for as long.
const burst = 10

// ExceededError says that a tenant is over its quota.
type ExceededError struct {
	Tenant string
	What   string        // such as "500 events per second"
	Events bool          // it was about events to store: none was stored
	After  time.Duration // when to try again
}

func (e *ExceededError) Error() string {
	stored := ""
	if e.Events {
		stored = "nothing was stored, "
	}
	return fmt.Sprintf("the tenant %q is over its quota of %s: %stry again in %s", e.Tenant, e.What, stored, e.After.Round(time.Second))
}

// Quotas counts what tenants take. A nil Quotas limits nothing.
type Quotas struct {
	path string

	lock    sync.Mutex
	wrong   error // why the file, as it is now, can't be read
	limits  file
	tenants map[string]*tenant
	meter   *Meter                 // nil: nobody counts what is stored
	models  map[string]*llm.Budget // nil: this process calls no models
}

// tenant is what a tenant takes now.
type tenant struct {
	limits        Limits
	requests      int
	reads         int           // of the requests
	events, bytes *rate.Limiter // nil for no limit
	seen          time.Time
}

// Open reads a quotas file.
func Open(path string) (*Quotas, error) {
	q := &Quotas{path: path, tenants: map[string]*tenant{}}
	return q, q.Load()
}

// Count has a meter count what tenants store, while any quota bounds that. Call it before [Quotas.Run].
func (q *Quotas) Count(m *Meter) { q.meter = m }

// counts reports whether any quota bounds what is stored.
func (q *Quotas) counts() bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	return q.limits.stores()
}

// Load reads the file again. What tenants have used keeps counting; if the file is wrong, the old quotas stay in force.
func (q *Quotas) Load() error {
	read, err := readFile(q.path)
	q.lock.Lock()
	defer q.lock.Unlock()
	if q.wrong = err; err != nil {
		return err
	}
	q.limits = read
	for name, t := range q.tenants {
		t.set(q.of(name))
	}
	for name, budget := range q.models {
		limits := q.of(name)
		budget.Allow(limits.Calls, limits.Tokens, limits.Cost)
	}
	return nil
}

func readFile(path string) (file, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return file{}, err
	}
	if len(text) > maxFileBytes {
		return file{}, fmt.Errorf("%s has more than %d bytes", path, maxFileBytes)
	}
	read, err := parse(text)
	if err != nil {
		return file{}, fmt.Errorf("%s: %w", path, err)
	}
	return read, nil
}

func (q *Quotas) of(name string) Limits {
	if l, ok := q.limits.Tenants[name]; ok {
		return l
	}
	return q.limits.Default
}

// set changes the limits.
func (t *tenant) set(l Limits) {
	t.limits = l
	t.events, t.bytes = limiter(t.events, l.Events), limiter(t.bytes, l.Bytes)
}

func limiter(old *rate.Limiter, perSecond float64) *rate.Limiter {
	if perSecond == 0 {
		return nil
	}
	size := int(min(math.Ceil(perSecond*burst), math.MaxInt32))
	if old == nil {
		return rate.NewLimiter(rate.Limit(perSecond), size)
	}
	old.SetLimit(rate.Limit(perSecond))
	old.SetBurst(size)
	return old
}

// maxTenants is how many tenants are remembered that use nothing at the moment.
const maxTenants = 10_000

// get returns the state of a tenant. The caller holds the lock.
func (q *Quotas) get(name string) *tenant {
	t, ok := q.tenants[name]
	if !ok {
		if len(q.tenants) >= maxTenants {
			q.forget()
		}
		t = &tenant{}
		t.set(q.of(name))
		q.tenants[name] = t
	}
	t.seen = time.Now()
	return t
}

// forget drops tenants whose quota is full again.
func (q *Quotas) forget() {
	for name, t := range q.tenants {
		if t.requests == 0 && time.Since(t.seen) > burst*time.Second {
			delete(q.tenants, name)
		}
	}
}

// Enter takes a place for a request of a tenant, which leave gives back. It fails with an
// [*ExceededError] if all places are taken, or all that reads may have.
func (q *Quotas) Enter(name string, read bool) (leave func(), err error) {
	if q == nil {
		return func() {}, nil
	}
	q.lock.Lock()
	defer q.lock.Unlock()
	t := q.get(name)
	reads := 0
	if read {
		reads = 1
	}
	switch {
	case t.limits.Requests > 0 && t.requests >= t.limits.Requests:
		return nil, &ExceededError{Tenant: name, What: fmt.Sprintf("%d requests at the same time", t.limits.Requests), After: time.Second}
	case read && t.limits.Reads > 0 && t.reads >= t.limits.Reads:
		return nil, &ExceededError{Tenant: name, What: fmt.Sprintf("%d reads at the same time", t.limits.Reads), After: time.Second}
	}
	t.requests, t.reads = t.requests+1, t.reads+reads
	return func() {
		q.lock.Lock()
		defer q.lock.Unlock()
		t.requests, t.reads = t.requests-1, t.reads-reads
	}, nil
}

// Take counts events that a tenant is about to publish. It fails with an [*ExceededError], and counts
// none, if they are over the quota. A batch larger than the quota of ten seconds passes when the tenant
// took nothing for so long.
func (q *Quotas) Take(name string, count, size int) error {
	if q == nil {
		return nil
	}
	q.lock.Lock()
	defer q.lock.Unlock()
	t, now := q.get(name), time.Now()
	taken, wait := reserve(t.events, now, count)
	if wait > 0 {
		return &ExceededError{Tenant: name, What: fmt.Sprintf("%v events per second", t.limits.Events), Events: true, After: wait}
	}
	if _, wait := reserve(t.bytes, now, size); wait > 0 {
		if taken != nil {
			taken.CancelAt(now)
		}
		return &ExceededError{Tenant: name, What: fmt.Sprintf("%.0f bytes per second", t.limits.Bytes), Events: true, After: wait}
	}
	return nil
}

// reserve takes n from a limiter at once, or says how long to wait.
func reserve(l *rate.Limiter, now time.Time, n int) (*rate.Reservation, time.Duration) {
	if l == nil {
		return nil, 0
	}
	r := l.ReserveN(now, min(n, l.Burst()))
	if wait := r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
		return nil, wait
	}
	return r, 0
}

// Reader returns a reader that reads lines of events for a tenant no faster than its quota allows.
func (q *Quotas) Reader(ctx context.Context, name string, r io.Reader) io.Reader {
	if q == nil {
		return r
	}
	return &paced{Reader: r, ctx: ctx, take: func(count, size int) error { return q.Take(name, count, size) }}
}

type paced struct {
	io.Reader
	ctx  context.Context
	take func(count, size int) error
}

// Read reads, and then waits until the quota allows what was read.
func (p *paced) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	lines := bytes.Count(b[:n], []byte{'\n'})
	for n > 0 {
		var over *ExceededError
		if !errors.As(p.take(lines, n), &over) {
			break
		}
		select {
		case <-time.After(min(over.After, time.Second)):
		case <-p.ctx.Done():
			return n, p.ctx.Err()
		}
	}
	return n, err
}

// Run reads the file again when it changes, and counts what tenants store, until ctx ends.
func (q *Quotas) Run(ctx context.Context, logger *slog.Logger) {
	var counting sync.WaitGroup
	defer counting.Wait()
	if q.meter != nil {
		counting.Go(func() { q.meter.run(ctx, q.counts) })
	}
	access.Reread(ctx, q.path, time.Second, q.Load, func(err error) {
		logger.Error("the quotas file can't be read; the quotas read before stay in force", "error", inOneLine(err))
	}, nil)
}

func inOneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
