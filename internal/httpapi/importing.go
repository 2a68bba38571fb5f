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

	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/transcript"
)

// contentTypeLines is the media type of JSON with one value per line.
const contentTypeLines = "application/x-ndjson"

// maxLineProblems is the maximum number of refused lines that an import lists.
const maxLineProblems = 100

// maxRefusedLines is the number of invalid lines after which an import is aborted: a
// few kilobytes of gzip can hold millions of them.
const maxRefusedLines = 5000

// importFormat is the format that an import over HTTP reads and an export writes.
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
		Duplicate     int           `json:"duplicate" doc:"events that were known already; they were not stored again"`
		Rejected      int           `json:"rejected" doc:"lines that are not a valid event, or contradict a known one"`
		Conversations int           `json:"conversations"`
		Seq           uint64        `json:"seq" doc:"the highest published sequence: pass it as at_least to see all these events"`
		Problems      []LineProblem `json:"problems" doc:"at most 100 of the rejected lines, in order; only the first one of a deleted conversation"`
	}
}

func (a *api) registerImport(h huma.API) {
	op := operation("import", http.MethodPost, "/v1/import", "Import events", "events", 507)
	op.Description = "Imports an export of any length: one CloudEvent per line, in the JSON format. " +
		"Events are published as they arrive, in their order. Known events are skipped, so it is safe to send them again. " +
		"A summary gets the range that its events have in this log. " +
		"A line that can't be imported is counted and listed, and the import continues. After 5,000 invalid lines, or 100,000 consecutive blank ones, it stops with 422. " +
		"If the upload breaks off, the events published so far are kept: send the whole export again."
	op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		contentTypeLines: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary", MinLength: new(1), Description: "one CloudEvent per line, each up to 8 MiB"}},
	}}
	serve(a, h, op, a.importEvents)
}

func (a *api) importEvents(ctx context.Context, in *importInput) (*importOutput, error) {
	if err := a.admitImport(ctx, in.Tenant); err != nil {
		return nil, err
	}
	out := &importOutput{}
	out.Body.Problems = []LineProblem{}
	body := unboundBody(ctx)
	lines := bufio.NewReader(a.Quotas.Reader(ctx, in.Tenant, body))
	switch _, err := lines.Peek(1); {
	case err == io.EOF:
		return nil, huma.Error400BadRequest("request body is required")
	case err != nil:
		return nil, a.brokenOff(err, importer.Report{})
	}
	refused := func(_ string, bad *transcript.LineError) {
		if len(out.Body.Problems) < maxLineProblems {
			out.Body.Problems = append(out.Body.Problems, LineProblem{Line: bad.Line, Reason: bad.Reason})
		}
	}
	report, err := importer.ImportFrom(ctx, a.Log, "the request's body", lines, importer.Options{
		Tenant: in.Tenant,
		Format: importFormat, MaxRefused: maxRefusedLines,
		Lookup:   importer.Lookup(in.Tenant, a.Models.Graph),
		Admit:    func(count, size int) (func(), error) { return a.hold(in.Tenant, count, size) },
		Rejected: refused, Deleted: refused,
	})
	if err != nil {
		return nil, a.brokenOff(errors.Join(body.broken, err), report)
	}
	slices.SortFunc(out.Body.Problems, func(a, b LineProblem) int { return cmp.Compare(a.Line, b.Line) })
	out.Body.Read, out.Body.Published, out.Body.Duplicate, out.Body.Rejected = report.Read, report.Published, report.Duplicate, report.Rejected+report.Deleted
	out.Body.Conversations, out.Body.Seq = report.Conversations, report.LastSeq
	return out, nil
}

// brokenOff returns the problem of an import that ended early. It checks the body's error
// first, because that also cancels the request's context.
func (a *api) brokenOff(err error, report importer.Report) error {
	var body *bodyError
	var timeout interface{ Timeout() bool }
	var problem error
	switch {
	case errors.As(err, &body) && errors.As(err, &timeout) && timeout.Timeout():
		problem = huma.Error408RequestTimeout("the upload stopped")
	case errors.As(err, &body):
		problem = huma.Error400BadRequest("the upload is incomplete or damaged")
	case errors.Is(err, importer.ErrRefused), errors.Is(err, transcript.ErrBlank):
		return huma.Error422UnprocessableEntity(fmt.Sprintf("%v; %d events that came before are in the log now", err, report.Published))
	default:
		problem = a.problem(err)
	}
	if model, ok := errors.AsType[*huma.ErrorModel](problem); ok {
		model.Detail = fmt.Sprintf("%s; at least %d of its events are in the log now: send all of it again to continue", model.Detail, report.Published)
	}
	return problem
}
