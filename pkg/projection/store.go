package projection

import (
	"context"
	"io"

	"mneme.dev/mneme/events"
)

// Checkpoint is the position of one partition in a read model, together with the engine's other
// data on the partition.
type Checkpoint struct {
	Partition   int
	Epoch       uint64        // grows with each take-over; the newest owner has the highest
	Seq         uint64        // last sequence applied, 0 = none
	Event       events.Digest // fingerprint of the message at Seq
	Fingerprint string        // of the declaration that built the read model
	Applied     uint64        // events that changed the read model
	Duplicates  uint64        // known events that were dropped
	Halted      string        // why the partition's owner halted, "" if it did not
	Repairs     uint64        // conversations that were dropped, so that earlier reads may be outdated; filled only by Checkpoints
}

// Class says why an event was skipped.
type Class string

const (
	ClassInvalid Class = "invalid" // the event breaks a rule
	ClassError   Class = "error"   // a reducer or the store could not apply it
)

// Failed is an event that a projection skipped, with the reason. The log still has it; repairing
// its conversation tries it again.
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
	Tenant       string // "" means all, including events whose tenant could not be read
	Conversation string // "" means all; otherwise Tenant must be set too
	Class        Class  // "" means all
	After        uint64 // only sequences above this one
	Limit        int
}

// Claim reserves an identity for an event: the event's own, or its payload's. The first event that
// is applied keeps its keys. A refused event holds none, so it takes nothing away from later ones.
type Claim struct {
	Conversation events.ConversationID
	Key          events.Digest
	Content      events.Digest
	Seq          uint64
}

// Store is one projection's read model in one backend, as the engine sees it. All its errors follow the contract in the
// package comment. The engine never calls Close; the code that opened the store does.
type Store[U Unit] interface {
	// Acquire takes over a partition: in one transaction it raises the epoch, which fences every
	// earlier owner, and reads the checkpoint. The fingerprint is stored with the first checkpoint.
	// If another fingerprint is there, Acquire changes nothing, because its owner may be healthy,
	// and returns [OtherBuild].
	Acquire(ctx context.Context, partition int, fingerprint string) (Checkpoint, error)
	// Update runs fn in one transaction of a partition and commits if it returns nil. A backend may
	// run fn again after a disturbed transaction.
	Update(ctx context.Context, partition int, fn func(Tx[U]) error) error
	// Halt records why the partition's projector halted. An empty reason clears the record. It is
	// refused with ErrFenced if epoch is not the newest.
	Halt(ctx context.Context, partition int, epoch uint64, reason string) error
	ReadStore
	io.Closer
}

// Tx is one transaction of a store, for one partition.
type Tx[U Unit] interface {
	// Checkpoint locks the partition against other owners and reads its position.
	Checkpoint(ctx context.Context) (Checkpoint, error)
	// Load prepares the unit of work for these events. It creates nothing.
	Load(ctx context.Context, list []*events.Recorded) (U, error)
	// Claim takes keys for events, in sequence order. The claims of one event are adjacent; it gets
	// all of its keys if all are free, else none. Claim returns, by index, who else holds a key. An
	// earlier event of the same list counts as a holder.
	Claim(ctx context.Context, claims []Claim) (map[int]Claim, error)
	// Save writes the changes of the unit.
	Save(ctx context.Context, u U) error
	// Fail records skipped events. A sequence that already has a record keeps it.
	Fail(ctx context.Context, failed []Failed) error
	// Drop deletes all rows of a conversation in this projection, including its claims, its failed
	// events and its tombstone. It alone increases Checkpoint.Repairs.
	Drop(ctx context.Context, id events.ConversationID) error
	// Advance stores the checkpoint.
	Advance(ctx context.Context, cp Checkpoint) error
}

// ReadStore is the part of a read model that anyone may read, whatever the projection.
type ReadStore interface {
	// Checkpoints lists the partitions that were ever acquired, by number.
	Checkpoints(ctx context.Context) ([]Checkpoint, error)
	// Failed lists failed events, oldest first.
	Failed(ctx context.Context, q FailedQuery) ([]Failed, error)
	// CountFailed counts failed events by class.
	CountFailed(ctx context.Context) (map[Class]int, error)
	// Holders returns who holds these keys, by index; free keys are left out. In a deleted
	// conversation the tombstone holds every key, with an empty Content.
	Holders(ctx context.Context, claims []Claim) (map[int]Claim, error)
	// Hashes yields the hash of each conversation, sorted by tenant and id. A hash depends on event
	// identities and their order within the conversation, not on sequences: equal events give equal
	// hashes in every backend and after every import.
	Hashes(ctx context.Context, yield func(ConversationHash) error) error
	// Hash returns the hash of one conversation, or a zero Hash if it has no row.
	Hash(ctx context.Context, id events.ConversationID) (ConversationHash, error)
}

// ConversationHash is the hash of one conversation's rows in one projection.
type ConversationHash struct {
	Conversation events.ConversationID
	LastSeq      uint64
	Hash         events.Digest
}
