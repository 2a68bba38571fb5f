package projection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mneme.dev/mneme/events"
)

// Errors by which a store steers the engine; see the package comment.
var (
	ErrFenced   = errors.New("another process has taken over this partition")
	ErrRejected = errors.New("the store refuses this data")
	ErrTooLarge = errors.New("the batch is too large for the store")
	ErrRebuild  = errors.New("rebuild needed")
	// ErrInvalid is what a reducer returns of an event that breaks a rule, before it has
	// changed anything: the event is listed with that class.
	ErrInvalid = errors.New("invalid")
	// ErrUnavailable is trouble of a store whose server does not answer now.
	ErrUnavailable = errors.New("the store does not answer")
	// ErrDisk is trouble of a store that could not write or read its files: the disk is
	// full, a limit is reached, or the hardware fails. It passes once the disk is well.
	ErrDisk = errors.New("the disk is full or fails")
	// ErrDamaged says that a read model can't be read any more. It does not pass; a
	// rebuild replaces the read model. The error is a [*DamagedError].
	ErrDamaged = errors.New("the read model is damaged")
)

// DamagedError is [ErrDamaged] of one read model, with the remedy.
type DamagedError struct {
	Projection string // "" if it is a cache that belongs to no generation
	Err        error  // what the store found
}

// Error names the read model, the remedy and the cause.
func (e *DamagedError) Error() string { return fmt.Sprintf("%s: %v", e.Summary(), e.Err) }

// Summary is the error without its cause, which may name files of the server.
func (e *DamagedError) Summary() string {
	if e.Projection == "" {
		return "a cache of the read models is damaged; restart the program that writes it, which makes an empty one"
	}
	return fmt.Sprintf("the read model %s is damaged; mneme rebuild %s makes it again from the log", e.Projection, e.Projection)
}

// Is makes the error ErrDamaged.
func (e *DamagedError) Is(target error) bool { return target == ErrDamaged }

// Unwrap is the cause.
func (e *DamagedError) Unwrap() error { return e.Err }

// OtherBuild is [ErrRebuild] for a read model that was built by another declaration than
// this program has.
func OtherBuild(projection, built, mine string) error {
	return fmt.Errorf("%w: mneme rebuild %s (it was built as %s, this program makes %s)", ErrRebuild, projection, built, mine)
}

// Unit is a unit of work: the state that a store loaded for one batch, and the
// changes that reducers made to it.
type Unit interface {
	// Tombstone is the sequence of the event that deleted a conversation, 0 if it
	// is not deleted. It must follow the changes made to the unit.
	Tombstone(events.ConversationID) uint64
}

// Reducer applies one event to a unit of work. It must be pure and must not keep
// the event. An error means that this event can't be applied, now or ever; the
// unit is then thrown away and the batch is reduced again without the event. An error
// that is [ErrInvalid] says that the unit is as it was: so all such events of a batch are
// found before that.
type Reducer[U Unit] func(u U, e *events.Recorded) error

// Projection declares a read model.
type Projection[U Unit] struct {
	// Name is short and stable: it names files, labels and metrics.
	Name string
	// Version counts the shapes of the read model. Another version is built anew.
	Version int
	// Settings is the fingerprint of what reducers depend on beside the event.
	// Settings that only affect reading don't belong here.
	Settings string
	// Reducers by event type. Events of other types move the checkpoint only.
	Reducers map[string]Reducer[U]
	// Prepare, unless it is nil, does with the events of a batch what takes long and must
	// not hold up a transaction, such as calls to another server. What it returns gives
	// the results to a unit of work that was loaded for the batch. Its errors steer the
	// engine as those of a store do; when it is tried again, or with a part of the events,
	// Prepare is called again.
	Prepare func(ctx context.Context, list []*events.Recorded) (give func(U), err error)
}

// Fingerprint tells by which declaration a read model was built. It is stored
// beside the checkpoint; another one at start is [ErrRebuild].
func (p *Projection[U]) Fingerprint() string {
	d := events.DigestOf(p.Name, strconv.Itoa(p.Version), p.Settings, strings.Join(p.Types(), " "))
	return fmt.Sprintf("%s/v%d/%s", p.Name, p.Version, d.String()[:8])
}

// Types lists the event types that the projection reduces, sorted.
func (p *Projection[U]) Types() []string {
	types := make([]string, 0, len(p.Reducers))
	for t := range p.Reducers {
		types = append(types, t)
	}
	slices.Sort(types)
	return types
}

// Validate finds mistakes in a declaration: no name, no version, a type that is
// neither in the vocabulary nor foreign (see [events.IsForeign]).
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
