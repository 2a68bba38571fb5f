package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"mneme.dev/mneme/events"
)

// OtherContentError says that the log already holds a different event with the identity of the one
// to publish: the same tenant, conversation, source and id, but another type or other data. The
// event in the log counts; the new one was not stored.
type OtherContentError struct {
	ID  string // of both events
	Seq uint64 // of the event in the log
}

func (e *OtherContentError) Error() string {
	return fmt.Sprintf("the log has different content under the id %q at sequence %d; the first one counts: publish this event under another id", e.ID, e.Seq)
}

// Is makes errors.Is(err, ErrOtherContent) true.
func (e *OtherContentError) Is(target error) bool { return target == ErrOtherContent }

// confirm checks the stored message that the server considers msg a repeat of. The server compares
// only the Nats-Msg-Id, and anyone who may publish can send a message under any subject with the id
// of somebody else's future event.
//
// If the stored message is the same event, msg is a duplicate. If it is an event with the same
// identity but other content, the error is an [*OtherContentError]. If it is anything else, or was
// removed from the log, msg is stored without a Nats-Msg-Id, which nobody can block; the read
// models drop repeats by the event's own identity.
func (l *Log) confirm(ctx context.Context, msg *nats.Msg, ack Ack, options []jetstream.PublishOpt) (Ack, error) {
	stored, err := l.Get(ctx, ack.Seq)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Ack{}, fmt.Errorf("compare with the stored event: %w", err)
	}
	ours := Message{Subject: msg.Subject, Header: msg.Header, Data: msg.Data}
	wanted, to, invalid := ours.Decode()
	if invalid != nil {
		return Ack{}, invalid
	}
	if err == nil {
		held, address, invalid := stored.Decode()
		if invalid == nil && held.Identity(address.Tenant) == wanted.Identity(to.Tenant) {
			if held.Content() != wanted.Content() {
				return Ack{}, &OtherContentError{ID: wanted.ID, Seq: stored.Seq}
			}
			return ack, nil
		}
	}
	again := &nats.Msg{Subject: msg.Subject, Header: nats.Header{}, Data: msg.Data}
	for name, values := range msg.Header {
		if name != events.HeaderMsgID {
			again.Header[name] = values
		}
	}
	return l.send(ctx, again, options)
}
