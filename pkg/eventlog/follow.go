package eventlog

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme/deploy/nats"
	"mneme/events"
)

// followMessages is how many events a follower holds in memory at most, before its
// reader takes them; natsdeploy.PullByteLimit bounds their bytes.
const followMessages = 5000

// Follower delivers the events of one partition in order, each once, from a
// sequence on and without end. When the server made it lose its place (it was
// restarted, the connection was lost) it delivers nothing more and says so: the
// reader then looks whether the log still holds what it has read, and follows again
// from there. The log of a server that lost power may have lost its tail.
type Follower struct {
	c           chan Message
	done        chan struct{}
	stopped     sync.Once
	interrupted chan struct{}
	pending     uint64
	consume     jetstream.ConsumeContext
}

// Follow begins at the first event of the partition with a sequence of at least
// from. It uses an ordered consumer, which has no acknowledgements: the only
// position is the reader's own.
//
// It returns [ErrBeyondEnd] if from is more than one beyond the head: the stream
// has lost its tail, or it is another stream.
func (l *Log) Follow(ctx context.Context, partition int, from uint64) (*Follower, error) {
	state, err := l.State(ctx)
	if err != nil {
		return nil, err
	}
	if from > state.Head+1 {
		return nil, fmt.Errorf("follow from sequence %d, the log ends at %d: %w", from, state.Head, ErrBeyondEnd)
	}
	filter := []string{events.PartitionFilter(partition)}
	if l.partitions == 1 {
		filter = nil // everything: the server then need not look each subject up
	}
	f, err := l.consume(ctx, filter, from)
	if err != nil {
		return nil, fmt.Errorf("follow partition %d: %w", partition, err)
	}
	return f, nil
}

// C delivers the events. It is never closed.
func (f *Follower) C() <-chan Message { return f.c }

// Interrupted is closed when no more events come, see [Follower]. What C has
// delivered is in order and stays valid.
func (f *Follower) Interrupted() <-chan struct{} { return f.interrupted }

// Pending is how many events there were to deliver when the follower began.
func (f *Follower) Pending() uint64 { return f.pending }

// Stop ends the delivery. It is idempotent.
func (f *Follower) Stop() {
	f.stopped.Do(func() {
		close(f.done)
		f.consume.Stop()
	})
}

func (l *Log) consume(ctx context.Context, filter []string, from uint64) (*Follower, error) {
	consumer, err := l.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		FilterSubjects: filter,
		DeliverPolicy:  jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:    max(from, 1),
	})
	if err != nil {
		return nil, err
	}
	info := consumer.CachedInfo()
	f := &Follower{c: make(chan Message, 256), done: make(chan struct{}), interrupted: make(chan struct{}), pending: info.NumPending}
	var lost sync.Once
	f.consume, err = consumer.Consume(func(msg jetstream.Msg) {
		meta, err := msg.Metadata()
		if err != nil {
			return // not a message of the stream
		}
		if meta.Consumer != info.Name {
			// The client has quietly made another consumer. It runs beside the first
			// one, which may still hold a message: taking from both would change the order.
			lost.Do(func() { close(f.interrupted) })
			return
		}
		select {
		case f.c <- Message{Seq: meta.Sequence.Stream, Subject: msg.Subject(), Header: msg.Headers(), Data: msg.Data(), Pending: meta.NumPending}:
		case <-f.done:
		}
	}, jetstream.PullMaxMessagesWithBytesLimit(followMessages, natsdeploy.PullByteLimit))
	return f, err
}

// Conversation reads all events of one conversation up to and including a
// sequence, in order. It scans the stream: 0.4 s a million events.
func (l *Log) Conversation(ctx context.Context, tenant, conversation string, upTo uint64, yield func(Message) error) error {
	last, _, err := l.Last(ctx, tenant, conversation)
	if err != nil || last == 0 || upTo == 0 {
		return err
	}
	f, err := l.consume(ctx, []string{events.ConversationFilter(tenant, conversation)}, 1)
	if err != nil {
		return fmt.Errorf("read conversation %q: %w", conversation, err)
	}
	defer f.Stop()
	for {
		select {
		case m := <-f.c:
			if m.Seq <= upTo {
				if err := yield(m); err != nil {
					return err
				}
			}
			if m.Seq >= min(last, upTo) {
				return nil
			}
		case <-f.interrupted:
			return fmt.Errorf("read conversation %q: %w", conversation, ErrInterrupted)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// progressSubject is where a projector announces its checkpoints. It lies outside
// of the stream's subjects: the announcement is a hint, the truth is in the store.
func progressSubject(projection string, partition int) string {
	return "mneme-progress." + projection + "." + strconv.Itoa(partition)
}

// Announce tells whoever waits that a projection has applied a sequence.
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
		default: // it is awake
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
