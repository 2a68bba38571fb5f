package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/window"
)

// problem maps an error to its problem document. For internal errors the answer has no
// details; they are logged.
func (a *api) problem(err error) error {
	var invalid *events.Invalid
	var request *window.InvalidError
	var beyond *view.BeyondError
	var behind *view.BehindError
	var other *view.OtherLogError
	switch {
	case errors.As(err, &beyond):
		return huma.Error422UnprocessableEntity(beyond.Error(), &huma.ErrorDetail{Location: "query." + beyond.Name, Message: "beyond the end of the log", Value: beyond.Seq})
	case errors.As(err, &behind):
		return huma.NewError(http.StatusGatewayTimeout, behind.Error())
	case errors.As(err, &other), errors.Is(err, view.ErrBusy):
		return huma.ErrorWithHeaders(huma.Error503ServiceUnavailable(err.Error()), later())
	case errors.As(err, &invalid):
		return InvalidEvent(invalid, "body")
	case errors.As(err, &request):
		return huma.Error422UnprocessableEntity(err.Error(), &huma.ErrorDetail{Location: "query." + request.Field, Message: request.Reason})
	case errors.Is(err, graph.ErrNotFound):
		return huma.Error404NotFound(err.Error())
	case errors.Is(err, eventlog.ErrConflict):
		return huma.Error409Conflict("other clients are changing this conversation at the same time: read it and try again")
	case errors.Is(err, eventlog.ErrFull):
		return huma.NewError(http.StatusInsufficientStorage, "the log is full: publish again after an operator has made room")
	case errors.Is(err, eventlog.ErrNotStored):
		return &failure{huma.NewError(http.StatusServiceUnavailable, "the log could not store this: the disk of its server may be full, the server overloaded, or too many files open there (ulimit -n, LimitNOFILE= in systemd); run mneme doctor").(*huma.ErrorModel), err}
	case errors.Is(err, eventlog.ErrTooLarge):
		return huma.NewError(http.StatusRequestEntityTooLarge, err.Error())
	case a.NotReady != nil && errors.Is(err, a.NotReady):
		return huma.Error503ServiceUnavailable(err.Error())
	case errors.Is(err, context.Canceled):
		return huma.NewError(clientGone, "the client went away")
	case errors.Is(err, eventlog.ErrUnconfirmed): // it says what to do
		return huma.Error504GatewayTimeout(err.Error())
	case errors.Is(err, eventlog.ErrNoLeader):
		return &failure{huma.Error503ServiceUnavailable("no NATS server leads the log at the moment: try again; if that does not help, mneme doctor says which servers are down").(*huma.ErrorModel), err}
	case errors.Is(err, natsdeploy.ErrNoStream):
		return &failure{huma.Error503ServiceUnavailable("the log is gone: there is " + natsdeploy.ErrNoStream.Error() + "; mneme doctor says what to do").(*huma.ErrorModel), err}
	case errors.Is(err, eventlog.ErrLate):
		return &failure{huma.NewError(http.StatusGatewayTimeout, "another process of mneme did not answer in time: try again; mneme status says which ones run: "+err.Error()).(*huma.ErrorModel), err}
	case errors.Is(err, eventlog.ErrSilent), errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, projection.ErrUnavailable): // of the others, only requests to NATS have a time limit
		return &failure{huma.NewError(http.StatusGatewayTimeout, "the log's server (NATS) did not answer in time: try again; if that does not help, mneme doctor says what is wrong with it").(*huma.ErrorModel), err}
	}
	var damaged *projection.DamagedError
	text := "the log or a read model does not answer now; try again"
	switch {
	case errors.As(err, &damaged):
		text = damaged.Summary()
	case errors.Is(err, projection.ErrDisk):
		text = "the disk of the read models is full or failing: run mneme doctor"
	case errors.Is(err, projection.ErrUnavailable):
		text = "the server of the read models does not answer now: nothing is lost, try again; mneme status shows why"
	}
	if _, ok := errors.AsType[huma.StatusError](err); ok {
		return err
	}
	return &failure{huma.NewError(http.StatusServiceUnavailable, text).(*huma.ErrorModel), err}
}

// failure is a problem whose cause is logged but not shown to the client.
type failure struct {
	*huma.ErrorModel
	cause error
}

func (f *failure) Unwrap() error { return f.ErrorModel }

// GetHeaders says when to try again.
func (f *failure) GetHeaders() http.Header { return later() }

// logFailure logs a failure with the route and the trace of its request, just before it becomes an answer.
func (a *api) logFailure(ctx huma.Context, _ string, answer any) (any, error) {
	if f, ok := answer.(*failure); ok {
		op := ctx.Operation() // not the path, which holds names
		a.outage.log(ctx.Context(), a.Logger, f.cause, "request failed", "method", op.Method, "route", op.Path)
		return f.ErrorModel, nil
	}
	return answer, nil
}

// outageEvery is how often a failure is logged while the server of the read models does not answer.
const outageEvery = time.Minute

// outage logs failures: every one, but of those that happen because the server of the read models does not answer, at most
// one in outageEvery, with the number of others since the last. Metrics count them all.
type outage struct {
	mu     sync.Mutex
	logged time.Time
	others int
}

func (o *outage) log(ctx context.Context, logger *slog.Logger, cause error, text string, about ...any) {
	about = append(about, "error", cause)
	if errors.Is(cause, projection.ErrUnavailable) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if time.Since(o.logged) < outageEvery {
			o.others++
			return
		}
		if o.others > 0 {
			about = append(about, "others", o.others)
		}
		o.logged, o.others = time.Now(), 0
	}
	logger.ErrorContext(ctx, text, about...)
}

// conflict is the problem of a request that contradicts what the log has.
type conflict struct {
	huma.ErrorModel
	ExistingSeq uint64 `json:"existing_seq,omitempty" doc:"sequence of the event that has the identity of the one to store, and counts"`
}

// conflicting returns the problem of an event whose identity the event at a sequence has.
func conflicting(seq uint64, text string, where *huma.ErrorDetail) error {
	model, _ := huma.Error409Conflict(text, where).(*huma.ErrorModel)
	return &conflict{*model, seq}
}

// Unwrap returns the problem as every other one is.
func (c *conflict) Unwrap() error { return &c.ErrorModel }

// partly returns the problem for a request of which the log stored only the first events.
func (a *api) partly(err error, stored []published, asked int) error {
	problem := takenBy(err, len(stored), asked)
	if problem == nil {
		problem = a.problem(err)
	}
	var model *huma.ErrorModel
	if !errors.As(problem, &model) {
		return problem
	}
	some := fmt.Sprintf("%d of %d events were stored", len(stored), asked)
	if len(stored) > 0 {
		model.Errors = append(model.Errors, &huma.ErrorDetail{Location: "body", Message: some, Value: stored})
		some += ", the first ones"
	}
	switch sure := isNotStored(err); {
	case !sure && len(stored) > 0:
		some += ", and perhaps more; publishing all of them again is harmless"
	case !sure:
		some = "it is not known whether events were stored; publishing them again is harmless"
	}
	model.Detail = some + ": " + model.Detail
	return problem
}

// isNotStored reports whether the log surely lacks the event at which a publish failed. After other errors it may have it.
func isNotStored(err error) bool {
	sure := []error{events.ErrInvalid, eventlog.ErrOtherContent, eventlog.ErrFull, eventlog.ErrNotStored, eventlog.ErrTooLarge, eventlog.ErrNoLeader, natsdeploy.ErrNoStream}
	return slices.ContainsFunc(sure, func(of error) bool { return errors.Is(err, of) })
}

// InvalidEvent returns the problem for one refused event; location is its place in the request.
func InvalidEvent(err *events.Invalid, location string) error {
	status := http.StatusUnprocessableEntity
	switch {
	case err.TooLarge:
		status = http.StatusRequestEntityTooLarge
	case err.Field == "content-type":
		status = http.StatusUnsupportedMediaType
	case err.Field == "body":
		status = http.StatusBadRequest
	}
	return huma.NewError(status, err.Error(), detail(err, location))
}

func detail(err *events.Invalid, location string) *huma.ErrorDetail {
	switch err.Field {
	case "body":
	case "content-type":
		location = "header.content-type"
	case "tenant":
		location = "query.tenant"
	default:
		location += "." + err.Field
	}
	return &huma.ErrorDetail{Location: location, Message: err.Reason}
}

func indexed(i int) string { return fmt.Sprintf("body[%d]", i) }

// byTheSchema is huma's message for a request that the schema refuses.
const byTheSchema = "validation failed"

// plainProblems makes huma's problems say what to do, as ours do. For a body that could not
// be read it answers 400, because that is the client's fault; huma answers 500.
var plainProblems = sync.OnceFunc(func() {
	problem := huma.NewErrorWithContext
	huma.NewErrorWithContext = func(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
		var bad *bodyError
		var busy huma.StatusError // no room for the body
		if ctx != nil && status == http.StatusInternalServerError && errors.As(errors.Join(errs...), &busy) {
			ctx.SetHeader("Retry-After", later().Get("Retry-After"))
			return busy
		}
		if status == http.StatusInternalServerError && errors.As(errors.Join(errs...), &bad) {
			return huma.Error400BadRequest("the request body ended early or is damaged: none of it was used", errs...)
		}
		made := problem(ctx, status, message, errs...)
		if model, ok := made.(*huma.ErrorModel); ok && message == byTheSchema {
			inOrderOfNames(model.Errors)
			for _, e := range model.Errors {
				explain(ctx, e)
			}
			model.Detail = inShort(model.Errors)
		}
		return made
	}
})

// unknownParameter is huma's message for a parameter that an operation does not take.
const unknownParameter = "unknown query parameter"

// inOrderOfNames sorts what huma finds in the order of a map, unknown parameters and members, so that the same request is
// always refused in the same words.
func inOrderOfNames(list []*huma.ErrorDetail) {
	for len(list) > 0 {
		message := list[0].Message
		n := slices.IndexFunc(list, func(e *huma.ErrorDetail) bool { return e.Message != message })
		if n < 0 {
			n = len(list)
		}
		if message == unknownParameter || message == validation.MsgUnexpectedProperty {
			slices.SortFunc(list[:n], func(a, b *huma.ErrorDetail) int { return strings.Compare(a.Location, b.Location) })
		}
		list = list[n:]
	}
}

// explain rewrites huma's error to say what is expected, and removes the client's body from it.
func explain(ctx huma.Context, e *huma.ErrorDetail) {
	if e.Location == "body" || strings.HasPrefix(e.Location, "body.") {
		e.Value = nil
	}
	switch {
	case e.Message == "expected string to be RFC 3339 date":
		e.Message = "is not a UTC day such as 2026-01-31"
	case strings.HasPrefix(e.Message, "invalid date/time for format"), e.Message == "expected string to be RFC 3339 date-time":
		e.Message = "is not an RFC 3339 time such as 2026-01-31T15:04:05Z"
	case strings.HasPrefix(e.Message, huma.ErrUnknownContentType.Error()):
		e.Message += "; send Content-Type: application/json"
	case strings.HasPrefix(e.Message, `expected value to be one of "`):
		e.Message = "expected one of " + strings.Trim(strings.TrimPrefix(e.Message, "expected value to be one of "), `"`)
	case e.Location == "query.as_of" && strings.HasPrefix(e.Message, "expected number >= 1"):
		e.Message = "sequences begin at 1; omit as_of to read the present"
	case e.Message == unknownParameter:
		known := []string{}
		for _, p := range ctx.Operation().Parameters {
			if p.In == "query" {
				known = append(known, p.Name)
			}
		}
		if len(known) == 0 {
			e.Message += "; this operation takes none"
			break
		}
		slices.Sort(known)
		e.Message += "; known are " + strings.Join(known, ", ")
	}
}

// inShort summarizes on one line what is wrong with a request.
func inShort(list []*huma.ErrorDetail) string {
	const most = 3
	var parts []string
	for _, e := range list[:min(most, len(list))] {
		parts = append(parts, e.Location+": "+e.Message)
	}
	if more := len(list) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}
