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
	Type    string `json:"type"`
	Code    any    `json:"code"`
	Param   any    `json:"param"`
	Message string `json:"message"`
}

// problemOf reads the body of an error. Gemini puts it into a list, and some servers give only a text. If it is no JSON,
// the status says enough.
func problemOf(body []byte) (p problem) {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var said struct {
		Error json.RawMessage `json:"error"`
	}
	_ = json.Unmarshal(body, &said)
	if json.Unmarshal(said.Error, &p) != nil {
		_ = json.Unmarshal(said.Error, &p.Message)
	}
	return p
}

// refused returns the error for a status other than success.
func refused(resp modelapi.Answer) *Error {
	p := problemOf(resp.Body)
	e := &Error{Reason: fmt.Sprintf("HTTP %d", resp.Status), NotBefore: resp.RetryAfter()}
	code, _ := p.Code.(string)
	switch status := resp.Status; {
	case status == http.StatusUnauthorized || status == http.StatusForbidden || strings.Contains(p.Message, "API key not valid"): // Gemini: 400
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
		for _, name := range []string{paramTemperature, paramMaxTokens, paramFormat} {
			if p.names(name) {
				e.names = append(e.names, name)
			}
		}
	}
	for _, word := range []string{p.Type, code} {
		if identifier(word) && !strings.Contains(e.Reason, word) {
			e.Reason += ", " + word
		}
	}
	return e
}

// names reports whether the problem is that a parameter is refused. An invalid schema is the fault of the schema alone.
func (p *problem) names(param string) bool {
	message := strings.ReplaceAll(strings.ToLower(p.Message), "response format", paramFormat)
	return (strings.Contains(message, param) || p.Param == param) && !strings.Contains(message, "invalid schema")
}

// tooLong reports whether an input exceeds the model's context.
func tooLong(p problem, code string) bool {
	if code == "context_length_exceeded" || p.Type == "exceed_context_size_error" {
		return true
	}
	message := strings.ToLower(p.Message)
	return slices.ContainsFunc([]string{"maximum context length", "prompt is too long", "context window", "context size", "maximum number of tokens"}, func(words string) bool {
		return strings.Contains(message, words)
	})
}

// identifier reports whether a word is a name such as invalid_request_error. Anything else from
// outside is not shown, because it could be a key.
func identifier(word string) bool {
	return word != "" && len(word) <= 40 && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz_") == ""
}
