package eventlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
)

// Errors of this package; see the package comment.
var (
	ErrFull      = errors.New("the log is full")
	ErrNotStored = errors.New("the log could not store the events")

	// ErrUnconfirmed means that an event may be in the log or not.
	ErrUnconfirmed = errors.New("the log's server did not confirm in time")

	ErrTooLarge  = errors.New("the event is too large for the server")
	ErrNotFound  = errors.New("no such event in the log")
	ErrBeyondEnd = errors.New("beyond the end of the log")
	ErrConflict  = errors.New("the newest event of the conversation is not the expected one")

	// ErrOtherContent is the class of every [*OtherContentError].
	ErrOtherContent = errors.New("the log has another event with this identity")

	// ErrSilent means that a question was not answered before the caller's deadline or, without one, within 8 seconds. It is
	// a context.DeadlineExceeded or a nats.ErrTimeout too.
	ErrSilent = errors.New("the log's server (NATS) did not answer in time")

	// ErrNoLeader means that no server took a question or an event, because none leads the log. A cluster needs some seconds
	// to choose a leader, and most of its servers.
	ErrNoLeader = errors.New("no NATS server leads the log at the moment")

	ErrInterrupted = errors.New("the log's server was unavailable for a while")
)

// Log is a connection to the stream. It is safe for concurrent use.
type Log struct {
	conn      *nats.Conn
	js        jetstream.JetStream
	stream    jetstream.Stream
	had       natsdeploy.Info // as it was opened
	outdated  chan struct{}   // closed once the log has other partitions
	noticed   sync.Once       // closes outdated
	batches   chan struct{}   // the atomic batches in flight
	published func(Publication)
	client    []jetstream.JetStreamOpt
}

// Option is an option of [Open].
type Option func(*Log)

// OnPublish sets a function that is called after each publish, on the publishing goroutine.
func OnPublish(published func(Publication)) Option {
	return func(l *Log) { l.published = published }
}

// AnswerWithin sets how long the server may take to answer what is asked or published without a deadline. The default is
// that of the client, five seconds.
func AnswerWithin(d time.Duration) Option {
	return func(l *Log) { l.client = append(l.client, jetstream.WithDefaultTimeout(d)) }
}

// Open finds the stream behind a connection. It does not create the stream; deploy/nats does. Its errors are those of
// [natsdeploy.Inspect], [ErrSilent] and [ErrNoLeader].
func Open(ctx context.Context, conn *nats.Conn, options ...Option) (*Log, error) {
	l := &Log{conn: conn, outdated: make(chan struct{}), batches: make(chan struct{}, maxBatches)}
	for _, option := range options {
		option(l)
	}
	var err error
	if l.js, err = jetstream.New(conn, l.client...); err != nil {
		return nil, err
	}
	if l.had, err = ask(ctx, func(ctx context.Context) (natsdeploy.Info, error) { return natsdeploy.Inspect(ctx, l.js) }); err != nil {
		return nil, err
	}
	if l.stream, err = ask(ctx, func(ctx context.Context) (jetstream.Stream, error) { return l.js.Stream(ctx, natsdeploy.Stream) }); err != nil {
		return nil, fmt.Errorf("open stream %s: %w", natsdeploy.Stream, err)
	}
	return l, nil
}

// Partitions returns the number of partitions that the stream mapped conversations to when the log was
// opened. It can grow, see [Log.AwaitSplit].
func (l *Log) Partitions() int { return l.had.Partitions }

// PartitionOf returns the partition of a conversation's next event. Its older events can be in the partitions that this
// one continues, see [Log.Parent].
func (l *Log) PartitionOf(tenant, conversation string) int {
	return events.PartitionOf(tenant, conversation, l.had.Partitions)
}

// Created returns when the stream was made. A log with another creation time, such as one in a new
// data directory, has other events at the same sequences.
func (l *Log) Created() time.Time { return l.stream.CachedInfo().Created }

// Conn returns the connection that the log was opened with.
func (l *Log) Conn() *nats.Conn { return l.conn }

// State is the extent of the log.
type State struct {
	First, Head uint64 // first and last sequence; 0 and 0 when empty
	Messages    uint64
	Missing     uint64 // events that left the log without a record: a disk lost them, or a purge was not recorded
	Removed     uint64 // events that left it with a record: they were erased, published again after a loss, or given up
	Bytes       uint64
	MaxBytes    int64     // at which the log is full
	Now         time.Time // by the server's clock
	Changed     error     // an [*natsdeploy.IncompatibleError] if somebody has changed a setting of the stream that mneme needs

	damaged uint64 // messages known to be unreadable
}

// State asks the server for the extent of the log. It returns [ErrPartitions] if the log was split
// since it was opened.
func (l *Log) State(ctx context.Context) (State, error) {
	info, err := l.current(ctx)
	if err != nil {
		return State{}, err
	}
	return stateOf(info), nil
}

// extent is State for readers that need no partitions.
func (l *Log) extent(ctx context.Context) (State, error) {
	info, err := l.info(ctx)
	if err != nil {
		return State{}, err
	}
	return stateOf(info), nil
}

func stateOf(info *jetstream.StreamInfo) State {
	s := info.State
	return State{First: s.FirstSeq, Head: s.LastSeq, Messages: s.Msgs, Missing: natsdeploy.Missing(info), Removed: natsdeploy.Removed(info.Config), Bytes: s.Bytes, MaxBytes: info.Config.MaxBytes, Now: info.TimeStamp, Changed: natsdeploy.Changed(info), damaged: natsdeploy.Damaged(info.Config)}
}

// RecordRemoved records how many of the missing events are accounted for, because they were erased
// or published again under new sequences. It returns how many are still missing. It needs
// permission to update the stream.
func (l *Log) RecordRemoved(ctx context.Context, events uint64) (missing uint64, err error) {
	return natsdeploy.RecordRemoved(ctx, l.js, events)
}

// Scan reads every message that a partition holds up to a sequence, in order: about 6 µs a message of the log. It is
// for operators, never for a reader's request.
func (l *Log) Scan(ctx context.Context, partition int, upTo uint64, yield func(Message) error) error {
	filters := []string{events.PartitionFilter(partition)}
	for from := uint64(1); from <= upTo; {
		var err error
		if from, err = l.scan(ctx, filters, from, upTo, yield); err != nil {
			return fmt.Errorf("scan partition %d of the log: %w", partition, err)
		}
	}
	return nil
}

// Unreadable counts the messages that the server counts as stored but does not deliver, because their bytes are
// damaged. It has to read the whole log to find them. It leaves out those that [Log.RecordDamaged] has recorded.
func (l *Log) Unreadable(ctx context.Context) (uint64, error) {
	state, err := l.State(ctx)
	if err != nil {
		return 0, err
	}
	read := uint64(0)
	for partition := range l.had.Partitions {
		err := l.Scan(ctx, partition, state.Head, func(Message) error {
			read++
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	damaged := state.Messages - min(read, state.Messages)
	return damaged - min(damaged, state.damaged), nil
}

// RecordDamaged adds to the number of messages that are known to be unreadable, so that [Log.Unreadable] no longer
// counts them.
func (l *Log) RecordDamaged(ctx context.Context, messages uint64) error {
	return natsdeploy.RecordDamaged(ctx, l.js, messages)
}

// Message is one message of the stream as it is stored.
type Message struct {
	Seq     uint64
	Subject string
	Header  nats.Header
	Data    []byte
	Pending uint64    // events of the partition after this one at the time of delivery
	Stored  time.Time // when the log stored it; zero if a consumer delivered it
}

// Decode reads the event of a message. If the event is not valid, err is an [*events.Invalid], and
// the address and the envelope are filled as far as they can be read.
func (m *Message) Decode() (events.Recorded, events.Address, error) {
	address, err := events.ParseSubject(m.Subject)
	if err != nil {
		return events.Recorded{}, address, err
	}
	r, err := events.RecordMessage(m.Header, m.Data)
	if err != nil {
		return r, address, err
	}
	if r.Subject != address.Conversation {
		return r, address, &events.Invalid{Field: "subject", Reason: fmt.Sprintf("%q was published under the conversation %q", r.Subject, address.Conversation)}
	}
	if kind := events.Kind(r.Type); kind != address.Kind {
		return r, address, &events.Invalid{Field: "type", Reason: fmt.Sprintf("%q was published under the kind %q, not %q", r.Type, address.Kind, kind)}
	}
	r.Tenant, r.Seq = address.Tenant, m.Seq
	return r, address, nil
}

// Digest returns the fingerprint of a stored message, valid or not. It shows whether a sequence
// still holds the same message. The server's own headers do not count.
func (m *Message) Digest() events.Digest {
	names := make([]string, 0, len(m.Header))
	for name := range m.Header {
		if !strings.HasPrefix(name, "Nats-") || name == events.HeaderMsgID {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	parts := make([]string, 0, 2+2*len(names))
	parts = append(parts, string([]rune(m.Subject))) // JSON turns invalid UTF-8 into U+FFFD
	for _, name := range names {
		parts = append(parts, name, strings.Join(m.Header[name], "\x00"))
	}
	return events.DigestOf(append(parts, string(m.Data))...)
}
