package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"mneme.dev/mneme/pkg/internal/modelapi"
)

// maxBody limits how much of an answer is read, in bytes.
const maxBody = 4 << 20

// post makes one request and decodes the answer.
func post(ctx context.Context, api modelapi.Endpoint, path string, body, into any) *Error {
	resp, err := api.Post(ctx, path, body)
	var broken *modelapi.NetworkError
	switch {
	case ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded):
		return &Error{Class: ClassTimeout, Reason: "the model's endpoint did not answer in time"}
	case errors.As(err, &broken):
		return &Error{Class: ClassUnreachable, Reason: broken.Error()}
	case errors.Is(err, modelapi.ErrTooLarge):
		return invalid(fmt.Sprintf("the answer has more than %d bytes", maxBody))
	case err != nil: // the request can't be made
		return &Error{Class: ClassDenied, Reason: err.Error()}
	case !resp.OK():
		return refused(resp)
	}
	if err := json.Unmarshal(resp.Body, into); err != nil {
		return invalid("the endpoint's answer is not what its API describes")
	}
	return nil
}

// problem holds what providers say about an error; none says all of it.
type problem struct {
	Error struct {
		Type    string `json:"type"`
		Code    any    `json:"code"`
		Param   any    `json:"param"`
		Message string `json:"message"`
	} `json:"error"`
}

// refused returns the error for a status other than success.
func refused(resp modelapi.Answer) *Error {
	var p problem
	_ = json.Unmarshal(resp.Body, &p) // if it is not JSON the status says enough
	e := &Error{Reason: fmt.Sprintf("HTTP %d", resp.Status), NotBefore: resp.RetryAfter()}
	code, _ := p.Error.Code.(string)
	switch status := resp.Status; {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		e.Class, e.Reason = ClassDenied, e.Reason+", check the key"
	case status == http.StatusPaymentRequired:
		e.Class, e.Reason = ClassDenied, e.Reason+", check the account"
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status < 400:
		e.Class, e.Reason = ClassDenied, e.Reason+", check the URL and the model"
	case status == http.StatusTooManyRequests:
		e.Class = ClassLimited
	case status == http.StatusRequestTimeout || status == http.StatusConflict || status >= 500:
		e.Class = ClassServer
	case status == http.StatusRequestEntityTooLarge || tooLong(p, code):
		e.Class = ClassTooLong
	default:
		e.Class = ClassRejected
		for _, name := range []string{paramTemperature, paramMaxTokens} {
			if strings.Contains(p.Error.Message, name) || p.Error.Param == name {
				e.names = append(e.names, name)
			}
		}
	}
	for _, word := range []string{p.Error.Type, code} {
		if identifier(word) && !strings.Contains(e.Reason, word) {
			e.Reason += ", " + word
		}
	}
	return e
}

// tooLong reports whether an input exceeds the model's context.
func tooLong(p problem, code string) bool {
	if code == "context_length_exceeded" || p.Error.Type == "exceed_context_size_error" {
		return true
	}
	message := strings.ToLower(p.Error.Message)
	return slices.ContainsFunc([]string{"maximum context length", "prompt is too long", "context window", "context size"}, func(words string) bool {
		return strings.Contains(message, words)
	})
}

// identifier reports whether a word is a name such as invalid_request_error. Anything else from
// outside is not shown, because it could be a key.
func identifier(word string) bool {
	return word != "" && len(word) <= 40 && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz_") == ""
}
