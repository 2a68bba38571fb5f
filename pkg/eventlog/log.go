package eventlog

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme/deploy/nats"
	"mneme/events"
)

// Errors of this package; see the package comment.
var (
	ErrFull      = errors.New("the log is full")
	ErrTooLarge  = errors.New("the event is too large for the server")
	ErrNotFound  = errors.New("no such event in the log")
	ErrBeyondEnd = errors.New("beyond the end of the log")

	ErrInterrupted = errors.New("the log's server was away for a while")
)

// Log is a connection to the stream. It is safe for concurrent use.
type Log struct {
	conn       *nats.Conn
	js         jetstream.JetStream
	stream     jetstream.Stream
	partitions int
}

// Open finds the stream behind a connection. It does not create it; that is the
// business of deploy/nats.
func Open(ctx context.Context, conn *nats.Conn) (*Log, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	info, err := natsdeploy.Inspect(ctx, js)
	if err != nil {
		return nil, err
	}
	stream, err := js.Stream(ctx, natsdeploy.Stream)
	if err != nil {
		return nil, fmt.Errorf("open stream %s: %w", natsdeploy.Stream, err)
	}
	return &Log{conn: conn, js: js, stream: stream, partitions: info.Partitions}, nil
}

// Partitions is the number of partitions that the stream maps conversations to.
func (l *Log) Partitions() int { return l.partitions }

// Conn is the connection the log was opened with.
func (l *Log) Conn() *nats.Conn { return l.conn }

// State is the extent of the log.
type State struct {
	First, Head uint64 // first and last sequence; 0 and 0 when empty
	Messages    uint64
	Bytes       uint64
}

// State asks the server for the extent of the log.
func (l *Log) State(ctx context.Context) (State, error) {
	info, err := l.stream.Info(ctx)
	if err != nil {
		return State{}, fmt.Errorf("state of the log: %w", err)
	}
	s := info.State
	return State{First: s.FirstSeq, Head: s.LastSeq, Messages: s.Msgs, Bytes: s.Bytes}, nil
}

// Get reads the event at a sequence by a direct get, about 0.1 ms.
// It returns [ErrNotFound] if there is none.
func (l *Log) Get(ctx context.Context, seq uint64) (Message, error) {
	if seq == 0 { // which the server would take for an empty request
		return Message{}, fmt.Errorf("sequence 0: %w", ErrNotFound)
	}
	raw, err := l.stream.GetMsg(ctx, seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Message{}, fmt.Errorf("sequence %d: %w", seq, ErrNotFound)
	}
	if err != nil {
		return Message{}, fmt.Errorf("get sequence %d: %w", seq, err)
	}
	return Message{Seq: raw.Sequence, Subject: raw.Subject, Header: raw.Header, Data: raw.Data}, nil
}

// Last is the sequence of the newest event of a conversation, 0 if it has none,
// and the partition that holds it.
func (l *Log) Last(ctx context.Context, tenant, conversation string) (seq uint64, partition int, err error) {
	raw, err := l.stream.GetLastMsgForSubject(ctx, events.ConversationFilter(tenant, conversation))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, fmt.Errorf("last event of conversation %q: %w", conversation, err)
	}
	address, err := events.ParseSubject(raw.Subject)
	if err != nil {
		return 0, 0, err
	}
	return raw.Sequence, address.Partition, nil
}

// LastOf is the sequence of the newest event of a partition, 0 if it has none.
func (l *Log) LastOf(ctx context.Context, partition int) (uint64, error) {
	raw, err := l.stream.GetLastMsgForSubject(ctx, events.PartitionFilter(partition))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("last event of partition %d: %w", partition, err)
	}
	return raw.Sequence, nil
}

// Message is one message of the stream as it is stored.
type Message struct {
	Seq     uint64
	Subject string
	Header  nats.Header
	Data    []byte
	Pending uint64 // events of the partition behind this one when it was delivered
}

// Decode reads the event of a message. If the event is not valid err is an
// [*events.Invalid], and the address and the envelope are as far as they can be read.
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

// Digest is the fingerprint of a stored message, valid or not: it tells whether
// the sequence still holds what it held. The server's own headers do not count.
func (m *Message) Digest() events.Digest {
	names := make([]string, 0, len(m.Header))
	for name := range m.Header {
		if !strings.HasPrefix(name, "Nats-") || name == events.HeaderMsgID {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	parts := make([]string, 0, 2+2*len(names))
	parts = append(parts, m.Subject)
	for _, name := range names {
		parts = append(parts, name, strings.Join(m.Header[name], "\x00"))
	}
	return events.DigestOf(append(parts, string(m.Data))...)
}
