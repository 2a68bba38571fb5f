package llm

import (
	"context"
	"slices"
	"strings"
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

// Parameters that some models, or their servers, refuse.
const (
	paramTemperature = "temperature"
	paramMaxTokens   = "max_tokens"
	paramFormat      = "response_format"
)

// without holds parameters that a model has refused and that are not sent again.
type without struct{ temperature, maxTokens, format atomic.Bool }

// learn marks an error about such a parameter if the request contained the parameter.
func (w *without) learn(err *Error, sent ...string) *Error {
	for name, refused := range map[string]*atomic.Bool{paramTemperature: &w.temperature, paramMaxTokens: &w.maxTokens, paramFormat: &w.format} {
		if slices.Contains(sent, name) && slices.Contains(err.names, name) {
			refused.Store(true)
			err.changed = true
		}
	}
	return err
}

// withoutThoughts leaves out what a model thought before it answered. Most servers do so themselves. Some models get the
// opening mark in their prompt, and only write the closing one, at the end of a line or before an object. Elsewhere it is
// a word of the answer.
func withoutThoughts(text string) string {
	thoughts, answer, found := strings.Cut(text, "</think>")
	before, _, opened := strings.Cut(thoughts, "<think>")
	switch {
	case !found, opened && strings.TrimSpace(before) != "":
		return text
	case !opened && !strings.HasPrefix(answer, "{") && !strings.HasPrefix(strings.TrimLeft(answer, " \r"), "\n"):
		return text
	}
	return answer
}

// objectIn returns the JSON object in an answer. A model whose server does not keep it to the form often writes a sentence
// before the object, or puts it into a fence.
func objectIn(text string) string {
	from, to := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if from < 0 || to < from {
		return text
	}
	return text[from : to+1]
}

// Answers that count as failures with any API.
func cutOff() *Error {
	return &Error{Class: ClassCutOff, Reason: "the answer is cut off at its limit of tokens"}
}

func refusal() *Error {
	return &Error{Class: ClassRefused, Reason: "the model refused to answer, or a filter did"}
}

func invalid(reason string) *Error { return &Error{Class: ClassInvalid, Reason: reason} }
