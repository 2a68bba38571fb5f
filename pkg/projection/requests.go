package projection

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// ErrUnheld means that no process answers for a partition.
var ErrUnheld = errors.New("no process drives the partition")

// requestTimeout is how long the process that drives a partition may take to answer: many times
// what the longest conversation needs.
const requestTimeout = time.Minute

// requestSubject is where the process that drives a partition takes requests from others. It is
// outside of the stream's subjects.
func requestSubject(b Build, partition int) string {
	return "mneme-request." + b.names() + strconv.Itoa(partition)
}

// repairRequest requests a repair; there is no other request.
type repairRequest struct {
	Tenant       string `json:"tenant"`
	Conversation string `json:"conversation"`
}

type repairAnswer struct {
	Applied int `json:"applied"`
	Failed  int `json:"failed"`
}

var repairClasses = []eventlog.Class{{Name: "elsewhere", Err: ErrElsewhere}, {Name: "not running", Err: ErrNotRunning}, {Name: "too large", Err: ErrTooLarge}}

// answer takes requests for a partition until stop is called.
func (p *Projector[U]) answer(partition int) (stop func()) {
	stop, err := eventlog.Serve(p.log.Conn(), requestSubject(p.build(), partition), repairClasses, func(q repairRequest, respond func(repairAnswer, error)) {
		if q.Tenant == "" || q.Conversation == "" {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		applied, failed, err := p.Repair(ctx, events.ConversationID{Tenant: q.Tenant, ID: q.Conversation})
		if errors.Is(err, ErrFenced) {
			err = fmt.Errorf("%w: %w", ErrElsewhere, err)
		}
		respond(repairAnswer{applied, failed}, err)
	})
	if err != nil {
		p.slog.Warn("other processes cannot request repairs", "partition", partition, "error", err)
		return func() {}
	}
	stopRepairs, stopCleaning := stop, p.answerCleaning(partition)
	return func() {
		stopRepairs()
		stopCleaning()
	}
}

// RequestRepair asks the process that drives a conversation's partition, which may be this one, for
// a [Projector.Repair]. It returns [ErrUnheld] if there is no such process, [ErrElsewhere] if the
// partition is moving, [ErrNotRunning] with the reason if its projector is halted, [ErrTooLarge] if
// the conversation is too large for one transaction of the store (it is then unchanged), and
// [eventlog.ErrLate] after a minute.
func RequestRepair(ctx context.Context, conn *nats.Conn, b Build, partition int, id events.ConversationID) (applied, failed int, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	a, err := eventlog.Ask[repairRequest, repairAnswer](ctx, conn, requestSubject(b, partition), repairClasses, repairRequest{id.Tenant, id.ID})
	if errors.Is(err, eventlog.ErrNoAnswer) {
		return 0, 0, fmt.Errorf("repair %q: %w: partition %d of %s", id.ID, ErrUnheld, partition, b.Projection)
	}
	if errors.Is(err, eventlog.ErrLate) {
		err = fmt.Errorf("repair %q: the process that writes partition %d of %s: %w", id.ID, partition, b.Projection, err)
	}
	return a.Applied, a.Failed, err
}
