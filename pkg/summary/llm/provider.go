package llm

import (
	"context"
	"slices"
	"sync/atomic"
)

// request is what a model is asked.
type request struct {
	system, user string
	form         bool // answer with the JSON of a summary, otherwise with plain text
}

// answer is what a model has said, and what it has counted. The text can be empty.
type answer struct {
	text          string
	input, output int64 // tokens
}

// provider speaks one API. With an error the counts are right as well.
type provider interface {
	ask(ctx context.Context, r request) (answer, *Error)
}

// The name and the use of a summary's form, as models read them.
const (
	formName = "write_summary"
	formUse  = "Writes down the summary of the record."
)

// Parameters that some models refuse.
const (
	paramTemperature = "temperature"
	paramMaxTokens   = "max_tokens"
)

// without is what a model has refused and is not sent again.
type without struct{ temperature, maxTokens atomic.Bool }

// learn marks an error that is about such a parameter if the request had it.
func (w *without) learn(err *Error, sentTemperature, sentMaxTokens bool) *Error {
	if sentTemperature && slices.Contains(err.names, paramTemperature) {
		w.temperature.Store(true)
		err.changed = true
	}
	if sentMaxTokens && slices.Contains(err.names, paramMaxTokens) {
		w.maxTokens.Store(true)
		err.changed = true
	}
	return err
}

// Answers that are no answer, whichever the API.
func cutOff() *Error {
	return &Error{Class: ClassCutOff, Reason: "the answer is cut off at its limit of tokens"}
}

func refusal() *Error {
	return &Error{Class: ClassRefused, Reason: "the model refused to answer, or a filter did"}
}

func invalid(reason string) *Error { return &Error{Class: ClassInvalid, Reason: reason} }
