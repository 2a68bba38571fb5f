package summarizer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"mneme/events"
	"mneme/pkg/eventlog"
)

// Errors of [Ask].
var (
	ErrNobody  = errors.New("no summarizer drives the partition")
	ErrUnknown = errors.New("no such conversation")
	ErrNoModel = errors.New("no model is configured")
	ErrOff     = errors.New("nobody is to write summaries")
	ErrBusy    = errors.New("the conversation is being summarised, nothing else was begun")
)

// Request asks the summarizer that drives a conversation's partition for something.
type Request struct {
	Tenant       string `json:"tenant"`
	Conversation string `json:"conversation"`
	// Do is one of the actions.
	Do string `json:"do"`
	// Of Resummarize: only this level, 0 for all, and only summaries that a model was to
	// write and did not.
	Level     int  `json:"level,omitempty"`
	Fallbacks bool `json:"fallbacks,omitempty"`
	// Within is how long it may take until it is begun: else it is not done, and [ErrBusy]
	// says so. Whatever was begun goes on.
	Within time.Duration `json:"within,omitempty"`
}

// What a [Request] can ask for.
const (
	// Summarize writes what is due, and then a summary of whatever the last turns leave.
	Summarize = "summarize"
	// Resummarize writes a new revision of each summary.
	Resummarize = "resummarize"
	// Condense has large results of tools condensed by a model.
	Condense = "condense"
)

// Answer is what was done.
type Answer struct {
	Written []string `json:"written"`        // summary_ids, or tool_call_ids of results
	Kept    int      `json:"kept,omitempty"` // that stay as they were: the model did not write them again
}

// classes are the errors that [Ask] returns.
var classes = []eventlog.Class{{Name: "unknown", Err: ErrUnknown}, {Name: "no model", Err: ErrNoModel}, {Name: "off", Err: ErrOff}, {Name: "busy", Err: ErrBusy}, {Name: "nobody", Err: ErrNobody}}

// requestSubject is where the summarizer that drives a partition takes requests. It lies
// outside of the stream's subjects.
func requestSubject(partition int) string { return "mneme-summarize." + strconv.Itoa(partition) }

// answerPoll is how often a request looks whether its conversation is free.
const answerPoll = 20 * time.Millisecond

// listen takes requests for a partition until stop is called.
func (r *Reactor) listen(ctx context.Context, partition int) (stop func(), err error) {
	return eventlog.Serve(r.Log.Conn(), requestSubject(partition), classes, func(q Request, respond func(Answer, error)) {
		if !r.spawn(func() { respond(r.answer(ctx, q)) }) {
			respond(Answer{}, ErrNobody)
		}
	})
}

// answer does what is asked for, when nobody else works on the conversation.
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
	err = r.do(ctx, id, q, &a)
	if ctx.Err() != nil {
		err = ErrNobody
	}
	return a, err
}

func (r *Reactor) do(ctx context.Context, id events.ConversationID, q Request, a *Answer) error {
	last, _, err := r.Log.Last(ctx, id.Tenant, id.ID) // what was just published belongs to it
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
	return fmt.Errorf("%q is nothing that can be done", q.Do)
}

// summarize writes what is due, then what is forced, then what that made due.
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

// Ask asks the summarizer that drives a conversation's partition, which may be in another
// process, and waits for its answer as long as ctx allows, which must have a deadline. It
// returns [ErrNobody], also while the partition moves, [ErrUnknown], [ErrNoModel], [ErrOff]
// or [ErrBusy]; beside an error the answer says what was written before.
func Ask(ctx context.Context, log *eventlog.Log, q Request) (Answer, error) {
	if deadline, ok := ctx.Deadline(); ok {
		q.Within = time.Until(deadline) * 9 / 10 // an answer takes a moment too
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
