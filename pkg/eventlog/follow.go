package eventlog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
)

// followMessages is how many events the server sends a follower in advance, before the reader takes them.
// natsdeploy.PullByteLimit bounds the bytes of each request: a follower has no buffer of its own,
// so the client requests more only when the reader takes something, and has at most two requests
// open.
const followMessages = 1000

// maxControls is how many undeliverable messages in a row a follower skips at once.
const maxControls = 256

// Follower delivers the events of one partition from a sequence on, without end, in order and each
// once. If it loses its place because the server restarted or the connection was lost, it stops and
// says so. The reader then checks that the log still holds what it has read, because a server that
// lost power may have lost the tail of its log, and follows again from there.
//
// The follower also stops at a message that the NATS client mistakes for its own protocol and does
// not deliver. It reads the first event in another way, so each follower delivers at least one
// event if there is one, and the next follower gets past the message.
type Follower struct {
	c           chan Message  // unbuffered, see followMessages
	begun       chan struct{} // closed when C has delivered what was read before the consumer began
	done        chan struct{}
	stopped     sync.Once
	interrupted chan struct{}
	lost        sync.Once // closes interrupted
	pending     uint64
	log         *Log
	expects     func(*Message) bool // returns false for a message that only a log with more partitions can have
	outdated    chan struct{}       // closed when such a message came
	name        string              // of the consumer
	consumer    jetstream.Consumer
	consume     jetstream.ConsumeContext
	arrived     atomic.Uint64 // messages that came from the consumer
	taken       atomic.Uint64 // of those, the ones that C has taken
	reconnects  uint64        // of the connection when it began
}

// Follow starts at the first event of the partition with a sequence of at least from. It uses an
// ordered consumer, which has no acknowledgements: the only position is the reader's own.
//
// It returns [ErrBeyondEnd] if from is more than one beyond the head: either the stream has lost
// its tail, or it is another stream.
func (l *Log) Follow(ctx context.Context, partition int, from uint64) (*Follower, error) {
	return l.FollowAhead(ctx, partition, from, followMessages)
}

// FollowAhead is [Log.Follow] with its own limit on how many events the server sends before they
// are taken. Events already being sent delay the acknowledgement of newly published ones, so a low
// limit slows the reader and speeds up publishers.
func (l *Log) FollowAhead(ctx context.Context, partition int, from uint64, ahead int) (*Follower, error) {
	state, err := l.State(ctx)
	if err != nil {
		return nil, err
	}
	if from > state.Head+1 {
		return nil, fmt.Errorf("follow from sequence %d, the log ends at %d: %w", from, state.Head, ErrBeyondEnd)
	}
	filters := []string{events.PartitionFilter(partition)}
	if l.had.Partitions == 1 {
		filters = nil // saves the server from looking up each subject
	}
	f, err := l.follow(ctx, filters, from, ahead, func(m *Message) bool {
		n, ok := events.StoredPartition(m.Subject)
		return !ok || n == partition
	})
	if err != nil {
		return nil, fmt.Errorf("follow partition %d: %w", partition, err)
	}
	return f, nil
}

// C delivers the events. It is never closed.
func (f *Follower) C() <-chan Message { return f.c }

// Interrupted is closed when no more events will come, see [Follower]. The events that C has
// delivered stay valid.
func (f *Follower) Interrupted() <-chan struct{} { return f.interrupted }

// Current reports whether the follower is neither interrupted nor about to be because the connection was lost.
func (f *Follower) Current() bool {
	select {
	case <-f.interrupted:
		return false
	default:
		return f.log.conn.Stats().Reconnects == f.reconnects
	}
}

// Pending is how many events were left to deliver when the follower started.
func (f *Follower) Pending() uint64 { return f.pending }

// Stop ends the delivery. It is idempotent.
func (f *Follower) Stop() {
	f.stopped.Do(func() {
		close(f.done)
		go func() { // the client is slow to stop while it replaces its consumer
			f.consume.Stop()
			f.log.deleteConsumer(f.name)
			if name := f.consumer.CachedInfo().Name; name != f.name {
				f.log.deleteConsumer(name)
			}
		}()
	})
}

func (f *Follower) interrupt() { f.lost.Do(func() { close(f.interrupted) }) }

// everything accepts every message, for a follower that does not follow one partition.
func everything(*Message) bool { return true }

// follow reads the first message itself, together with a run of undeliverable messages at the
// start, and starts a consumer after them. No filter means everything. It is interrupted by the first
// message that it does not expect.
func (l *Log) follow(ctx context.Context, filters []string, from uint64, ahead int, expects func(*Message) bool) (*Follower, error) {
	f := &Follower{
		c: make(chan Message), begun: make(chan struct{}), done: make(chan struct{}), interrupted: make(chan struct{}), outdated: make(chan struct{}), log: l, expects: expects,
		reconnects: l.conn.Stats().Reconnects,
	}
	var first []Message
	from = max(from, 1)
	for size := 0; len(first) < maxControls && size < natsdeploy.PullByteLimit; {
		m, err := l.next(ctx, filters, from)
		if errors.Is(err, ErrNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		first, from, size = append(first, m), m.Seq+1, size+len(m.Data)
		if !m.control() {
			break
		}
	}

	config := jetstream.OrderedConsumerConfig{
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       from,
		InactiveThreshold: inactiveThreshold,
		FilterSubjects:    filters,
	}
	var err error
	f.consumer, err = ask(ctx, func(ctx context.Context) (jetstream.Consumer, error) { return l.stream.OrderedConsumer(ctx, config) })
	if err != nil {
		return nil, err
	}
	info := f.consumer.CachedInfo()
	f.name, f.pending = info.Name, info.NumPending+uint64(len(first))
	for i := range first {
		first[i].Pending = f.pending - uint64(i) - 1
	}
	f.consume, err = f.consumer.Consume(f.deliver, jetstream.PullMaxMessagesWithBytesLimit(ahead, natsdeploy.PullByteLimit))
	if err != nil {
		l.deleteConsumer(f.name)
		return nil, err
	}
	go f.begin(first)
	go f.watch()
	return f, nil
}

// begin delivers what was read before the consumer was made.
func (f *Follower) begin(first []Message) {
	for _, m := range first {
		if !f.deliverable(&m) {
			return
		}
		select {
		case f.c <- m:
		case <-f.done:
			return
		}
	}
	close(f.begun)
}

func (f *Follower) deliver(msg jetstream.Msg) {
	meta, err := msg.Metadata()
	if err != nil {
		return // not a message of the stream
	}
	if meta.Consumer != f.name {
		// The client has silently replaced its consumer. The new one runs alongside the first,
		// which may still hold a message: taking from both would change the order.
		f.interrupt()
		return
	}
	f.arrived.Add(1)
	select {
	case <-f.begun:
	case <-f.done:
		return
	}
	m := Message{Seq: meta.Sequence.Stream, Subject: msg.Subject(), Header: msg.Headers(), Data: msg.Data(), Pending: meta.NumPending}
	if !f.deliverable(&m) {
		return
	}
	select {
	case f.c <- m:
		f.taken.Add(1)
	case <-f.done:
	}
}

// deliverable reports whether C may deliver a message. A follower without a filter reads the only
// partition of its log; once it sees another one, nothing more may be delivered.
func (f *Follower) deliverable(m *Message) bool {
	select {
	case <-f.outdated:
		return false
	default:
	}
	if f.expects(m) {
		return true
	}
	close(f.outdated)
	_ = f.log.isOutdated()
	f.interrupt()
	return false
}

// How often watch checks whether the client has replaced its consumer, and after how many checks of
// a silent consumer it asks the server for messages that did not arrive.
const (
	watchInterval = 250 * time.Millisecond
	askAfter      = 8
	believeAfter  = 4
)

// watch interrupts a follower if its consumer was replaced, or holds a message that does not
// arrive.
func (f *Follower) watch() {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	var arrived uint64 // as it was at the last tick
	quiet, behind := 0, false
	for {
		select {
		case <-ticker.C:
		case <-f.interrupted:
			return
		case <-f.done:
			return
		}
		if !f.Current() || !f.same() {
			f.interrupt()
			return
		}
		if n := f.arrived.Load(); n != arrived || n != f.taken.Load() { // the reader is busy
			arrived, quiet, behind = n, 0, false
			continue
		}
		quiet++
		switch {
		case behind && quiet == believeAfter:
			f.interrupt()
			return
		case !behind && quiet == askAfter:
			quiet, behind = 0, f.behind()
		}
	}
}

// same reports whether the consumer is still the one that the follower started with. The client does not answer while
// it replaces its consumer, which takes 10 s if a server of the cluster is down.
func (f *Follower) same() bool {
	name := make(chan string, 1)
	go func() { name <- f.consumer.CachedInfo().Name }()
	select {
	case n := <-name:
		return n == f.name
	case <-time.After(watchInterval):
		return false
	}
}

// behind asks the server whether a message exists that has not arrived.
func (f *Follower) behind() bool {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	consumer, err := f.log.stream.Consumer(ctx, f.name) // asking through f.consumer would block a delivery
	if errors.Is(err, jetstream.ErrConsumerNotFound) || natsdeploy.IsOffline(err) {
		return true
	}
	if err != nil {
		return false
	}
	// Compare how many messages it has sent, not up to which sequence: that rises without a message when the beginning
	// of the log is removed.
	info := consumer.CachedInfo()
	return info.NumPending > 0 || info.Delivered.Consumer > f.arrived.Load()
}

// askTimeout is how long the server may take to describe a consumer.
const askTimeout = 2 * time.Second

// fewEvents is how many events of a conversation are read one by one before a consumer reads the
// rest. An event alone takes 0.1 ms and one from a consumer a fifth of that, but starting a
// consumer takes 0.1 s or more in a long log.
const fewEvents = 1000

// Conversation reads all events of one conversation up to and including a sequence, in order. For a
// long conversation it scans the stream, which takes 0.4 s per million events.
func (l *Log) Conversation(ctx context.Context, tenant, conversation string, upTo uint64, yield func(Message) error) error {
	return l.conversation(ctx, tenant, conversation, upTo, fewEvents, yield)
}

// conversation reads the first few events one by one.
func (l *Log) conversation(ctx context.Context, tenant, conversation string, upTo uint64, few int, yield func(Message) error) error {
	last, _, err := l.Last(ctx, tenant, conversation)
	if err != nil || last == 0 || upTo == 0 {
		return err
	}
	upTo = min(upTo, last)
	filter := events.ConversationFilter(tenant, conversation)
	from := uint64(1)
	for range few {
		if from > upTo {
			return nil
		}
		m, err := l.next(ctx, []string{filter}, from)
		if errors.Is(err, ErrNotFound) {
			return nil // purged meanwhile
		}
		if err != nil {
			return fmt.Errorf("read conversation %q: %w", conversation, err)
		}
		if m.Seq > upTo {
			return nil
		}
		if err := yield(m); err != nil {
			return err
		}
		from = m.Seq + 1
	}
	for from <= upTo {
		if from, err = l.scan(ctx, []string{filter}, from, upTo, yield); err != nil {
			return fmt.Errorf("read conversation %q: %w", conversation, err)
		}
	}
	return nil
}

// idleScan is how often a reader with an end asks whether there is still a message to wait for:
// messages that the server has counted may have been removed since, and a damaged one is never delivered.
const idleScan = time.Second

// errIdle says that no message came before a tick.
var errIdle = errors.New("no message came")

// next takes a message. Messages that have arrived come before an interruption. ok is false if the follower is
// interrupted. If idle ticks before a message comes, next returns errIdle.
func (f *Follower) next(ctx context.Context, idle <-chan time.Time) (m Message, ok bool, err error) {
	select {
	case m = <-f.c:
		return m, true, nil
	default:
	}
	select {
	case m = <-f.c:
		return m, true, nil
	case <-f.interrupted:
		return m, false, nil
	case <-idle:
		return m, true, errIdle
	case <-ctx.Done():
		return m, false, ctx.Err()
	}
}

// scan reads from one sequence up to another, or until it is interrupted, and returns where to
// continue.
func (l *Log) scan(ctx context.Context, filters []string, from, upTo uint64, yield func(Message) error) (uint64, error) {
	f, err := l.follow(ctx, filters, from, followMessages, everything)
	if err != nil {
		return from, err
	}
	defer f.Stop()
	if f.Pending() == 0 {
		return upTo + 1, nil // purged meanwhile
	}
	idle := time.NewTicker(idleScan)
	defer idle.Stop()
	for from <= upTo {
		m, ok, err := f.next(ctx, idle.C)
		if errors.Is(err, errIdle) {
			ok, err = true, nil
		} else if ok && err == nil {
			if m.Seq <= upTo {
				if err := yield(m); err != nil {
					return from, err
				}
			}
			from = m.Seq + 1
			if m.Pending > 0 {
				continue
			}
		}
		if !ok || err != nil {
			return from, err
		}
		// The consumer has no more, or is silent.
		if none, err := l.isExhausted(ctx, filters, from, upTo); err != nil {
			return from, err
		} else if none {
			return upTo + 1, nil
		}
	}
	return from, nil
}

// isExhausted reports whether the log holds no message that matches one of the filters from one
// sequence up to another. It asks the stream's leader: a consumer may be behind it, and may count
// messages that have since left the log or that are damaged and never delivered.
func (l *Log) isExhausted(ctx context.Context, filters []string, from, upTo uint64) (bool, error) {
	first, err := l.next(ctx, filters, from)
	if errors.Is(err, ErrNotFound) {
		return true, nil
	}
	return err == nil && first.Seq > upTo, err
}

// progressSubject is where a projector announces its checkpoints. It is outside of the stream's
// subjects: an announcement is only a hint, and the store has the truth.
func progressSubject(projection string, partition int) string {
	return "mneme-progress." + projection + "." + strconv.Itoa(partition)
}

// Announce publishes that a projection has applied a sequence.
func (l *Log) Announce(projection string, partition int, seq uint64) error {
	return l.conn.Publish(progressSubject(projection, partition), []byte(strconv.FormatUint(seq, 10)))
}

// flushTimeout is how long the server may take to confirm a subscription.
const flushTimeout = 10 * time.Second

// WatchProgress calls announced with each checkpoint that a projection announces
// for a partition, one call at a time, until stop is called. Announcements can be
// lost with the connection.
func (l *Log) WatchProgress(ctx context.Context, projection string, partition int, announced func(seq uint64)) (stop func(), err error) {
	sub, err := l.conn.Subscribe(progressSubject(projection, partition), func(m *nats.Msg) {
		if seq, err := strconv.ParseUint(string(m.Data), 10, 64); err == nil {
			announced(seq)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("watch progress of %s: %w", projection, err)
	}
	stop = func() { _ = sub.Unsubscribe() }
	flushing, cancel := context.WithTimeout(ctx, flushTimeout) // it refuses a context without a deadline
	defer cancel()
	if err := l.conn.FlushWithContext(flushing); err != nil {
		stop()
		return nil, fmt.Errorf("watch progress of %s: %w", projection, err)
	}
	return stop, nil
}

// AwaitProgress asks reached at once, whenever a projection announces progress on a
// partition, and every poll interval, until it returns true or ctx ends.
func (l *Log) AwaitProgress(ctx context.Context, projection string, partition int, poll time.Duration, reached func() (bool, error)) error {
	if ok, err := reached(); ok || err != nil {
		return err
	}
	wake := make(chan struct{}, 1)
	stop, err := l.WatchProgress(ctx, projection, partition, func(uint64) {
		select {
		case wake <- struct{}{}:
		default: // a check is already due
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		if ok, err := reached(); ok || err != nil {
			return err
		}
		select {
		case <-wake:
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
