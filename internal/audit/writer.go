package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

// ErrAway means that the audit log takes no entry now.
var ErrAway = errors.New("the audit log takes no entry")

// writeWithin bounds how long one entry may take to be stored.
const writeWithin = 5 * time.Second

// Writer writes entries, one after the other, and reads them. It makes the stream when it is first needed.
type Writer struct {
	js  jetstream.JetStream
	age time.Duration // how long a new stream keeps entries; 0 for the default
}

// NewWriter returns a writer on a connection. The age applies only to a stream that does not exist yet; 0 means
// [natsdeploy.DefaultAuditAge].
func NewWriter(conn *nats.Conn, age time.Duration) (*Writer, error) {
	js, err := jetstream.New(conn)
	return &Writer{js, age}, err
}

// Write stores an entry. It returns [ErrAway].
func (w *Writer) Write(ctx context.Context, e Entry) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	msg := &nats.Msg{Subject: e.subject(), Data: data}
	_, err = w.js.PublishMsg(ctx, msg, jetstream.WithExpectStream(natsdeploy.AuditStream), jetstream.WithRetryAttempts(0))
	if errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) {
		if _, _, err = natsdeploy.ApplyAudit(ctx, w.js, w.age); err == nil {
			_, err = w.js.PublishMsg(ctx, msg, jetstream.WithExpectStream(natsdeploy.AuditStream))
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	return nil
}

// Around stores that an action begins, carries it out, and stores how it ended. If the first entry can't be stored, act
// is not called and the error is [ErrAway]. If the last one can't be stored, only the first remains.
func (w *Writer) Around(ctx context.Context, act func() error, entries ...Entry) error {
	for _, e := range entries {
		e.Time, e.Outcome = time.Now().UTC(), Begun
		if err := w.Write(ctx, e); err != nil {
			return fmt.Errorf("nothing was changed: %w", err)
		}
	}
	err := act()
	for _, e := range entries {
		e.Time, e.Outcome = time.Now().UTC(), Done
		if err != nil {
			e.Outcome = Failed
		}
		if w.Write(context.WithoutCancel(ctx), e) != nil {
			break
		}
	}
	return err
}
