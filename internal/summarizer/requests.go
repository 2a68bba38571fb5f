package summarizer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"mneme/events"
	"mneme/pkg/eventlog"
)

// Errors of [Ask].
var (
	ErrNobody  = errors.New("no summarizer drives the partition")
	ErrUnknown = errors.New("no such conversation")
	ErrNoModel = errors.New("no model is configured")
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
	Written []string `json:"written"`         // summary_ids, or tool_call_ids of results
	Kept    int      `json:"kept,omitempty"`  // that stay as they were: the model did not write them again
	Error   string   `json:"error,omitempty"` // what ended it; what was written before is written
	Class   string   `json:"class,omitempty"`
}

const (
	classUnknown = "unknown"
	classNoModel = "no model"
)

// requestSubject is where the summarizer that drives a partition takes requests. It lies
// outside of the stream's subjects.
func requestSubject(partition int) string { return "mneme-summarize." + strconv.Itoa(partition) }

// answerPoll is how often a request looks whether its conversation is free.
const answerPoll = 20 * time.Millisecond

// listen takes requests for a partition until stop is called.
func (r *Reactor) listen(ctx context.Context, partition int) (stop func(), err error) {
	sub, err := r.Log.Conn().Subscribe(requestSubject(partition), func(m *nats.Msg) {
		var request Request
		if json.Unmarshal(m.Data, &request) != nil {
			return
		}
		r.spawn(func() {
			a := r.answer(ctx, request)
			if raw, err := json.Marshal(a); err == nil && ctx.Err() == nil {
				_ = m.Respond(raw)
			}
		})
	})
	if err != nil {
		return nil, err
	}
	return func() { _ = sub.Unsubscribe() }, nil
}

// answer does what is asked for, when nobody else works on the conversation.
func (r *Reactor) answer(ctx context.Context, q Request) (a Answer) {
	a.Written = []string{}
	id := events.ConversationID{Tenant: q.Tenant, ID: q.Conversation}
	for !r.take(id) {
		select {
		case <-time.After(answerPoll):
		case <-ctx.Done():
			return a
		}
	}
	defer r.give(id)
	err := r.do(ctx, id, q, &a)
	if err != nil {
		a.Error = err.Error()
	}
	switch {
	case errors.Is(err, ErrUnknown):
		a.Class = classUnknown
	case errors.Is(err, ErrNoModel):
		a.Class = classNoModel
	}
	return a
}

func (r *Reactor) do(ctx context.Context, id events.ConversationID, q Request, a *Answer) error {
	c, profile, err := r.look(ctx, id)
	if err != nil {
		return err
	}
	if c.LastSeq == 0 || c.DeletedSeq != 0 {
		return fmt.Errorf("%q: %w", id.ID, ErrUnknown)
	}
	switch q.Do {
	case Summarize:
		return r.summarize(ctx, id, a)
	case Resummarize:
		return r.resummarize(ctx, c, profile, q, a)
	case Condense:
		return r.condense(ctx, c, profile, manualResults, a)
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

// take marks a conversation as worked on, unless it is.
func (r *Reactor) take(id events.ConversationID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running[id] {
		return false
	}
	r.running[id] = true
	return true
}

// give ends what take began.
func (r *Reactor) give(id events.ConversationID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, id)
	if _, ok := r.dirty[id]; !ok {
		r.dirty[id] = time.Now() // what came meanwhile
	}
}

// Ask asks the summarizer that drives a conversation's partition, which may be in another
// process, and waits for its answer as long as ctx allows. It returns [ErrNobody],
// [ErrUnknown] or [ErrNoModel]; of another error the answer says what was written before.
func Ask(ctx context.Context, log *eventlog.Log, q Request) (a Answer, err error) {
	partition := log.PartitionOf(q.Tenant, q.Conversation)
	body, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	reply, err := log.Conn().RequestWithContext(ctx, requestSubject(partition), body)
	if errors.Is(err, nats.ErrNoResponders) {
		return a, fmt.Errorf("%s %q: %w %d: is summarizer running?", q.Do, q.Conversation, ErrNobody, partition)
	}
	if err != nil {
		return a, fmt.Errorf("%s %q: %w", q.Do, q.Conversation, err)
	}
	if err := json.Unmarshal(reply.Data, &a); err != nil {
		return a, fmt.Errorf("%s %q: the answer: %w", q.Do, q.Conversation, err)
	}
	switch {
	case a.Error == "":
		return a, nil
	case a.Class == classUnknown:
		return a, &remoteError{a.Error, ErrUnknown}
	case a.Class == classNoModel:
		return a, &remoteError{a.Error, ErrNoModel}
	}
	return a, errors.New(a.Error)
}

// remoteError is an error of another process.
type remoteError struct {
	text  string
	class error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.class }
