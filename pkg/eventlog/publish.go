package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
)

// Limits of one atomic batch. The server allows 1,000 events; the limit in bytes bounds what it has
// to stage.
const (
	maxBatchEvents = 1000
	maxBatchBytes  = 16 << 20
)

// maxBatches bounds the atomic batches in flight. The server refuses more than 50,
// from all of its clients.
const maxBatches = 16

// How long to wait before a retry if the server had no room or has not answered yet, and how long
// to wait for that answer in total.
const (
	minWait    = 5 * time.Millisecond
	maxWait    = 500 * time.Millisecond
	maxProcess = 3 * time.Second
)

// maxAbandoned is how often a batch that the server gave up is sent again. The server gives up a batch of which it gets
// nothing for ten seconds, as on an overloaded machine, and those that a leader has begun when another takes over.
const maxAbandoned = 3

// Ack says where the log holds an event. Duplicate means that the server knew the event from its
// duplicate window and that the stored event has the same content: nothing new was stored.
type Ack struct {
	Seq       uint64
	Duplicate bool
}

// Publication describes one call of [Log.Publish] or [Log.PublishAll], for metrics.
type Publication struct {
	Events     int // events to publish
	Stored     int // events acknowledged, duplicates included
	Duplicates int
	Took       time.Duration
	Err        error
}

// Publish stores one event and waits for the acknowledgement. Publishing the same
// event again is harmless: within the duplicate window the server drops it, later
// the read models do.
//
// It returns an [*events.Invalid], an [*OtherContentError], [ErrFull], [ErrTooLarge],
// [ErrUnconfirmed], [ErrNoLeader], [natsdeploy.ErrNoStream], or an error of the connection; only after a nil error is the event
// stored for certain.
func (l *Log) Publish(ctx context.Context, tenant string, e events.Event) (Ack, error) {
	return l.publishOne(ctx, tenant, e)
}

func (l *Log) publishOne(ctx context.Context, tenant string, e events.Event, options ...jetstream.PublishOpt) (ack Ack, err error) {
	began, list := time.Now(), []events.Event{e}
	ctx, span := startPublish(ctx, list, semconv.MessagingMessageID(e.ID))
	defer func() {
		var stored []Ack
		if err == nil {
			stored = []Ack{ack}
		}
		l.publishedSome(span, began, 1, stored, err)
	}()
	msg, err := NewMsg(tenant, e)
	if err != nil {
		return Ack{}, err
	}
	carry(ctx, list, []*nats.Msg{msg})
	return l.publish(ctx, msg, options...)
}

// PublishAfter stores an event only if the newest event of its conversation with this kind (see [events.Kind]; "*" is
// any kind) is at the sequence last, 0 for none. The server checks and stores in one step, so of several publishers
// that expect the same event only one succeeds.
//
// It returns [ErrConflict] if the newest event is another one, even if that is a copy of e: read it to recognize a
// repeat. Its other errors are those of Publish.
func (l *Log) PublishAfter(ctx context.Context, tenant string, e events.Event, kind string, last uint64) (Ack, error) {
	return l.publishOne(ctx, tenant, e, jetstream.WithExpectLastSequenceForSubject(last, events.KindFilter(tenant, e.Subject, kind)))
}

// PublishAll stores events in order, in atomic batches of up to 1,000: each batch is stored whole
// or not at all. It is the fastest durable way, with one disk sync per batch. The server refuses a
// whole batch that holds an event from its duplicate window; that batch's events are then published
// one by one, up to the first that has other content than the log's event with its identity.
//
// The acks are those of the events stored before an error. An [*OtherContentError] is about the
// event at the index after them. Other errors are those of [Log.Publish], and [ErrNotStored].
func (l *Log) PublishAll(ctx context.Context, tenant string, list []events.Event) ([]Ack, error) {
	return l.publishList(ctx, tenant, list, NewMsg)
}

// PublishValid is [Log.PublishAll] for events that [events.Record] has accepted: it does not decode them once more.
func (l *Log) PublishValid(ctx context.Context, tenant string, list []events.Event) ([]Ack, error) {
	return l.publishList(ctx, tenant, list, newMsg)
}

func (l *Log) publishList(ctx context.Context, tenant string, list []events.Event, message func(string, events.Event) (*nats.Msg, error)) ([]Ack, error) {
	if len(list) == 0 {
		return []Ack{}, nil
	}
	began := time.Now()
	ctx, span := startPublish(ctx, list, semconv.MessagingBatchMessageCount(len(list)))
	acks, err := l.publishAll(ctx, tenant, list, message)
	l.publishedSome(span, began, len(list), acks, err)
	return acks, err
}

// publishedSome ends the span of a publish and reports the publish.
func (l *Log) publishedSome(span trace.Span, began time.Time, asked int, acks []Ack, err error) {
	endPublish(span, acks, err)
	if l.published != nil {
		l.published(Publication{Events: asked, Stored: len(acks), Duplicates: duplicates(acks), Took: time.Since(began), Err: err})
	}
}

func duplicates(acks []Ack) (n int) {
	for _, ack := range acks {
		if ack.Duplicate {
			n++
		}
	}
	return n
}

func (l *Log) publishAll(ctx context.Context, tenant string, list []events.Event, message func(string, events.Event) (*nats.Msg, error)) ([]Ack, error) {
	msgs := make([]*nats.Msg, len(list))
	for i, e := range list {
		msg, err := message(tenant, e)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
		msgs[i] = msg
	}
	carry(ctx, list, msgs)
	acks := make([]Ack, 0, len(list))
	for len(msgs) > 0 {
		n, bytes := 0, 0
		for n < len(msgs) && n < maxBatchEvents && (n == 0 || bytes+len(msgs[n].Data) <= maxBatchBytes) {
			bytes += len(msgs[n].Data)
			n++
		}
		stored, err := l.publishBatch(ctx, msgs[:n])
		acks = append(acks, stored...)
		if err != nil {
			return acks, err
		}
		msgs = msgs[n:]
	}
	return acks, nil
}

// NewMsg returns the NATS message that carries an event: binary mode, with the subject of its
// conversation and its identity as Nats-Msg-Id.
func NewMsg(tenant string, e events.Event) (*nats.Msg, error) {
	if _, err := events.Record(e); err != nil {
		return nil, err
	}
	return newMsg(tenant, e)
}

// newMsg is [NewMsg] for a valid event.
func newMsg(tenant string, e events.Event) (*nats.Msg, error) {
	subject, err := events.Address{Tenant: tenant, Conversation: e.Subject, Kind: events.Kind(e.Type)}.Subject()
	if err != nil {
		return nil, err
	}
	header, data := events.EncodeMessage(e)
	header[events.HeaderMsgID] = []string{e.Identity(tenant).String()}
	return &nats.Msg{Subject: subject, Header: header, Data: data}, nil
}

// publish stores one message. If the server knows its id, publish compares the stored message.
func (l *Log) publish(ctx context.Context, msg *nats.Msg, options ...jetstream.PublishOpt) (Ack, error) {
	ack, err := l.send(ctx, msg, options)
	if err == nil && ack.Duplicate {
		return l.confirm(ctx, msg, ack, options)
	}
	return ack, err
}

func (l *Log) send(ctx context.Context, msg *nats.Msg, options []jetstream.PublishOpt) (Ack, error) {
	var ack *jetstream.PubAck
	began := time.Now()
	err := askAgain(ctx, func() (again bool, err error) {
		ack, err = l.js.PublishMsg(ctx, msg, options...)
		return natsdeploy.IsInProcess(err) && time.Since(began) < maxProcess, err
	})
	if err != nil {
		return Ack{}, l.publishError(ctx, err)
	}
	return Ack{Seq: ack.Sequence, Duplicate: ack.Duplicate}, nil
}

// askAgain repeats ask until it needs no retry, each time after a longer wait.
func askAgain(ctx context.Context, ask func() (again bool, err error)) error {
	for wait := minWait; ; wait = min(2*wait, maxWait) {
		again, err := ask()
		if !again {
			return err
		}
		select {
		case <-time.After(wait/2 + rand.N(wait)):
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}

func (l *Log) publishBatch(ctx context.Context, msgs []*nats.Msg) ([]Ack, error) {
	if len(msgs) > 1 {
		ack, err := l.publishAtomic(ctx, msgs)
		if err == nil {
			acks := make([]Ack, len(msgs))
			for i := range acks {
				acks[i].Seq = ack.Sequence - uint64(len(msgs)-1-i)
			}
			return acks, nil
		}
		if !isDuplicateBatch(err) {
			return nil, l.publishError(ctx, err)
		}
		for _, msg := range msgs {
			msg.Reply = ""
			for _, name := range []string{jetstreamext.BatchIDHeader, jetstreamext.BatchSeqHeader, jetstreamext.BatchCommitHeader} {
				msg.Header.Del(name)
			}
		}
	}
	acks := make([]Ack, 0, len(msgs))
	for _, msg := range msgs {
		ack, err := l.publish(ctx, msg)
		if err != nil {
			return acks, err
		}
		acks = append(acks, ack)
	}
	return acks, nil
}

// publishAtomic publishes one atomic batch. It waits while too many are in flight, and sends one again of which the server
// stored nothing because it gave it up. Like other requests, it waits for each
// answer of the server until ctx ends, or without a deadline for the default of the client.
func (l *Log) publishAtomic(ctx context.Context, msgs []*nats.Msg) (*jetstreamext.BatchAck, error) {
	select {
	case l.batches <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	type answer struct {
		ack *jetstreamext.BatchAck
		err error
	}
	answered := make(chan answer, 1)
	go func() { // the client waits for the answer to the first message even if ctx is canceled; without ctx it commits nothing
		var a answer
		abandoned := 0
		a.err = askAgain(ctx, func() (again bool, err error) {
			flow := jetstreamext.BatchFlowControl{AckFirst: true, AckTimeout: l.js.Options().DefaultTimeout}
			if deadline, ok := ctx.Deadline(); ok {
				flow.AckTimeout = time.Until(deadline)
			}
			a.ack, err = jetstreamext.PublishMsgBatch(ctx, l.js, msgs, flow)
			if isAbandoned(err) {
				abandoned++
				return abandoned <= maxAbandoned, err
			}
			return isTooManyBatches(err), err
		})
		<-l.batches
		answered <- a
	}()
	select {
	case a := <-answered:
		return a.ack, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func isTooManyBatches(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) &&
		(api.ErrorCode == jetstreamext.JSErrCodeAtomicPublishTooManyInflight || api.ErrorCode == jetstreamext.JSErrCodeBatchPublishTooManyInflight)
}

// isDuplicateBatch reports whether the server refused a batch because it knows one of its events.
func isDuplicateBatch(err error) bool {
	var api *jetstream.APIError
	return natsdeploy.IsInProcess(err) || errors.As(err, &api) && api.ErrorCode == jetstreamext.JSErrCodeBatchPublishDuplicateMsgID
}

// Codes of the JetStream API for a message and for headers beyond the limits.
const (
	codeMessageTooLarge jetstream.ErrorCode = 10054
	codeHeaderTooLarge  jetstream.ErrorCode = 10097
)

func isTooLarge(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == codeMessageTooLarge || api.ErrorCode == codeHeaderTooLarge)
}

// isTimeout reports whether a server did not answer.
func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout)
}

// isAbandoned reports whether the server gave up a batch and stored nothing of it: it could not write the file in which it
// stages a batch, waited too long for the rest, or is not the one that received the beginning.
func isAbandoned(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == jetstreamext.JSErrCodeBatchPublishIncomplete
}

func (l *Log) publishError(ctx context.Context, err error) error {
	switch {
	case isTimeout(err) && ctx.Err() == nil && !l.conn.IsConnected():
		return fmt.Errorf("publish: %w; the connection to NATS is lost, see whether its server runs: %w", ErrUnconfirmed, err)
	case isTimeout(err) && ctx.Err() == nil: // a server that can't write does not answer
		return fmt.Errorf("publish: %w; the disk of the NATS server may be full, or most servers of its cluster down: with mneme up, mneme doctor says so; for a separate NATS server, its /healthz does: %w", ErrUnconfirmed, err)
	case isTimeout(err): // a batch waits for the server longer than its caller may do
		return fmt.Errorf("publish: %w: %w", ctx.Err(), err)
	case isAbandoned(err):
		return fmt.Errorf("%w: the disk of its server may be full, the server overloaded, or a limit on the size or the number of its open files reached (ulimit -f and -n, LimitNOFILE= in systemd); mneme doctor and the NATS server's own log output say more: %w", ErrNotStored, err)
	case natsdeploy.IsLeaderless(err):
		return l.notTaken(ctx, err)
	case natsdeploy.IsInProcess(err):
		return fmt.Errorf("%w: it is still storing an earlier publish; try again: %w", ErrUnconfirmed, err)
	case natsdeploy.IsConflict(err):
		return fmt.Errorf("%w: %w", ErrConflict, err)
	case natsdeploy.IsFull(err):
		return fmt.Errorf("%w: %w", ErrFull, err)
	case errors.Is(err, nats.ErrMaxPayload), isTooLarge(err):
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	return fmt.Errorf("publish: %w", err)
}

// notTaken is the error of a publish that no server took: the log has no leader, or it is gone.
func (l *Log) notTaken(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(ctx, firstAttempt)
	defer cancel()
	if _, gone := l.stream.Info(ctx); errors.Is(gone, jetstream.ErrStreamNotFound) {
		err = gone
	}
	return fmt.Errorf("publish: %w", named(err))
}
