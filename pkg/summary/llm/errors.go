package llm

import (
	"context"
	"errors"
	"time"

	"mneme.dev/mneme/pkg/summary"
)

// Class is why there was no answer. It is a label of metrics: there are few, and they
// keep their names.
type Class string

// The classes. Up to ClassCanceled the same input may succeed later.
const (
	ClassUnreachable Class = "unreachable"  // no connection, or it broke
	ClassTimeout     Class = "timeout"      // no answer within Profile.Timeout
	ClassLimited     Class = "rate_limited" // HTTP 429
	ClassServer      Class = "server_error" // HTTP 408, 409, 5xx
	ClassDenied      Class = "denied"       // HTTP 401 to 405 and redirects: what is configured is wrong
	ClassBreaker     Class = "breaker_open" // not asked, for the calls before have failed
	ClassCapped      Class = "capped"       // not asked, for a cap is reached
	ClassCanceled    Class = "canceled"     // the caller's context has ended

	ClassRejected Class = "rejected"       // HTTP 400 and other 4xx
	ClassTooLong  Class = "context_length" // more input than the model takes, also when halved twice
	ClassCutOff   Class = "cut_off"        // the answer ends at Profile.MaxTokens
	ClassInvalid  Class = "invalid"        // the answer is not of the form that was asked for
	ClassEmpty    Class = "empty"          // the answer says nothing
	ClassLonger   Class = "longer"         // the answer is longer than what it shortens
	ClassRefused  Class = "refused"        // the model refused, or a filter did
)

var classes = []Class{
	ClassUnreachable, ClassTimeout, ClassLimited, ClassServer, ClassDenied, ClassBreaker, ClassCapped, ClassCanceled,
	ClassRejected, ClassTooLong, ClassCutOff, ClassInvalid, ClassEmpty, ClassLonger, ClassRefused,
}

// unusable tells whether what is wrong is this one input, or the answer to it.
func (c Class) unusable() bool {
	switch c {
	case ClassRejected, ClassTooLong, ClassCutOff, ClassInvalid, ClassEmpty, ClassLonger, ClassRefused:
		return true
	}
	return false
}

// passing tells whether the next try may succeed already.
func (c Class) passing() bool {
	switch c {
	case ClassUnreachable, ClassTimeout, ClassLimited, ClassServer:
		return true
	}
	return false
}

// ErrCapped is the cap on calls or on cost: of the hour that has passed none is left.
// [Error].NotBefore is when it goes on. It is a [summary.ErrUnavailable] too.
var ErrCapped = errors.New("the cap of this hour is reached")

// Error is every error of a [Writer]. By errors.Is it is [summary.ErrUnavailable] or
// [summary.ErrUnusable], and where it applies [ErrCapped] or the context's error.
type Error struct {
	Class Class
	// Reason is for people: short, without the key and without what was sent.
	Reason string
	// NotBefore is when to try again, if that is known: the server has told it, or the
	// breaker or the cap does.
	NotBefore time.Time

	names   []string // of ClassRejected: parameters that the server complains of
	changed bool     // the provider does without them from now on: ask again
	cause   error    // of ClassCanceled: the context's error
}

// Error implements error.
func (e *Error) Error() string { return e.kind().Error() + ": " + e.Reason }

// Unwrap returns the sentinels that e is.
func (e *Error) Unwrap() []error {
	errs := []error{e.kind()}
	if e.Class == ClassCapped {
		errs = append(errs, ErrCapped)
	}
	if e.cause != nil {
		errs = append(errs, e.cause)
	}
	return errs
}

func (e *Error) kind() error {
	if e.Class.unusable() {
		return summary.ErrUnusable
	}
	return summary.ErrUnavailable
}

// ended is the error of a context that is over.
func ended(ctx context.Context) *Error {
	return &Error{Class: ClassCanceled, Reason: ctx.Err().Error(), cause: ctx.Err()}
}

// classOf is the class of an error of this package; of others it is empty.
func classOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return ""
}
