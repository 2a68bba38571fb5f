package events

import (
	"errors"
	"fmt"
)

// ErrInvalid is the class of every refusal of this package.
var ErrInvalid = errors.New("invalid event")

// Invalid says which field of an event was refused and why. Field is a CloudEvents attribute
// ("id"), a path into the data ("data.message_id"), or, for anything outside of both, "subject
// token" or "body".
type Invalid struct {
	Field  string
	Reason string
	// TooLarge is set if the whole event is over [MaxEventBytes], or if a batch has too many events; a
	// single field that is too long is only invalid.
	TooLarge bool
}

func (e *Invalid) Error() string { return e.Field + ": " + e.Reason }

// Is makes errors.Is(err, ErrInvalid) true for every *Invalid.
func (e *Invalid) Is(target error) bool { return target == ErrInvalid }

func invalid(field, format string, args ...any) error {
	return &Invalid{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// tooLarge refuses an event whose size is over [MaxEventBytes].
func tooLarge(size int) error {
	return &Invalid{Field: "body", Reason: fmt.Sprintf("is %d bytes long, the limit is %d", size, MaxEventBytes), TooLarge: true}
}
