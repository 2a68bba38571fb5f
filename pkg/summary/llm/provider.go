package llm

import (
	"context"
	"slices"
	"sync/atomic"
)

// request is one question to a model.
type request struct {
	system, user string
	form         *form // answer in this form, otherwise with plain text
}

// answer is a model's text, which can be empty, and its token counts.
type answer struct {
	text          string
	input, output int64 // tokens
}

// provider speaks one API. The counts are valid even with an error.
type provider interface {
	ask(ctx context.Context, r request) (answer, *Error)
}

// form is the form of an answer. Models read its name and what it is used for.
type form struct {
	name, use, schema string
	loose             bool // servers can't enforce the schema
}

var summaryForm = form{name: "write_summary", use: "Writes down the summary of the record.", schema: schema}

// Parameters that some models refuse.
const (
	paramTemperature = "temperature"
	paramMaxTokens   = "max_tokens"
)

// without holds parameters that a model has refused and that are not sent again.
type without struct{ temperature, maxTokens atomic.Bool }

// learn marks an error about such a parameter if the request contained the parameter.
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

// Answers that count as failures with any API.
func cutOff() *Error {
	return &Error{Class: ClassCutOff, Reason: "the answer is cut off at its limit of tokens"}
}

func refusal() *Error {
	return &Error{Class: ClassRefused, Reason: "the model refused to answer, or a filter did"}
}

func invalid(reason string) *Error { return &Error{Class: ClassInvalid, Reason: reason} }
