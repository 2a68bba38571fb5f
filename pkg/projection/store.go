package projection

import (
	"context"

	"mneme.dev/mneme/events"
)

// Checkpoint is the position of one partition in a read model, with what the
// engine keeps beside it.
type Checkpoint struct {
	Partition   int
	Epoch       uint64        // grows with each take-over; the newest owner's is the greatest
	Seq         uint64        // last sequence applied, 0 = none
	Event       events.Digest // fingerprint of the message at Seq
	Fingerprint string        // of the declaration that built the read model
	Applied     uint64        // events that changed the read model
	Duplicates  uint64        // known events that were dropped
	Halted      string        // why the partition's owner stopped for good, "" if it did not
	Repairs     uint64        // conversations that were dropped: what was read before may be otherwise; said by Checkpoints alone
}

// Class says why an event was skipped.
type Class string

const (
	ClassInvalid Class = "invalid" // the event breaks a rule
	ClassError   Class = "error"   // a reducer or the store could not take it
)

// Failed is an event that a projection skipped, with the reason. The log still
// has it; repairing its conversation tries it again.
type Failed struct {
	Projection   string                `json:"projection"`
	Seq          uint64                `json:"seq"`
	Conversation events.ConversationID `json:"conversation"` // empty if the subject could not be read
	EventID      string                `json:"event_id"`
	Type         string                `json:"type"`
	Class        Class                 `json:"class"`
	Reason       string                `json:"reason"`
}

// FailedQuery selects failed events.
type FailedQuery struct {
	Tenant       string // "" means all, and those whose tenant could not be read
	Conversation string // "" means all; one of the tenant, which must be named then
	Class        Class  // "" means all
	After        uint64 // only sequences above this one
	Limit        int
}

// Claim takes an identity for an event: its own, or that of its payload. The
// first event that is applied keeps its keys; an event that is refused holds none,
// so it takes nothing away from those that come after it.
type Claim struct {
	Conversation events.ConversationID
	Key          events.Digest
	Content      events.Digest
	Seq          uint64
}

// Store is one projection's read model in one backend, as the engine sees it.
// All its errors follow the contract in the package comment.
type Store[U Unit] interface {
	// Acquire takes over a partition: in one transaction it raises the epoch, which
	// fences every earlier owner, and reads the checkpoint. The fingerprint is stored
	// with the first checkpoint; if another one is there Acquire changes nothing, since
	// its owner may be well, and returns [OtherBuild].
	Acquire(ctx context.Context, partition int, fingerprint string) (Checkpoint, error)
	// Update runs fn in one transaction of a partition and commits if it returns nil.
	// A backend may run fn again if its transaction was disturbed.
	Update(ctx context.Context, partition int, fn func(Tx[U]) error) error
	// Halt records why the partition's projector stopped for good. An empty reason
	// clears it. It is refused with ErrFenced if epoch is not the newest.
	Halt(ctx context.Context, partition int, epoch uint64, reason string) error
	ReadStore
}

// Tx is one transaction of a store, for one partition.
type Tx[U Unit] interface {
	// Checkpoint locks the partition against other owners and reads its position.
	Checkpoint(ctx context.Context) (Checkpoint, error)
	// Load prepares the unit of work for these events. It creates nothing.
	Load(ctx context.Context, list []*events.Recorded) (U, error)
	// Claim takes keys for events, in order of their sequences. The claims of one
	// event stand side by side; it gets all of its keys if all are free, else none.
	// Claim returns, by index, who else holds a key. An earlier event of the same
	// list counts.
	Claim(ctx context.Context, claims []Claim) (map[int]Claim, error)
	// Save writes the changes of the unit.
	Save(ctx context.Context, u U) error
	// Fail lists skipped events. A sequence that is listed already stays as it is.
	Fail(ctx context.Context, failed []Failed) error
	// Drop deletes all rows of a conversation in this projection, its claims, its
	// failed events and its tombstone among them, and counts that in Checkpoint.Repairs,
	// which nothing else changes.
	Drop(ctx context.Context, id events.ConversationID) error
	// Advance stores the checkpoint.
	Advance(ctx context.Context, cp Checkpoint) error
}

// ReadStore is what anyone may ask a read model, whatever the projection.
type ReadStore interface {
	// Checkpoints lists the partitions that were ever acquired, by number.
	Checkpoints(ctx context.Context) ([]Checkpoint, error)
	// Failed lists failed events, oldest first.
	Failed(ctx context.Context, q FailedQuery) ([]Failed, error)
	// CountFailed counts failed events by class.
	CountFailed(ctx context.Context) (map[Class]int, error)
	// Holders returns who holds these keys, by index; free keys are left out. In a
	// deleted conversation the tombstone holds every key, without a Content.
	Holders(ctx context.Context, claims []Claim) (map[int]Claim, error)
	// Hashes yields the hash of each conversation, sorted by tenant and id. Hashes
	// are made from event identities and the order within the conversation, not
	// from sequences: equal events give equal hashes in every backend and after
	// every import.
	Hashes(ctx context.Context, yield func(ConversationHash) error) error
	// Hash is the hash of one conversation; a zero Hash if there is no row of it.
	Hash(ctx context.Context, id events.ConversationID) (ConversationHash, error)
}

// ConversationHash is the hash of one conversation's rows in one projection.
type ConversationHash struct {
	Conversation events.ConversationID
	LastSeq      uint64
	Hash         events.Digest
}
