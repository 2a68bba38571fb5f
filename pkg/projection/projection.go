package projection

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"mneme.dev/mneme/events"
)

// Errors by which a store steers the engine; see the package comment.
var (
	ErrFenced   = errors.New("another process has taken over this partition")
	ErrRejected = errors.New("the store refuses this data")
	ErrTooLarge = errors.New("the batch is too large for the store")
	ErrRebuild  = errors.New("rebuild needed")
	// ErrInvalid is returned by a reducer, before it has changed anything, for an event
	// that breaks a rule. The event is recorded as failed with class invalid.
	ErrInvalid = errors.New("invalid")
	// ErrUnavailable means that the store's server does not answer at the moment.
	ErrUnavailable = errors.New("the store does not answer")
	// ErrDisk means that a store could not write or read its files: the disk is full, a
	// limit is reached, or the hardware fails. Retries succeed once the disk works again.
	ErrDisk = errors.New("the disk is full or fails")
	// ErrDamaged means that a read model can no longer be read. A retry does not help; a
	// rebuild replaces the read model. The error is a [*DamagedError].
	ErrDamaged = errors.New("the read model is damaged")
)

// DamagedError is [ErrDamaged] of one read model, with the remedy.
type DamagedError struct {
	Projection string // "" for a cache that belongs to no generation
	Err        error  // the cause that the store found
}

// Error returns the text: the read model, the remedy and the cause.
func (e *DamagedError) Error() string { return fmt.Sprintf("%s: %v", e.Summary(), e.Err) }

// Summary returns the text without the cause, which may name files of the server.
func (e *DamagedError) Summary() string {
	if e.Projection == "" {
		return "a cache of the read models is damaged; restart the program that writes it: it creates an empty one"
	}
	return fmt.Sprintf("the read model %s is damaged; mneme rebuild %s rebuilds it from the log", e.Projection, e.Projection)
}

// Is makes errors.Is(e, ErrDamaged) true.
func (e *DamagedError) Is(target error) bool { return target == ErrDamaged }

// Unwrap returns the cause.
func (e *DamagedError) Unwrap() error { return e.Err }

// OtherBuild returns [ErrRebuild] with the remedy, for a read model that was built from
// another declaration than this program has.
func OtherBuild(projection, built, mine string) error {
	return fmt.Errorf("%w: mneme rebuild %s (it was built as %s, this program makes %s)", ErrRebuild, projection, built, mine)
}

// Unit is a unit of work: the state that a store loaded for one batch, and the changes
// that reducers made to it. A struct that embeds [States] is one.
type Unit interface {
	// Tombstone returns the sequence of the event that deleted a conversation, 0 if it is
	// not deleted. Deletions made in this unit must show at once.
	Tombstone(events.ConversationID) uint64
}

// Reducer applies one event to a unit of work. It must be pure and must not keep or change the
// event, which other projections see too. An error means that this event can never be applied: the engine discards the unit
// and reduces the batch again without the event. With [ErrInvalid] the reducer promises
// that it left the unit unchanged, so the engine continues with the rest of the batch first
// and finds all invalid events in one pass.
type Reducer[U Unit] func(u U, e *events.Recorded) error

// Projection declares a read model.
type Projection[U Unit] struct {
	// Name is short and stable: it names files, labels and metrics.
	Name string
	// Version counts the shapes of the read model. A change needs a rebuild.
	Version int
	// Settings is a fingerprint of everything besides the event that reducers depend on.
	// Settings that affect only reads don't belong here.
	Settings string
	// Reducers by event type. Events of other types only move the checkpoint.
	Reducers map[string]Reducer[U]
	// Gather is how long a projector waits after a batch that was not full, so that more events share the next one. Set
	// it for a read model that nobody reads within a second: its batches then cost the other projections less.
	Gather time.Duration
	// Derive, if not nil, does the expensive part of the work on one event that depends on
	// nothing but the event. The engine calls the returned give, which may be nil, with the
	// unit loaded for each attempt, before the reducers. Derive runs outside of the
	// transaction, on several goroutines at once, while earlier events are applied, and
	// not again for a retry. Like a reducer it must be pure and must not change or keep the event. If it
	// panics, the reducer gets nothing.
	Derive func(e *events.Recorded) (give func(U))
	// Prepare, if not nil, does the slow work for the events of a batch before the
	// transaction, such as calls to another server. The engine calls the returned give with
	// the unit loaded for the batch. The engine treats errors of Prepare like errors of a
	// store, and calls Prepare again for each retry and each part of a split batch.
	Prepare func(ctx context.Context, list []*events.Recorded) (give func(U), err error)
}

// Fingerprint identifies the declaration that a read model was built from. It is stored
// with the checkpoint; if the stored one differs at start, the projector halts with
// [ErrRebuild].
func (p *Projection[U]) Fingerprint() string {
	d := events.DigestOf(p.Name, strconv.Itoa(p.Version), p.Settings, strings.Join(p.Types(), " "))
	return fmt.Sprintf("%s/v%d/%s", p.Name, p.Version, d.String()[:8])
}

// Types lists the event types that the projection reduces, sorted.
func (p *Projection[U]) Types() []string { return slices.Sorted(maps.Keys(p.Reducers)) }

// Validate returns an error for a declaration without a name or version, or with an event
// type that is neither one of [events.Types] nor foreign (see [events.IsForeign]).
func (p *Projection[U]) Validate() error {
	if p.Name == "" || strings.Trim(p.Name, "abcdefghijklmnopqrstuvwxyz-") != "" {
		return fmt.Errorf("projection name %q: only lower-case letters and hyphens", p.Name)
	}
	if p.Version < 1 {
		return fmt.Errorf("projection %s: version %d, the first is 1", p.Name, p.Version)
	}
	for _, t := range p.Types() {
		if !slices.Contains(events.Types(), t) && !events.IsForeign(t) {
			return fmt.Errorf("projection %s: unknown event type %q", p.Name, t)
		}
	}
	return nil
}
