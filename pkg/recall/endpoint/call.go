package endpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/sony/gobreaker/v2"

	"mneme/pkg/projection"
	"mneme/pkg/recall"
)

// client follows no redirect: what is behind one was not configured.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// maxBody is how much of an answer is read, in bytes: a thousand vectors of 4,096 dimensions
// in decimals.
const maxBody = 64 << 20

const checkURL = ": check the URL and the model"

// retries of a call for messages; a query has none.
const retries = 2

// embed calls the endpoint for texts. If it refuses them it is asked for each half, down to
// the text that it refuses.
func (e *Embedder) embed(ctx context.Context, texts []string) ([]recall.Vector, error) {
	within, cancel := context.WithTimeout(ctx, e.config.Timeout)
	made, err := e.call(within, texts, retries)
	cancel()
	if !refusal(err) {
		return made, err
	}
	if len(texts) > 1 {
		half := len(texts) / 2
		first, err := e.embed(ctx, texts[:half])
		if err != nil {
			return nil, err
		}
		second, err := e.embed(ctx, texts[half:])
		return append(first, second...), err
	}
	if !e.works.Load() { // or it refuses everything, a wrong model for instance
		within, cancel := context.WithTimeout(ctx, e.config.Timeout)
		_, probe := e.call(within, []string{"text"}, retries)
		cancel()
		if probe != nil {
			return nil, probe
		}
	}
	return nil, fmt.Errorf("%w: %w", projection.ErrRejected, err)
}

// call makes one call, unless the breaker answers it.
func (e *Embedder) call(ctx context.Context, texts []string, retries int) ([]recall.Vector, error) {
	made, err := e.breaker.Execute(func() ([]recall.Vector, error) {
		made, err := e.ask(ctx, texts, retries)
		e.count(func(s *Stats) {
			s.Calls++
			if err != nil {
				s.Failures++
				e.reason = err
			}
		})
		return made, err
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		e.mu.Lock()
		defer e.mu.Unlock()
		return nil, fmt.Errorf("not asked, for it has failed: %w", e.reason)
	}
	return made, err
}

func (e *Embedder) ask(ctx context.Context, texts []string, retries int) ([]recall.Vector, error) {
	params := openai.EmbeddingNewParams{
		Model: e.config.Model, Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts}, EncodingFormat: openai.EmbeddingNewParamsEncodingFormatFloat,
	}
	if e.config.Dimensions > 0 {
		params.Dimensions = openai.Int(int64(e.config.Dimensions))
	}
	resp, err := e.service.New(ctx, params, option.WithMaxRetries(retries))
	if err != nil {
		return nil, explain(ctx, err)
	}
	if len(resp.Data) != len(texts) {
		return nil, fmt.Errorf("the endpoint answers %d texts with %d vectors", len(texts), len(resp.Data))
	}
	vectors := make([]recall.Vector, len(texts))
	filled := make([]bool, len(texts))
	for _, one := range resp.Data {
		if one.Index < 0 || one.Index >= int64(len(texts)) || filled[one.Index] || len(one.Embedding) == 0 {
			return nil, errForm
		}
		if err := e.learn(len(one.Embedding)); err != nil {
			return nil, err
		}
		floats := make([]float32, len(one.Embedding))
		for i, f := range one.Embedding {
			floats[i] = float32(f)
		}
		vectors[one.Index], filled[one.Index] = recall.Quantize(floats), true
	}
	e.works.Store(true)
	e.count(func(s *Stats) { s.Texts, s.Tokens = s.Texts+int64(len(texts)), s.Tokens+resp.Usage.PromptTokens })
	return vectors, nil
}

// statusError is an answer that is no success. Its text has nothing of what was sent.
type statusError struct {
	status int
	advice string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the endpoint answers HTTP %d%s", e.status, e.advice)
}

// refusal tells whether an error is about what was sent.
func refusal(err error) bool {
	var e *statusError
	if !errors.As(err, &e) {
		return false
	}
	return e.status == http.StatusBadRequest || e.status == http.StatusRequestEntityTooLarge || e.status == http.StatusUnprocessableEntity
}

// explain makes of an error of the SDK, which has the request in it, one that can be shown.
func explain(ctx context.Context, err error) error {
	if refused, ok := errors.AsType[*openai.Error](err); ok {
		e := &statusError{status: refused.StatusCode}
		switch {
		case e.status == http.StatusUnauthorized || e.status == http.StatusForbidden:
			e.advice = ": check the key"
		case e.status == http.StatusPaymentRequired:
			e.advice = ": check the account"
		case e.status == http.StatusNotFound || e.status == http.StatusMethodNotAllowed:
			e.advice = checkURL
		case e.status == http.StatusTooManyRequests:
			e.advice = ": it is asked too often"
		case refusal(e):
			e.advice = ": it refuses the texts, or the model's name or dimensions"
		}
		return e
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded):
		return errors.New("the endpoint does not answer in time")
	}
	if known, ok := errors.AsType[*statusError](err); ok {
		return known
	}
	if known, ok := errors.AsType[*networkError](err); ok {
		return known
	}
	return errForm
}

var errForm = errors.New("the endpoint's answer is not what its API describes")

// networkError is trouble on the way to the endpoint, or back.
type networkError struct{ cause error }

// Error leaves out the URL, which may be long.
func (e *networkError) Error() string {
	err := e.cause
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	const most = 120
	text := strings.ToValidUTF8(err.Error(), "")
	return "the endpoint can't be reached: " + text[:min(len(text), most)]
}

func (e *networkError) Unwrap() error { return e.cause }

// exchange is one request. What the SDK says about what goes wrong differs; it is asked only
// for what comes in the form of an answer.
func exchange(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	resp, err := next(req)
	if err != nil {
		return nil, &networkError{err}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	_ = resp.Body.Close()
	switch {
	case err != nil:
		return nil, &networkError{err}
	case resp.StatusCode/100 == 3:
		return nil, &statusError{resp.StatusCode, checkURL}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}
