package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"

	"mneme.dev/mneme/pkg/internal/modelapi"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/recall"
)

// maxBody limits how much of an answer is read, in bytes: enough for a thousand vectors of 4,096
// decimal numbers.
const maxBody = 64 << 20

const checkURL = ": check the URL and the model"

// retries of a call for messages; a query gets none.
const retries = 2

// embed calls the endpoint for texts. If the endpoint refuses them, embed tries each half, down to
// the refused text.
func (e *Embedder) embed(ctx context.Context, texts []string) ([]recall.Vector, error) {
	within, cancel := context.WithTimeoutCause(ctx, e.config.Timeout, errSlow)
	made, err := e.vectors(within, texts, retries)
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
	if !e.works.Load() { // or it refuses everything, as with a wrong model
		within, cancel := context.WithTimeoutCause(ctx, e.config.Timeout, errSlow)
		_, probe := e.vectors(within, []string{"text"}, retries)
		cancel()
		if probe != nil {
			return nil, probe
		}
	}
	return nil, fmt.Errorf("%w: %w", projection.ErrRejected, err)
}

// vectors makes one call, unless the breaker answers it.
func (e *Embedder) vectors(ctx context.Context, texts []string, retries int) ([]recall.Vector, error) {
	return e.call(func() ([]recall.Vector, error) { return e.ask(ctx, texts, retries) }, func(s *Stats, failed bool) {
		if s.Calls++; failed {
			s.Failures++
		}
	})
}

// ask asks until it gets an answer or an error that a retry does not help, or until no retry could
// end in time.
func (e *Embedder) ask(ctx context.Context, texts []string, retries int) ([]recall.Vector, error) {
	waits := backoff.NewExponentialBackOff()
	for try := 0; ; try++ {
		made, err := e.askOnce(ctx, texts)
		notBefore, passing := passes(err)
		if err == nil || !passing || try == retries {
			return made, err
		}
		wait := max(waits.NextBackOff(), time.Until(notBefore))
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
			return nil, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ended(ctx)
		}
	}
}

type embeddingsRequest struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Format     string   `json:"encoding_format"`
	Dimensions int      `json:"dimensions,omitzero"`
}

type embeddingsAnswer struct {
	Data []struct {
		Index     int       `json:"index"`
		Embedding []float64 `json:"embedding"`
	} `json:"data"`
	Usage struct {
		PromptTokens int64 `json:"prompt_tokens"`
	} `json:"usage"`
}

func (e *Embedder) askOnce(ctx context.Context, texts []string) ([]recall.Vector, error) {
	answer, err := e.api.Post(ctx, "embeddings", embeddingsRequest{Model: e.config.Model, Input: texts, Format: "float", Dimensions: e.config.Dimensions})
	if err != nil {
		return nil, explain(ctx, err)
	}
	if !answer.OK() {
		return nil, refused(answer)
	}
	var resp embeddingsAnswer
	if json.Unmarshal(answer.Body, &resp) != nil {
		return nil, errForm
	}
	if len(resp.Data) != len(texts) {
		return nil, fmt.Errorf("the endpoint answers %d texts with %d vectors", len(texts), len(resp.Data))
	}
	vectors := make([]recall.Vector, len(texts))
	filled := make([]bool, len(texts))
	dimensions := len(resp.Data[0].Embedding)
	for _, one := range resp.Data {
		if one.Index < 0 || one.Index >= len(texts) || filled[one.Index] || len(one.Embedding) == 0 {
			return nil, errForm
		}
		if len(one.Embedding) != dimensions {
			return nil, wrongDimensions(len(one.Embedding), dimensions)
		}
		floats := make([]float32, len(one.Embedding))
		for i, f := range one.Embedding {
			floats[i] = float32(f)
		}
		vectors[one.Index], filled[one.Index] = recall.Quantize(floats), true
	}
	if err := e.learn(dimensions); err != nil {
		return nil, err
	}
	e.works.Store(true)
	e.count(func(s *Stats) { s.Texts, s.Tokens = s.Texts+int64(len(texts)), s.Tokens+resp.Usage.PromptTokens })
	return vectors, nil
}

// statusError is an answer with a status other than success. Its text contains nothing that was
// sent.
type statusError struct {
	status    int
	advice    string
	notBefore time.Time // as the server asks; zero if it does not
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the endpoint answers HTTP %d%s", e.status, e.advice)
}

// refusal reports whether an error is about the content sent.
func refusal(err error) bool {
	e, ok := errors.AsType[*statusError](err)
	return ok && (e.status == http.StatusBadRequest || e.status == http.StatusRequestEntityTooLarge || e.status == http.StatusUnprocessableEntity)
}

// passes reports whether a later try may succeed, and the earliest time for it.
func passes(err error) (notBefore time.Time, passing bool) {
	if e, ok := errors.AsType[*statusError](err); ok {
		passing = e.status == http.StatusRequestTimeout || e.status == http.StatusConflict || e.status == http.StatusTooManyRequests || e.status >= 500
		return e.notBefore, passing
	}
	_, passing = errors.AsType[*modelapi.NetworkError](err)
	return time.Time{}, passing
}

// refused returns the error for a status other than success.
func refused(answer modelapi.Answer) error {
	e := &statusError{status: answer.Status, notBefore: answer.RetryAfter()}
	switch {
	case e.status == http.StatusUnauthorized || e.status == http.StatusForbidden:
		e.advice = ": check the key"
	case e.status == http.StatusPaymentRequired:
		e.advice = ": check the account"
	case e.status == http.StatusNotFound || e.status == http.StatusMethodNotAllowed || e.status < 400:
		e.advice = checkURL
	case e.status == http.StatusTooManyRequests:
		e.advice = ": too many requests"
	case refusal(e):
		e.advice = ": it refuses the texts, or the model's name or dimensions"
	}
	return e
}

// explain returns an error of a request in a form fit to show.
func explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	switch _, network := errors.AsType[*modelapi.NetworkError](err); {
	case errors.Is(err, modelapi.ErrTooLarge):
		return errForm
	case network:
		return fmt.Errorf("the endpoint can't be reached: %w", err)
	}
	return err
}

// ended returns the error of a call whose context has ended: errSlow if the call took too long, else that of the caller,
// who gave up.
func ended(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errSlow) {
		return errSlow
	}
	return ctx.Err()
}

// gaveUp reports whether a call ended because its caller has left, or has less time than the call may take, or because
// another call of the caller failed. That says nothing about the endpoint.
func gaveUp(err error) bool {
	if _, network := errors.AsType[*modelapi.NetworkError](err); network { // which has time limits of its own
		return false
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

var errSlow = errors.New("the endpoint does not answer in time")

var errForm = errors.New("the endpoint's answer is not what its API describes")
