package summarizer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// Errors that [Ask] returns.
var (
	ErrNobody  = errors.New("no summarizer drives the partition")
	ErrUnknown = errors.New("no such conversation")
	ErrNoModel = errors.New("no model is configured")
	ErrOff     = errors.New("summaries are switched off")
	ErrBusy    = errors.New("the conversation is already being summarized; nothing else was begun")
)

// Request is what [Ask] sends to the summarizer that drives a conversation's partition.
type Request struct {
	Tenant       string `json:"tenant"`
	Conversation string `json:"conversation"`
	// Do is the action: Summarize, Resummarize or Condense.
	Do string `json:"do"`
	// Level and Fallbacks narrow Resummarize: to one level (0 means all), and to summaries
	// that the configured model failed to write.
	Level     int  `json:"level,omitempty"`
	Fallbacks bool `json:"fallbacks,omitempty"`
	// Within limits the time until work begins. After that nothing is done and Ask returns
	// [ErrBusy]. Work that has begun continues.
	Within time.Duration `json:"within,omitempty"`
}

// Actions of a [Request].
const (
	// Summarize writes what is due, then one summary of the rest, even below the threshold.
	Summarize = "summarize"
	// Resummarize writes a new revision of each summary.
	Resummarize = "resummarize"
	// Condense has a model condense large tool results.
	Condense = "condense"
)

// Answer lists what was done.
type Answer struct {
	Written []string `json:"written"`        // summary_ids, or tool_call_ids of condensed results
	Kept    int      `json:"kept,omitempty"` // summaries or results left as they were because the model failed
}

// classes names the errors that [Ask] returns, for sending them over NATS.
var classes = []eventlog.Class{{Name: "unknown", Err: ErrUnknown}, {Name: "no model", Err: ErrNoModel}, {Name: "off", Err: ErrOff}, {Name: "busy", Err: ErrBusy}, {Name: "nobody", Err: ErrNobody}}

// requestSubject is where the summarizer that drives a partition takes requests. It is not
// one of the stream's subjects, so the log does not record requests.
func requestSubject(partition int) string { return "mneme-summarize." + strconv.Itoa(partition) }

// answerPoll is how often a request checks whether its conversation is free.
const answerPoll = 20 * time.Millisecond

// listen serves requests for a partition until stop is called.
func (r *Reactor) listen(ctx context.Context, partition int) (stop func(), err error) {
	return eventlog.Serve(r.Log.Conn(), requestSubject(partition), classes, func(q Request, respond func(Answer, error)) {
		if !r.spawn(func() { respond(r.answer(ctx, q)) }) {
			respond(Answer{}, ErrNobody)
		}
	})
}

// answer handles a request once nothing else works on the conversation.
func (r *Reactor) answer(ctx context.Context, q Request) (a Answer, err error) {
	a.Written = []string{}
	id := events.ConversationID{Tenant: q.Tenant, ID: q.Conversation}
	expired := time.After(q.Within)
	for !r.take(id) {
		select {
		case <-time.After(answerPoll):
		case <-expired:
			return a, ErrBusy
		case <-ctx.Done():
			return a, ErrNobody
		}
	}
	defer r.give(id)
	err = r.do(r.spend(ctx, id.Tenant), id, q, &a)
	if ctx.Err() != nil {
		err = ErrNobody
	}
	return a, err
}

func (r *Reactor) do(ctx context.Context, id events.ConversationID, q Request, a *Answer) error {
	last, _, err := r.Log.Last(ctx, id.Tenant, id.ID) // include what was published just now
	if err == nil {
		err = r.awaitOwn(ctx, id, last)
	}
	if err != nil {
		return err
	}
	c, profile, err := r.look(ctx, id)
	if err != nil {
		return err
	}
	if c.LastSeq == 0 || c.DeletedSeq != 0 {
		return fmt.Errorf("%q: %w", id.ID, ErrUnknown)
	}
	if profile.Off {
		return fmt.Errorf("%q: %w", id.ID, ErrOff)
	}
	switch q.Do {
	case Summarize:
		return r.summarize(ctx, id, a)
	case Resummarize:
		return r.resummarize(ctx, c, profile, q, a)
	case Condense:
		return r.condenseAsked(ctx, c, profile.Condenser, a)
	}
	return fmt.Errorf("unknown action %q", q.Do)
}

// summarize writes what is due, then one forced summary, then what that makes due.
func (r *Reactor) summarize(ctx context.Context, id events.ConversationID, a *Answer) error {
	for forced := false; ctx.Err() == nil; {
		written, done, err := r.next(ctx, id, false)
		if err == nil && done && !forced {
			forced = true
			written, done, err = r.next(ctx, id, true)
		}
		if err != nil || done {
			return err
		}
		if written != "" {
			a.Written = append(a.Written, written)
		}
	}
	return ctx.Err()
}

// Ask sends a request to the summarizer that drives a conversation's partition, in this or
// another process, and waits for its answer. ctx must have a deadline. Ask returns
// [ErrNobody] (also while the partition moves), [ErrUnknown], [ErrNoModel], [ErrOff] or
// [ErrBusy]. Even with an error, the answer lists what was written before it.
func Ask(ctx context.Context, log *eventlog.Log, q Request) (Answer, error) {
	if deadline, ok := ctx.Deadline(); ok {
		q.Within = time.Until(deadline) * 9 / 10 // leaves time for the answer to travel
	}
	partition := log.PartitionOf(q.Tenant, q.Conversation)
	a, err := eventlog.Ask[Request, Answer](ctx, log.Conn(), requestSubject(partition), classes, q)
	if errors.Is(err, eventlog.ErrNoAnswer) {
		err = ErrNobody
	}
	if errors.Is(err, ErrNobody) {
		err = fmt.Errorf("%s %q: %w %d: is summarizer running?", q.Do, q.Conversation, err, partition)
	}
	return a, err
}
