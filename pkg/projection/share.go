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

	natsdeploy "mneme/deploy/nats"
)

// ErrElsewhere is returned for a request to a projector that does not hold the
// partition it concerns; the text says which process does.
var ErrElsewhere = errors.New("this process does not hold the partition")

// Leases are how processes that write to one store share the partitions of their
// projections, see the package comment. A process needs one value for all of them.
type Leases struct {
	js      jetstream.JetStream
	process string
	about   Member // without partitions
	ttl     time.Duration
	finish  time.Duration // how long the batch in hand may take that ends a tenure
}

// defaultFinish is many times what the largest batch takes in a store that answers.
const defaultFinish = 10 * time.Second

// LeaseConfig says who takes leases, and where.
type LeaseConfig struct {
	Conn *nats.Conn
	// Process is a name that no other process has: of two with one name, the second
	// waits until the first is gone. A process that starts again should take another
	// one, or it waits for its own old leases.
	Process string
	// Program and Version are what runs in it, for [ReadCluster].
	Program, Version string
	// TTL is how long the partitions of a killed process stand still; 0 means
	// [natsdeploy.DefaultLeaseTTL]. A bucket that is there keeps its own.
	TTL time.Duration
}

// NewLeases takes nothing yet; a projector that is told to use them does, from its
// Start to its Stop.
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

// Process is the name under which leases are taken: the configured one, with a hyphen
// for each character that a key of the bucket cannot have.
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

	// work drives a partition until ctx ends, which is at once, or stop is closed, which
	// is after the batch in hand, or it can't go on.
	work func(ctx context.Context, stop <-chan struct{}, partition int) error
	// about is what the process says of itself, asked at each renewal.
	about func() []byte
	// holder is told who holds a partition, "" for nobody; only by run.
	holder func(partition int, process string)
	// outside is told why the process takes part in nothing, nil once it does.
	outside func(error)
}

// maxAbsence is the longest that a process waits before it looks again for a bucket
// or a server that was away.
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
			s.slog.Warn("the process takes part in nothing and tries again, until it succeeds", "error", err)
		}
		select {
		case <-time.After(backoff):
		case <-ctx.Done():
			return
		}
		if backoff = min(2*backoff, maxAbsence); time.Since(began) > maxBackoff {
			backoff = minBackoff
		}
	}
}

// membership is the time in which a process is a member: from when it has said so in
// the bucket until it can't any more.
type membership struct {
	*share
	bucket jetstream.KeyValue
	ttl    time.Duration
	self   *lease
	view   *view
	held   map[int]*tenure
	ended  chan ending
	asleep map[int]time.Time // partitions that are not to be taken before
}

// tenure is the time in which a process holds a partition.
type tenure struct {
	*lease
	stop     chan struct{} // closed when the partition is to be given back
	stopping bool
	cut      context.CancelCauseFunc // ends the work at once
}

// errUnfinished says that a batch was cut off so that its partition could be given back.
var errUnfinished = errors.New("the batch in hand took too long and was cut off")

type ending struct {
	partition int
	err       error
}

// join makes the process a member until ctx ends, which is nil, or it can't be one.
func (s *share) join(ctx context.Context) error {
	bucket, ttl, err := natsdeploy.ApplyLeases(ctx, s.js, s.ttl)
	if err != nil {
		return err
	}
	self, err := take(bucket, ttl, s.keys.member(s.process), s.about)
	if errors.Is(err, errTaken) {
		return fmt.Errorf("another process has the name %q, or this one had it just now", s.process)
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
	self.release() // before the rest: the others then know what will be theirs
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

// take keeps to what the view says until ctx ends.
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
			return fmt.Errorf("this process counts as gone: %w", context.Cause(m.self.valid))
		case e, ok := <-m.view.watcher.Updates():
			if !ok {
				return errors.New("the watch of the leases has ended")
			}
			if !m.view.see(e, m.process) {
				continue
			}
		case end := <-m.ended:
			m.wasGivenBack(end)
		case <-ticker.C:
			// The renewals of the own key must come back as updates.
			if time.Since(m.view.heard) > m.ttl {
				m.slog.Warn("the watch of the leases is silent and begins again")
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

// settle takes what belongs to this process and is free, and gives back what does not.
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
				m.slog.Warn("a lease could not be taken", "partition", partition, "error", err)
				return // the next tick tries again, if the membership lasts
			}
		}
	}
}

// begin takes the lease of a partition and sets the work going.
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

// giveBack ends the work on a partition; its lease is released behind it. A store that
// does not answer must not keep the partition, nor the process, for ever.
func (m *membership) giveBack(partition int) {
	if t := m.held[partition]; !t.stopping {
		t.stopping = true
		close(t.stop)
		time.AfterFunc(m.finish, func() { t.cut(errUnfinished) })
	}
}

// wasGivenBack takes note that a tenure is over.
func (m *membership) wasGivenBack(end ending) {
	delete(m.held, end.partition)
	switch {
	case end.err == nil:
		m.slog.Info("partition given back", "partition", end.partition)
	case errors.Is(end.err, ErrFenced):
		// By another process that has the lease now; or by one that knows nothing of
		// leases, and the two should not drive each other out all the time.
		m.asleep[end.partition] = time.Now().Add(m.ttl)
		fallthrough
	default:
		m.slog.Warn("partition lost", "partition", end.partition, "error", end.err)
	}
}
