package httpapi

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/transcript"
)

// contentTypeLines is JSON, one value a line.
const contentTypeLines = "application/x-ndjson"

// maxLineProblems is how many refused lines an import lists.
const maxLineProblems = 100

// maxRefusedLines is how many lines of an import may be no valid events before it is
// broken off. A few kilobytes of gzip can hold millions of them.
const maxRefusedLines = 5000

// importFormat is what an import over HTTP reads and an export writes.
const importFormat = "cloudevents"

type importInput struct{ TenantParam }

// LineProblem is a line of an import that was refused.
type LineProblem struct {
	Line   int    `json:"line" doc:"counts from 1"`
	Reason string `json:"reason"`
}

type importOutput struct {
	Body struct {
		Read          int           `json:"read" doc:"lines that are not blank: published + duplicate + rejected"`
		Published     int           `json:"published"`
		Duplicate     int           `json:"duplicate" doc:"events that were known; nothing was stored again"`
		Rejected      int           `json:"rejected" doc:"lines that are no valid event, or contradict one that is known"`
		Conversations int           `json:"conversations"`
		Seq           uint64        `json:"seq" doc:"the highest sequence of what was published: read with at_least to see it all"`
		Problems      []LineProblem `json:"problems" doc:"100 of the rejected lines at most, by line; of a deleted conversation only its first"`
	}
}

func (a *api) registerImport(h huma.API) {
	op := operation("import", http.MethodPost, "/v1/import", "Import events", "events", 507)
	op.Description = "Takes what an export wrote, of any length: one CloudEvent a line, in the JSON format. " +
		"The events are published as they come, in their order; those that are known are left out, so sending the same again is harmless. " +
		"A summary gets the range that its events have in this log. " +
		"A line that can't be imported is counted and listed, and the rest goes on, but not after 5,000 lines that are no events, or 100,000 blank ones in a row: then the answer is 422. " +
		"If the upload breaks off, what was published by then stays: send it again from the beginning."
	op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		contentTypeLines: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary", MinLength: new(1), Description: "one CloudEvent a line, of up to 8 MiB"}},
	}}
	huma.Register(h, op, a.importEvents)
}

func (a *api) importEvents(ctx context.Context, in *importInput) (*importOutput, error) {
	if err := admit(ctx, a.limits.imports, 1); err != nil {
		return nil, a.problem(err)
	}
	out := &importOutput{}
	out.Body.Problems = []LineProblem{}
	body := unboundBody(ctx)
	lines := bufio.NewReader(body)
	switch _, err := lines.Peek(1); {
	case err == io.EOF:
		return nil, huma.Error400BadRequest("request body is required")
	case err != nil:
		return nil, a.brokenOff(err, importer.Report{})
	}
	report, err := importer.ImportFrom(ctx, a.Log, "the request's body", lines, importer.Options{
		Tenant: in.Tenant,
		Format: importFormat, MaxRefused: maxRefusedLines,
		Lookup: func(ctx context.Context, list []events.Event) ([]importer.Known, error) {
			return a.known(ctx, in.Tenant, list)
		},
		Rejected: func(_ string, bad *transcript.LineError) {
			if len(out.Body.Problems) < maxLineProblems {
				out.Body.Problems = append(out.Body.Problems, LineProblem{Line: bad.Line, Reason: bad.Reason})
			}
		},
	})
	if err != nil {
		return nil, a.brokenOff(errors.Join(body.broken, err), report)
	}
	slices.SortFunc(out.Body.Problems, func(a, b LineProblem) int { return cmp.Compare(a.Line, b.Line) })
	out.Body.Read, out.Body.Published, out.Body.Duplicate, out.Body.Rejected = report.Read, report.Published, report.Duplicate, report.Rejected
	out.Body.Conversations, out.Body.Seq = report.Conversations, report.LastSeq
	return out, nil
}

// brokenOff is the problem of an import that did not come to its end. The body's own
// error comes first: it also ends the request's context.
func (a *api) brokenOff(err error, report importer.Report) error {
	var body *bodyError
	var timeout interface{ Timeout() bool }
	var problem error
	switch {
	case errors.As(err, &body) && errors.As(err, &timeout) && timeout.Timeout():
		problem = huma.Error408RequestTimeout("the upload stopped")
	case errors.As(err, &body):
		problem = huma.Error400BadRequest("the upload broke off or is damaged")
	case errors.Is(err, importer.ErrRefused), errors.Is(err, transcript.ErrBlank):
		return huma.Error422UnprocessableEntity(fmt.Sprintf("%v; %d events that came before are in the log now", err, report.Published))
	default:
		problem = a.problem(err)
	}
	var model *huma.ErrorModel
	if errors.As(problem, &model) {
		model.Detail = fmt.Sprintf("%s; %d events of it are in the log now: send the whole again to go on", model.Detail, report.Published)
	}
	return problem
}

// known asks the read model which events it knows.
func (a *api) known(ctx context.Context, tenant string, list []events.Event) ([]importer.Known, error) {
	asked := make([]lookup, len(list))
	for i, e := range list {
		asked[i] = lookup{Conversation: e.Subject, Source: e.Source, ID: e.ID}
	}
	found, err := a.holders(ctx, tenant, asked)
	if err != nil {
		return nil, err
	}
	answers := make([]importer.Known, len(found))
	for i, k := range found {
		answers[i] = importer.Known{Seq: k.Seq, Content: k.Content}
	}
	return answers, nil
}
