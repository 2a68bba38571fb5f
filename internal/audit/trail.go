package audit

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

const (
	// waiting is how many entries of reads may wait to be stored; further ones are counted as lost.
	waiting = 1024

	// repeatedWithin is how long repetitions of a read are counted before they become an entry.
	repeatedWithin = time.Minute

	// most is how many different reads are remembered at a time. Repetitions of other reads become separate entries.
	most = 4096

	// againEvery is the pause after an entry could not be stored.
	againEvery = time.Second

	// closeWithin bounds how long a closing trail takes to store the waiting entries.
	closeWithin = 5 * time.Second
)

// ActionLost is the action of an entry that counts entries which could not be kept.
const ActionLost = "entries-lost"

// Config configures a trail.
type Config struct {
	Age    time.Duration           // how long a new stream keeps entries; 0 for the default
	Count  func(written, lost int) // called with numbers of entries; nil for nothing
	Logger *slog.Logger
}

// Trail is the audit log of a process that serves the API: changes are stored before they take effect, and reads when
// there is time.
type Trail struct {
	*Writer
	Config

	reads  chan kept
	lost   atomic.Int64        // since the last entry that reports lost ones
	recent map[Entry]*repeated // by what was done, without time and request

	stop    func() // closes closing, once
	closing chan struct{}
	cancel  context.CancelFunc // ends writing
	ended   sync.WaitGroup
}

// kept is an entry that waits to be stored.
type kept struct {
	Entry
	alone bool // it is not counted together with others
}

// repeated is a read that was stored, and how often it was repeated since.
type repeated struct {
	since time.Time
	last  Entry
	count int
}

// Open returns the trail of a process; it stores entries until [Trail.Close]. If the server does not take entries now, that
// is not an error: changes are refused until it does.
func Open(ctx context.Context, conn *nats.Conn, c Config) (*Trail, error) {
	w, err := NewWriter(conn, c.Age)
	if err != nil {
		return nil, err
	}
	t := &Trail{Writer: w, Config: c, reads: make(chan kept, waiting), recent: map[Entry]*repeated{}, closing: make(chan struct{})}
	t.stop = sync.OnceFunc(func() { close(t.closing) })
	if t.Count == nil {
		t.Count = func(int, int) {}
	}
	t.apply(ctx)
	var writing context.Context
	writing, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
	t.ended.Go(func() { t.run(writing) })
	return t, nil
}

// apply makes the stream, so that an administrator learns of a problem at the start and not at the first change.
func (t *Trail) apply(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	_, age, err := natsdeploy.ApplyAudit(ctx, t.js, t.Age)
	switch {
	case err != nil:
		t.Logger.Error("the audit log can't be used, so changes are refused", "error", err)
	case t.Age != 0 && age != t.Age:
		t.Logger.Warn("the audit log was made with another MNEME_AUDIT_RETENTION; change it with nats stream edit "+natsdeploy.AuditStream+" --max-age", "keeps", age, "setting", t.Age)
	}
}

// Close stores the waiting entries. It takes at most a few seconds. It is idempotent.
func (t *Trail) Close() {
	t.stop()
	defer time.AfterFunc(closeWithin, t.cancel).Stop()
	t.ended.Wait()
}

// Change stores that a change begins, or returns [ErrAway]: then the change must not take effect. Call end once it has
// taken effect or failed.
func (t *Trail) Change(ctx context.Context, e Entry) (end func(status int), err error) {
	e.Outcome = Begun
	if err := t.Write(ctx, e); err != nil {
		return nil, err
	}
	t.Count(1, 0)
	return func(status int) {
		e.Time, e.Outcome, e.Status = time.Now().UTC(), OutcomeOf(status), status
		if t.Write(context.WithoutCancel(ctx), e) != nil {
			t.keep(kept{e, true})
			return
		}
		t.Count(1, 0)
	}, nil
}

// Read notes a read, or a refusal. It never waits: an entry for which there is no room is counted as lost.
func (t *Trail) Read(e Entry) { t.keep(kept{e, false}) }

func (t *Trail) keep(e kept) {
	select {
	case t.reads <- e:
	default:
		t.lose(1)
	}
}

func (t *Trail) lose(n int) {
	t.lost.Add(int64(n))
	t.Count(0, n)
}

// run stores entries until the trail closes, and then those that wait.
func (t *Trail) run(ctx context.Context) {
	defer t.cancel()
	tick := time.NewTicker(repeatedWithin / 4)
	defer tick.Stop()
	for {
		select {
		case e := <-t.reads:
			t.take(ctx, e)
		case <-tick.C:
			t.sweep(ctx, time.Now().Add(-repeatedWithin))
		case <-t.closing:
			for {
				select {
				case e := <-t.reads:
					t.take(ctx, e)
				default:
					t.sweep(ctx, time.Now())
					return
				}
			}
		}
	}
}

// take stores an entry, unless it repeats one that was stored a moment ago.
func (t *Trail) take(ctx context.Context, e kept) {
	if e.alone || !t.repeats(e.Entry) {
		t.insist(ctx, e.Entry)
	}
}

// repeats reports whether an entry repeats one that was stored, and counts it.
func (t *Trail) repeats(e Entry) bool {
	key := e
	key.Time, key.Request = time.Time{}, ""
	if r := t.recent[key]; r != nil {
		r.last = e
		r.count++
		return true
	}
	if len(t.recent) < most {
		t.recent[key] = &repeated{since: time.Now()}
	}
	return false
}

// sweep stores how often reads that began before a time were repeated, and forgets those that were not.
func (t *Trail) sweep(ctx context.Context, before time.Time) {
	for key, r := range t.recent {
		switch {
		case r.since.After(before):
		case r.count == 0:
			delete(t.recent, key)
		default:
			e := r.last
			e.Count = r.count
			r.since, r.count = time.Now(), 0
			t.insist(ctx, e)
		}
	}
}

// insist tries to store an entry until it is stored. When the trail closes, it tries once more.
func (t *Trail) insist(ctx context.Context, e Entry) {
	for said := false; ; said = true {
		err := t.Write(ctx, e)
		if err == nil {
			break
		}
		if !said {
			t.Logger.Warn("an entry of the audit log can't be stored; will retry", "error", err)
		}
		select {
		case <-time.After(againEvery):
			continue
		case <-t.closing:
		}
		t.lose(1)
		return
	}
	t.Count(1, 0)
	t.confess(ctx)
}

// confess stores how many entries were lost, if any were.
func (t *Trail) confess(ctx context.Context) {
	n := t.lost.Swap(0)
	if n == 0 {
		return
	}
	t.Logger.Error("entries of the audit log were lost", "entries", n)
	if t.Write(ctx, Entry{Time: time.Now().UTC(), Subject: "mneme", Via: ViaServer, Action: ActionLost, Outcome: Failed, Count: int(n)}) != nil {
		t.lost.Add(n) // the next entry reports it
	}
}
