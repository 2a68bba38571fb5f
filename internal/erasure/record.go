package erasure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

// recordKey is the key of the record in the bucket AGENT_CONTROL. There is one: erasures come one at
// a time.
const recordKey = "erasure"

// State is the progress of an erasure.
type State string

// The states, in order; see the package comment.
const (
	Marking     State = "marking"
	Waiting     State = "waiting"
	Overwriting State = "overwriting"
	Cleaning    State = "cleaning"
	Done        State = "done"
)

// Record is an erasure as the bucket holds it.
type Record struct {
	ID     string `json:"id"`
	State  State  `json:"state"`
	Doing  string `json:"doing,omitempty"` // what it waits for, or its last error
	Todo   uint64 `json:"todo"`            // events to erase, as far as known
	Report Report `json:"report"`

	// The messages that are being overwritten: their batch in the log, and their sequences.
	Batch     uint64   `json:"batch,omitempty"`
	Sequences []uint64 `json:"sequences,omitempty"`
	Server    string   `json:"server,omitempty"` // the running NATS server that overwrites them

	Rounds int `json:"rounds,omitempty"` // how often new events were found after the stores were cleaned

	revision uint64
}

// Running reports whether something is left to do.
func (r *Record) Running() bool { return r.ID != "" && r.State != Done }

// Erased counts the events that were erased so far.
func (r *Record) Erased() uint64 { return r.Report.total() - uint64(len(r.Sequences)) }

// ErrRunning means that another erasure runs.
var ErrRunning = errors.New("an erasure is running")

// ErrUnreadable means that the record was not written by mneme, or is damaged. It is not ignored, because it may name
// messages that are half erased.
var ErrUnreadable = errors.New("the record of the erasure can't be read")

// errChanged means that another process has changed the record.
var errChanged = errors.New("another process is carrying out the erasure")

// records reads and writes the record.
type records struct{ js jetstream.JetStream }

// get reads the record; it is zero if there is none. It returns [ErrUnreadable].
func (s records) get(ctx context.Context) (r Record, err error) {
	bucket, err := natsdeploy.ApplyControl(ctx, s.js)
	if err != nil {
		return r, err
	}
	entry, err := bucket.Get(ctx, recordKey)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("read the record of the erasure: %w", err)
	}
	if err := json.Unmarshal(entry.Value(), &r); err != nil || r.ID == "" {
		return Record{}, fmt.Errorf("%w: something other than mneme wrote %s to the bucket %s: delete it with `nats kv del %s %s`, and erase again if an erasure was running", ErrUnreadable, recordKey, natsdeploy.ControlBucket, natsdeploy.ControlBucket, recordKey)
	}
	r.revision = entry.Revision()
	return r, nil
}

// put writes the record, unless another process has changed it since it was read.
func (s records) put(ctx context.Context, r *Record) error {
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	bucket, err := natsdeploy.ApplyControl(ctx, s.js)
	if err != nil {
		return err
	}
	revision := uint64(0)
	if r.revision == 0 {
		revision, err = bucket.Create(ctx, recordKey, value)
	} else {
		revision, err = bucket.Update(ctx, recordKey, value, r.revision)
	}
	if natsdeploy.IsConflict(err) {
		return errChanged
	}
	if err != nil {
		return fmt.Errorf("write the record of the erasure: %w", err)
	}
	r.revision = revision
	return nil
}
