package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
)

// ErrNoAnswer is returned for a request on a subject that no process answers.
var ErrNoAnswer = errors.New("no process answers")

// ErrLate is returned for a request that a process took, or NATS lost, and that was not answered in time. It is a
// context.DeadlineExceeded too.
var ErrLate = errors.New("another process of mneme did not answer in time")

// Class is an error that keeps its identity between processes: errors.Is gives the same result on
// both sides. The error's text is always sent in full.
type Class struct {
	Name string // as it is sent
	Err  error
}

// reply is the answer to a request.
type reply[A any] struct {
	Answer A      `json:"answer"`
	Error  string `json:"error,omitempty"`
	Class  string `json:"class,omitempty"`
}

// remoteError is an error of another process.
type remoteError struct {
	text string
	of   error // nil if it has no class
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.of }

// Serve answers requests on a subject, which must be outside of the stream's subjects, until stop
// is called. Requests come one at a time; a handler that takes long should respond later, from
// another goroutine. Messages that are not requests of this kind get no answer.
func Serve[Q, A any](conn *nats.Conn, subject string, classes []Class, take func(q Q, respond func(a A, err error))) (stop func(), err error) {
	sub, err := conn.Subscribe(subject, func(m *nats.Msg) {
		var q Q
		if json.Unmarshal(m.Data, &q) != nil {
			return
		}
		take(q, func(a A, err error) {
			out := reply[A]{Answer: a}
			if err != nil {
				out.Error = err.Error()
				for _, c := range classes {
					if errors.Is(err, c.Err) {
						out.Class = c.Name
						break
					}
				}
			}
			if raw, err := json.Marshal(out); err == nil {
				_ = m.Respond(raw) // a client that misses it asks again
			}
		})
	})
	if err != nil {
		return nil, err
	}
	return func() { _ = sub.Unsubscribe() }, nil
}

// Ask sends a request to the process that serves a subject and waits as long as ctx allows. It
// returns [ErrNoAnswer], [ErrLate], the other process's error (with its class), or an error of the connection.
// The other process's error may come with an answer.
func Ask[Q, A any](ctx context.Context, conn *nats.Conn, subject string, classes []Class, q Q) (a A, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	m, err := conn.RequestWithContext(ctx, subject, body)
	if errors.Is(err, nats.ErrNoResponders) {
		return a, ErrNoAnswer
	}
	if isTimeout(err) {
		return a, fmt.Errorf("ask on %s: %w: %w", subject, ErrLate, err)
	}
	if err != nil {
		return a, fmt.Errorf("ask on %s: %w", subject, err)
	}
	var in reply[A]
	if err := json.Unmarshal(m.Data, &in); err != nil {
		return a, fmt.Errorf("the answer on %s: %w", subject, err)
	}
	if in.Error == "" {
		return in.Answer, nil
	}
	remote := &remoteError{text: in.Error}
	for _, c := range classes {
		if c.Name == in.Class {
			remote.of = c.Err
		}
	}
	return in.Answer, remote
}
