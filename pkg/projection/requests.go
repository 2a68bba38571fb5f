package projection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"mneme/events"
)

// ErrUnheld says that no process answers for a partition.
var ErrUnheld = errors.New("no process drives the partition")

// requestTimeout is how long the process that drives a partition may take for a request:
// many times what the longest conversation needs.
const requestTimeout = time.Minute

// requestSubject is where the process that drives a partition takes requests of others.
// It lies outside of the stream's subjects.
func requestSubject(b Build, partition int) string {
	return "mneme-request." + b.names() + strconv.Itoa(partition)
}

// repairRequest asks for a repair, the only thing that can be asked for.
type repairRequest struct {
	Tenant       string `json:"tenant"`
	Conversation string `json:"conversation"`
}

type repairAnswer struct {
	Applied int    `json:"applied"`
	Failed  int    `json:"failed"`
	Error   string `json:"error,omitempty"`
	Class   string `json:"class,omitempty"` // of the error: elsewhere, not running, or none of these
}

const (
	answerElsewhere  = "elsewhere"
	answerNotRunning = "not running"
)

// answer takes requests for a partition until stop is called.
func (p *Projector[U]) answer(partition int) (stop func()) {
	sub, err := p.log.Conn().Subscribe(requestSubject(p.build(), partition), func(m *nats.Msg) {
		var request repairRequest
		if json.Unmarshal(m.Data, &request) != nil || request.Tenant == "" || request.Conversation == "" {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		var a repairAnswer
		var err error
		if a.Applied, a.Failed, err = p.Repair(ctx, events.ConversationID{Tenant: request.Tenant, ID: request.Conversation}); err != nil {
			a.Error = err.Error()
		}
		switch {
		case errors.Is(err, ErrElsewhere), errors.Is(err, ErrFenced):
			a.Class = answerElsewhere
		case errors.Is(err, ErrNotRunning):
			a.Class = answerNotRunning
		}
		if raw, err := json.Marshal(a); err == nil {
			_ = m.Respond(raw)
		}
	})
	if err != nil {
		p.slog.Warn("other processes can't ask for repairs", "partition", partition, "error", err)
		return func() {}
	}
	return func() { _ = sub.Unsubscribe() }
}

// RequestRepair asks the process that drives a conversation's partition for a
// [Projector.Repair]; it may be this one. It returns [ErrUnheld] if there is none,
// [ErrElsewhere] if the partition moves just now, [ErrNotRunning] with the reason if its
// projector is halted, and context.DeadlineExceeded after a minute.
func RequestRepair(ctx context.Context, conn *nats.Conn, b Build, partition int, id events.ConversationID) (applied, failed int, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	body, err := json.Marshal(repairRequest{id.Tenant, id.ID})
	if err != nil {
		return 0, 0, err
	}
	reply, err := conn.RequestWithContext(ctx, requestSubject(b, partition), body)
	if errors.Is(err, nats.ErrNoResponders) {
		return 0, 0, fmt.Errorf("repair %q: %w: partition %d of %s", id.ID, ErrUnheld, partition, b.Projection)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("repair %q: ask who drives partition %d of %s: %w", id.ID, partition, b.Projection, err)
	}
	var a repairAnswer
	if err := json.Unmarshal(reply.Data, &a); err != nil {
		return 0, 0, fmt.Errorf("repair %q: the answer: %w", id.ID, err)
	}
	switch {
	case a.Error == "":
		return a.Applied, a.Failed, nil
	case a.Class == answerElsewhere:
		return 0, 0, &remoteError{a.Error, ErrElsewhere}
	case a.Class == answerNotRunning:
		return 0, 0, &remoteError{a.Error, ErrNotRunning}
	}
	return 0, 0, errors.New(a.Error)
}

// remoteError is an error of another process.
type remoteError struct {
	text  string
	class error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.class }
