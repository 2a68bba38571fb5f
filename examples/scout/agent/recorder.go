package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// Recorder publishes what an agent does in one conversation, one event for each action, as
// it happens. Every method returns the event's sequence in the log. The log has the event
// only if the error is nil.
//
// A Recorder is for one agent: its methods must not be called concurrently.
type Recorder struct {
	Log          *eventlog.Log
	Tenant       string
	Conversation string
	Source       string // the program, a URI reference; part of every event's identity
	Session      string // this run of the program

	message string // the assistant message that makes the next calls
}

// Connect opens mneme's log at a NATS address. To close it, close its connection:
// log.Conn().Close().
func Connect(ctx context.Context, url string) (*eventlog.Log, error) {
	conn, err := nats.Connect(url, nats.Name("scout"), nats.Timeout(2*time.Second))
	if err != nil {
		return nil, fmt.Errorf("cannot reach NATS at %s (%w): start mneme with `make run` or `mneme up`, or name another server", url, err)
	}
	log, err := eventlog.Open(ctx, conn)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("NATS at %s holds no log of mneme (%w): start mneme with `make run` or `mneme up`", url, err)
	}
	return log, nil
}

// NewRecorder returns a recorder for one conversation; an empty id starts a new one.
func NewRecorder(log *eventlog.Log, tenant, conversation string) *Recorder {
	if conversation == "" {
		conversation = ulid.Make().String()
	}
	return &Recorder{Log: log, Tenant: tenant, Conversation: conversation, Source: "example/scout", Session: ulid.Make().String()}
}

// Last returns the sequence of the conversation's newest event, 0 if it is new.
func (r *Recorder) Last(ctx context.Context) (uint64, error) {
	seq, _, err := r.Log.Last(ctx, r.Tenant, r.Conversation)
	return seq, err
}

// Started describes a new conversation. It is optional and must be the first event.
func (r *Recorder) Started(ctx context.Context, about events.ConversationStarted) (uint64, error) {
	return r.publish(ctx, "started", &about)
}

// User records a message of the user, which begins a turn.
func (r *Recorder) User(ctx context.Context, text string) (uint64, error) {
	return r.say(ctx, events.MessageCreated{Role: "user", Content: text})
}

// Assistant records a message of the agent: before its next calls, or as its answer.
// References are the pieces of code that it mentions.
func (r *Recorder) Assistant(ctx context.Context, text, reasoning string, references ...events.Reference) (uint64, error) {
	return r.say(ctx, events.MessageCreated{Role: "assistant", Content: text, Reasoning: reasoning, References: references})
}

// Call records that the agent calls a tool, before the tool runs. The id is the call's id
// from your model's API; arguments are any value that encodes as JSON.
func (r *Recorder) Call(ctx context.Context, id, tool string, arguments any) (uint64, error) {
	text, err := json.Marshal(arguments)
	if err != nil {
		return 0, fmt.Errorf("arguments of %s: %w", tool, err)
	}
	called := events.ToolCalled{ToolCallID: id, MessageID: r.message, ToolName: tool, Arguments: text}
	return r.publish(ctx, called.Key(), &called)
}

// Return records the result of a call as the agent reads it: a string or any value that
// encodes as JSON. A failure is a result too; without a result the error's text is used.
func (r *Recorder) Return(ctx context.Context, id string, result any, failure error, took time.Duration) (uint64, error) {
	if result == nil && failure != nil {
		result = failure.Error()
	}
	text, err := json.Marshal(result)
	if err != nil {
		return 0, fmt.Errorf("result of call %s: %w", id, err)
	}
	success, ms := failure == nil, float64(took.Microseconds())/1000
	returned := events.ToolReturned{ToolCallID: id, Success: &success, Result: events.JSONResult(text), DurationMS: &ms}
	if failure != nil {
		returned.Error = failure.Error()
	}
	return r.publish(ctx, returned.Key(), &returned)
}

func (r *Recorder) say(ctx context.Context, m events.MessageCreated) (uint64, error) {
	m.MessageID, m.Session = ulid.Make().String(), r.Session
	r.message = m.MessageID
	return r.publish(ctx, m.Key(), &m)
}

// publishTries is how often publishing an event is tried. Repeating it is harmless, because
// log and read models recognize the event by its id.
const publishTries = 3

func (r *Recorder) publish(ctx context.Context, id string, payload events.Payload) (uint64, error) {
	event, err := events.New(r.Conversation, r.Source, id, payload)
	if err != nil {
		return 0, fmt.Errorf("record %s: %w", payload.EventType(), err)
	}
	event.Time = time.Now()
	for try := 1; ; try++ {
		ack, err := r.Log.Publish(ctx, r.Tenant, event)
		switch {
		case err == nil:
			return ack.Seq, nil
		case try == publishTries, ctx.Err() != nil,
			errors.Is(err, events.ErrInvalid), errors.Is(err, eventlog.ErrFull), errors.Is(err, eventlog.ErrTooLarge):
			return 0, fmt.Errorf("record %s: %w", payload.EventType(), err)
		}
	}
}
