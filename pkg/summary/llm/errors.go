package llm

import (
	"context"
	"errors"
	"time"

	"mneme.dev/mneme/pkg/summary"
)

// Class is the reason for a missing answer. It is a label of metrics, so the classes are few and
// keep their names.
type Class string

// The classes. For those up to ClassCanceled the same input may succeed later.
const (
	ClassUnreachable Class = "unreachable"  // no connection, or it broke
	ClassTimeout     Class = "timeout"      // no answer within Profile.Timeout
	ClassLimited     Class = "rate_limited" // HTTP 429
	ClassServer      Class = "server_error" // HTTP 408, 409, 5xx
	ClassDenied      Class = "denied"       // HTTP 401 to 405 and redirects: the configuration is wrong
	ClassBreaker     Class = "breaker_open" // not asked, because the previous calls failed
	ClassCapped      Class = "capped"       // not asked, because a cap is reached
	ClassQuota       Class = "over_quota"   // not asked, because the tenant is over its quota
	ClassCanceled    Class = "canceled"     // the caller's context has ended

	ClassRejected Class = "rejected"       // HTTP 400 and other 4xx
	ClassTooLong  Class = "context_length" // more input than the model takes, even after halving twice
	ClassCutOff   Class = "cut_off"        // the answer ends at Profile.MaxTokens
	ClassInvalid  Class = "invalid"        // the answer does not have the requested form
	ClassEmpty    Class = "empty"          // the answer says nothing
	ClassLonger   Class = "longer"         // the answer is longer than the text it should shorten
	ClassRefused  Class = "refused"        // the model or a filter refused
)

var classes = []Class{
	ClassUnreachable, ClassTimeout, ClassLimited, ClassServer, ClassDenied, ClassBreaker, ClassCapped, ClassQuota, ClassCanceled,
	ClassRejected, ClassTooLong, ClassCutOff, ClassInvalid, ClassEmpty, ClassLonger, ClassRefused,
}

// unusable reports whether the fault lies in this one input or its answer.
func (c Class) unusable() bool {
	switch c {
	case ClassRejected, ClassTooLong, ClassCutOff, ClassInvalid, ClassEmpty, ClassLonger, ClassRefused:
		return true
	}
	return false
}

// passing reports whether the next try may succeed.
func (c Class) passing() bool {
	switch c {
	case ClassUnreachable, ClassTimeout, ClassLimited, ClassServer:
		return true
	}
	return false
}

// ErrCapped means that the cap on calls or cost has been reached in the last hour.
// [Error].NotBefore is when calls are allowed again. It is a [summary.ErrUnavailable] too.
var ErrCapped = errors.New("the cap of this hour is reached")

// ErrOverQuota means that a tenant is over the quota that its calls count against, see [Spending].
// [Error].NotBefore is when calls are allowed again. It is a [summary.ErrUnavailable] too.
var ErrOverQuota = errors.New("over the quota of this hour")

// Error is every error of a [Writer]. Under errors.Is it is [summary.ErrUnavailable] or
// [summary.ErrUnusable] and, where it applies, [ErrCapped], [ErrOverQuota] or the context's error.
type Error struct {
	Class Class
	// Reason is for people: short, without the key and without the content sent.
	Reason string
	// NotBefore is when to try again, if the server, the breaker or the cap says so.
	NotBefore time.Time

	names   []string // for ClassRejected: parameters that the server rejects
	changed bool     // the provider will leave them out from now on: ask again
	cause   error    // for ClassCanceled: the context's error
}

// Error implements error.
func (e *Error) Error() string { return e.kind().Error() + ": " + e.Reason }

// Unwrap returns the sentinel errors that e matches.
func (e *Error) Unwrap() []error {
	errs := []error{e.kind()}
	if e.Class == ClassCapped {
		errs = append(errs, ErrCapped)
	}
	if e.Class == ClassQuota {
		errs = append(errs, ErrOverQuota)
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

// ended returns the error for a context that has ended.
func ended(ctx context.Context) *Error {
	return &Error{Class: ClassCanceled, Reason: ctx.Err().Error(), cause: ctx.Err()}
}

// IsTimeout reports whether a model was asked and did not answer within [Profile.Timeout].
func IsTimeout(err error) bool { return classOf(err) == ClassTimeout }

// classOf returns the class of an error of this package, "" for others.
func classOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return ""
}
