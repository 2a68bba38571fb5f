package projection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

// ErrElsewhere is returned for a request to a projector that does not hold the partition.
// The text names the process that does.
var ErrElsewhere = errors.New("this process does not hold the partition")

// Leases let processes that write to one store share the partitions of their projections,
// see the package comment. A process needs one value for all its projections.
type Leases struct {
	js      jetstream.JetStream
	process string
	about   Member // without partitions
	ttl     time.Duration
	finish  time.Duration // time for the last batch after a partition is given back
}

// defaultFinish is many times longer than the largest batch takes in a store that answers.
const defaultFinish = 10 * time.Second

// LeaseConfig configures [NewLeases].
type LeaseConfig struct {
	Conn *nats.Conn
	// Process must be unique: a second process with the same name waits until the first is
	// gone. A restarted process should use a new name, otherwise it waits for its own old
	// leases to expire.
	Process string
	// Program and Version are shown by [ReadCluster].
	Program, Version string
	// TTL is how long the partitions of a killed process stand still; 0 means
	// [natsdeploy.DefaultLeaseTTL]. An existing bucket keeps its own TTL.
	TTL time.Duration
}

// NewLeases takes no leases yet. A [Shared] projector takes them between its Start and its
// Stop.
func NewLeases(c LeaseConfig) (*Leases, error) {
	js, err := jetstream.New(c.Conn)
	if err != nil {
		return nil, err
	}
	if c.Process == "" {
		return nil, errors.New("a process that takes leases needs a name")
	}
	l := &Leases{js: js, process: token(c.Process), ttl: c.TTL, finish: defaultFinish}
	l.about = Member{Process: l.process, Program: c.Program, Version: c.Version, Started: time.Now().UTC().Truncate(time.Second)}
	return l, nil
}

// Process returns the name under which leases are taken: the configured one, with a hyphen
// in place of each character that is not allowed in a key.
func (l *Leases) Process() string { return l.process }

func token(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '-'
	}, name)
}

// share takes leases for one projector while it runs.
type share struct {
	*Leases
	keys       keys
	partitions int
	slog       *slog.Logger

	// work drives a partition until it can't continue, ctx ends (then it stops at once), or
	// stop is closed (then it finishes the current batch).
	work func(ctx context.Context, stop <-chan struct{}, partition int) error
	// about returns the value of the member key; called at each renewal.
	about func() []byte
	// holder is told who holds a partition, "" for nobody. Only run calls it.
	holder func(partition int, process string)
	// outside is told why the process can't join, and nil once it has joined.
	outside func(error)
}

// maxAbsence is the longest wait before a missing bucket or server is tried again.
const maxAbsence = time.Second

// run takes and gives back leases until ctx ends, then gives back what it has.
func (s *share) run(ctx context.Context) {
	var known trouble
	for backoff := minBackoff; ; {
		began := time.Now()
		err := s.join(ctx)
		if ctx.Err() != nil {
			return
		}
		s.outside(err)
		if known.isNews(err) {
			s.slog.Warn("cannot join the lease group; retrying", "error", err)
		}
		if rest(ctx, nil, backoff); ctx.Err() != nil {
			return
		}
		if backoff = min(2*backoff, maxAbsence); time.Since(began) > maxBackoff {
			backoff = minBackoff
		}
	}
}

// membership lasts from the Create of the process's member key until the key can't be kept.
type membership struct {
	*share
	bucket jetstream.KeyValue
	ttl    time.Duration
	self   *lease
	view   *view
	held   map[int]*tenure
	ended  chan ending
	asleep map[int]time.Time // partitions not to be taken before this time
}

// tenure is the time in which a process holds a partition.
type tenure struct {
	*lease
	stop     chan struct{} // closed to give the partition back
	stopping bool
	cut      context.CancelCauseFunc // stops the work at once
}

// errUnfinished means that a batch was cut off to give its partition back.
var errUnfinished = errors.New("the current batch took too long and was cut off")

type ending struct {
	partition int
	err       error
}

// join makes the process a member until ctx ends, which returns nil, or until it can't be
// one.
func (s *share) join(ctx context.Context) error {
	bucket, ttl, err := natsdeploy.ApplyLeases(ctx, s.js, s.ttl)
	if err != nil {
		return err
	}
	self, err := take(bucket, ttl, s.keys.member(s.process), s.about)
	if errors.Is(err, errTaken) {
		return fmt.Errorf("another process has the name %q, or an earlier run of this one had it moments ago", s.process)
	}
	if err != nil {
		return err
	}
	s.outside(nil)
	m := &membership{
		share: s, bucket: bucket, ttl: ttl, self: self,
		held: map[int]*tenure{}, ended: make(chan ending), asleep: map[int]time.Time{},
	}
	err = m.take(ctx)
	if err != nil {
		for _, t := range m.held {
			t.lose(err)
		}
	}
	self.release() // first, so that the others know what they will get
	for partition := range m.held {
		m.giveBack(partition)
	}
	for len(m.held) > 0 {
		m.wasGivenBack(<-m.ended)
	}
	for partition := range s.partitions {
		s.holder(partition, "")
	}
	return err
}

// take takes and gives back partitions as the view demands, until ctx ends.
func (m *membership) take(ctx context.Context) (err error) {
	if m.view, err = watch(m.bucket, m.ttl, m.keys, m.partitions); err != nil {
		return err
	}
	defer func() { m.view.end() }()
	ticker := time.NewTicker(m.ttl / 4)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.self.valid.Done():
			return fmt.Errorf("this process lost its member key: %w", context.Cause(m.self.valid))
		case e, ok := <-m.view.watcher.Updates():
			if !ok {
				return errors.New("the lease watch has ended")
			}
			if !m.view.see(e, m.process) {
				continue
			}
		case end := <-m.ended:
			m.wasGivenBack(end)
		case <-ticker.C:
			// The renewals of this process's own key must come back as updates.
			if time.Since(m.view.heard) > m.ttl {
				m.slog.Warn("lease watch went silent; restarting it")
				next, err := watch(m.bucket, m.ttl, m.keys, m.partitions)
				if err != nil {
					return err
				}
				m.view.end()
				m.view = next
			}
		}
		if m.view.whole {
			m.settle()
		}
	}
}

// settle takes the free partitions that belong to this process, and gives back those that
// don't.
func (m *membership) settle() {
	for partition, h := range m.view.held {
		m.holder(partition, h.process)
	}
	for partition, owner := range m.view.owners() {
		switch mine := m.held[partition] != nil; {
		case mine && owner != m.process:
			m.giveBack(partition)
		case !mine && owner == m.process && m.view.held[partition].process == "" && time.Now().After(m.asleep[partition]):
			if err := m.begin(partition); err != nil && !errors.Is(err, errTaken) {
				m.slog.Warn("cannot take a lease; will retry", "partition", partition, "error", err)
				return // the next tick retries, if the membership lasts
			}
		}
	}
}

// begin takes the lease of a partition and starts the work.
func (m *membership) begin(partition int) error {
	l, err := take(m.bucket, m.ttl, m.keys.lease(partition), func() []byte { return []byte(m.process) })
	if err != nil {
		return err
	}
	ctx, cut := context.WithCancelCause(l.valid)
	t := &tenure{lease: l, stop: make(chan struct{}), cut: cut}
	m.held[partition] = t
	m.view.know(partition, holding{process: m.process, revision: l.made})
	m.holder(partition, m.process)
	m.slog.Info("partition taken over", "partition", partition)
	go func() {
		err := m.work(ctx, t.stop, partition)
		if ctx.Err() != nil {
			err = errors.Join(err, context.Cause(ctx))
		}
		cut(nil)
		l.release()
		m.ended <- ending{partition, err}
	}()
	return nil
}

// giveBack ends the work on a partition, after which its lease is released. It sets a time
// limit because a store that does not answer must not keep the partition or the process
// forever.
func (m *membership) giveBack(partition int) {
	if t := m.held[partition]; !t.stopping {
		t.stopping = true
		close(t.stop)
		time.AfterFunc(m.finish, func() { t.cut(errUnfinished) })
	}
}

// wasGivenBack records that a tenure is over.
func (m *membership) wasGivenBack(end ending) {
	delete(m.held, end.partition)
	switch {
	case end.err == nil:
		m.slog.Info("partition given back", "partition", end.partition)
	case errors.Is(end.err, ErrFenced):
		// Fenced by another process that has the lease now, or by one that does not use leases. Wait before taking the
		// partition again, or the two would keep fencing each other.
		m.asleep[end.partition] = time.Now().Add(m.ttl)
		fallthrough
	default:
		m.slog.Warn("partition lost", "partition", end.partition, "error", end.err)
	}
}
