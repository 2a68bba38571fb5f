package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxBody is how much of an answer is read, in bytes.
const maxBody = 4 << 20

// maxRetryAfter is how long a server can ask us to stay away: what it asks for can be
// a mistake.
const maxRetryAfter = time.Hour

// exchange is one request as next sends it. It returns an answer of status 2xx, read to
// its end, or an *Error: what the SDKs make of errors differs, and some of it has the
// key or the prompt in it.
func exchange(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	resp, err := next(req)
	if err != nil {
		return nil, &Error{Class: ClassUnreachable, Reason: network(err)}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case resp.StatusCode/100 != 2:
		return nil, refused(resp, body)
	case err != nil:
		return nil, &Error{Class: ClassUnreachable, Reason: "the answer broke off: " + network(err)}
	case len(body) > maxBody:
		return nil, invalid(fmt.Sprintf("the answer has more than %d bytes", maxBody))
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// network is an error of the network without the URL, which may be long.
func network(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return short(err.Error())
		}
		err = inner
	}
}

// short is the start of a reason.
func short(reason string) string {
	const most = 120
	if runes := []rune(reason); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return reason
}

// problem is what providers say about an error; none says all of it.
type problem struct {
	Error struct {
		Type    string `json:"type"`
		Code    any    `json:"code"`
		Param   any    `json:"param"`
		Message string `json:"message"`
	} `json:"error"`
}

// refused is a status that is no success.
func refused(resp *http.Response, body []byte) *Error {
	var p problem
	_ = json.Unmarshal(body, &p) // if it is no JSON the status says enough
	e := &Error{Reason: fmt.Sprintf("HTTP %d", resp.StatusCode), NotBefore: retryAfter(resp.Header)}
	code, _ := p.Error.Code.(string)
	switch status := resp.StatusCode; {
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

// tooLong tells whether an input is longer than the model's context.
func tooLong(p problem, code string) bool {
	if code == "context_length_exceeded" || p.Error.Type == "exceed_context_size_error" {
		return true
	}
	message := strings.ToLower(p.Error.Message)
	return slices.ContainsFunc([]string{"maximum context length", "prompt is too long", "context window", "context size"}, func(words string) bool {
		return strings.Contains(message, words)
	})
}

// identifier tells whether a word is a name such as invalid_request_error. Anything else
// from outside could be anything, a key too.
func identifier(word string) bool {
	return word != "" && len(word) <= 40 && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// retryAfter is when the server wants to be asked again: zero if it does not say.
func retryAfter(header http.Header) time.Time {
	value, now := strings.TrimSpace(header.Get("Retry-After")), time.Now()
	at, err := http.ParseTime(value)
	if seconds, isNumber := strconv.ParseFloat(value, 64); isNumber == nil {
		at, err = now.Add(time.Duration(min(seconds, maxRetryAfter.Seconds())*float64(time.Second))), nil
	}
	if err != nil || !at.After(now) {
		return time.Time{}
	}
	if latest := now.Add(maxRetryAfter); at.After(latest) {
		return latest
	}
	return at
}

// failure is what an SDK has returned as an error of ours. What is neither about the time
// nor made by exchange is about the form of an answer.
func failure(ctx context.Context, err error) *Error {
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		return &Error{Class: ClassTimeout, Reason: "no answer in time"}
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return invalid("the endpoint's answer is not what its API describes")
}
