package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"go.opentelemetry.io/otel/trace"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/audit"
)

// Audit is the audit log.
type Audit interface {
	// Change stores that a change begins. Without an error, end is called when it has taken effect or failed.
	Change(ctx context.Context, e audit.Entry) (end func(status int), err error)
	// Read notes a read or a refusal, and never waits.
	Read(e audit.Entry)
	List(ctx context.Context, q audit.Query) (audit.Page, error)
}

// audited is the middleware that writes the audit log, as the table of the package access says. It comes after those that
// refuse a request.
func (a *api) audited(h huma.API) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		need := access.Routes[ctx.Operation().OperationID]
		x := exchangeOf(ctx.Context())
		switch need.Audit {
		case access.AuditRead:
			e := entryOf(ctx, need, nil)
			x.worked = append(x.worked, func() {
				e.Status, e.Outcome = ctx.Status(), audit.OutcomeOf(ctx.Status())
				a.Audit.Read(e)
			})
		case access.AuditChange:
			end, err := a.Audit.Change(ctx.Context(), entryOf(ctx, need, peek(ctx)))
			if err != nil {
				a.Logger.ErrorContext(ctx.Context(), "a change was refused, because the audit log can't record it", "operation", ctx.Operation().OperationID, "error", err)
				ctx.SetHeader("Retry-After", later().Get("Retry-After"))
				_ = huma.WriteErr(h, ctx, http.StatusServiceUnavailable, "nothing was changed: the audit log takes no entry now, and without one nothing may be changed; try again")
				return
			}
			x.worked = append(x.worked, func() {
				if !x.streams {
					end(ctx.Status())
				}
			})
			x.ended = append(x.ended, func() {
				if x.streams {
					end(cmp.Or(x.told, ctx.Status()))
				}
			})
		}
		next(ctx)
	}
}

// auditRefusal notes that the rights of a token do not allow a request.
func (a *api) auditRefusal(ctx huma.Context, status int) {
	need := access.Routes[ctx.Operation().OperationID]
	if need.Audit == access.AuditNone || status != http.StatusForbidden || access.Of(ctx.Context()) == nil {
		return
	}
	e := entryOf(ctx, need, nil)
	e.Status, e.Outcome = status, audit.Refused
	a.Audit.Read(e)
}

// auditCall records a tool call in the audit log.
func (a *api) auditCall(ctx context.Context, call, tenant, outcome string) {
	e := newEntry(ctx, audit.ViaMCP, call)
	e.Tenant, e.Outcome = tenant, audit.Failed
	if outcome == "ok" {
		e.Outcome = audit.Done
	}
	a.Audit.Read(e)
}

// newEntry returns what an entry says about any request.
func newEntry(ctx context.Context, via, action string) audit.Entry {
	e := audit.Entry{Time: time.Now().UTC(), Via: via, Action: action}
	if id := trace.SpanContextFromContext(ctx).TraceID(); id.IsValid() {
		e.Request = id.String()
	} else {
		e.Request = audit.NewRequest()
	}
	if grant := access.Of(ctx); grant != nil {
		e.Subject, e.Role = cut(grant.Subject), grant.Role.String()
	}
	return e
}

// entryOf returns the entry for a request. body has the members of its body, nil if that is of no interest.
func entryOf(ctx huma.Context, need access.Need, body map[string]any) audit.Entry {
	op := ctx.Operation()
	e := newEntry(ctx.Context(), audit.ViaHTTP, op.OperationID)
	r, _ := humago.Unwrap(ctx)
	query := r.URL.Query()
	value := func(name string) any {
		if body[name] != nil {
			return body[name]
		}
		for _, p := range op.Parameters {
			switch {
			case p.Name != name:
			case p.In == "path":
				return ctx.Param(name)
			case query.Get(name) != "":
				return query.Get(name)
			case p.Schema.Default != nil:
				return p.Schema.Default
			}
		}
		return nil
	}
	if grant := access.Of(ctx.Context()); grant != nil && !grant.AllTenants {
		e.Tenant = grant.Tenant // a body may name another, and is refused later
	} else if tenant, ok := value("tenant").(string); ok {
		e.Tenant = cut(tenant)
	}
	var about []string
	for _, name := range need.Target {
		if text := targetOf(name, value(name)); text != "" {
			about = append(about, text)
		}
	}
	e.Target = strings.Join(about, " ")
	return e
}

// targetOf returns how an entry says what a request is about: "conversation:ID", or the name of a member that is true.
func targetOf(name string, value any) string {
	if name == "id" {
		name = "conversation"
	}
	switch v := value.(type) {
	case nil:
		return ""
	case bool:
		if !v {
			return ""
		}
		return name
	case string:
		switch name {
		case "project":
			return audit.Project(v)
		case "into":
			return "into-" + audit.Project(v)
		case "before":
			if v == zeroTime {
				return ""
			}
		}
		return name + ":" + url.PathEscape(cut(v))
	}
	return cut(fmt.Sprint(name, ":", value))
}

// zeroTime is how Go clients send a time that is not set.
var zeroTime = time.Time{}.Format(time.RFC3339)

// cut bounds what a client sent, so that the entry is stored.
func cut(text string) string { return strings.ToValidUTF8(text[:min(len(text), 512)], "") }

// peek returns the members of a small JSON body, and leaves the body for the handler to read. A body that can't be read
// has no members: the handler refuses it.
func peek(ctx huma.Context) (members map[string]any) {
	most := ctx.Operation().MaxBodyBytes
	if ctx.Operation().RequestBody == nil || most <= 0 {
		return nil
	}
	r, _ := humago.Unwrap(ctx)
	body := r.Body.(*requestBody)
	raw, err := io.ReadAll(io.LimitReader(body, most+1))
	again := io.Reader(bytes.NewReader(raw))
	if err != nil {
		again = io.MultiReader(again, broken{err})
	}
	body.ReadCloser, body.take = struct {
		io.Reader
		io.Closer
	}{again, body.ReadCloser}, nil // take is nil: the memory for these bytes was granted when they were first read
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	_ = decoder.Decode(&members)
	return members
}

// broken is the end of a body that could not be read.
type broken struct{ error }

// Read implements io.Reader.
func (b broken) Read([]byte) (int, error) { return 0, b.error }

type auditInput struct {
	Tenant  string    `query:"tenant" maxLength:"128" doc:"only entries about this tenant; all if absent"`
	Since   time.Time `query:"since" doc:"only from this time on"`
	Action  string    `query:"action" maxLength:"128" doc:"only this action, such as erase"`
	Subject string    `query:"subject" maxLength:"512" doc:"only of this subject, such as token:3f2a9c01b7de"`
	Project string    `query:"project" maxLength:"512" doc:"only about this project, by the name that the request gave"`
	After   uint64    `query:"after" doc:"next_after of the previous page"`
	Limit   int       `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"maximum number of entries"`
}

type auditOutput struct {
	Body struct {
		Entries   []AuditEntry `json:"entries" doc:"the oldest first; a page may be empty and still have a next one"`
		NextAfter uint64       `json:"next_after" doc:"pass it as after to get the next page; at the end, to get what comes later"`
		More      bool         `json:"more" doc:"there are more entries now"`
	}
}

// AuditEntry is an entry of the audit log: who did what.
type AuditEntry struct {
	Seq     uint64    `json:"seq"`
	Time    time.Time `json:"time"`
	Tenant  string    `json:"tenant,omitempty" doc:"absent if the entry is not about one tenant"`
	Subject string    `json:"subject,omitempty" doc:"token:ID, oidc:SUBJECT, os:USER for a command, or mneme; absent if the server asked for no token"`
	Role    string    `json:"role,omitempty" doc:"of the token"`
	Via     string    `json:"via" enum:"http,mcp,cli,server"`
	Action  string    `json:"action" doc:"the id of an operation of this API, the name of a tool, or tokens-create, tokens-revoke, restore, partitions or entries-lost"`
	Target  string    `json:"target,omitempty" doc:"what it was about, such as conversation:ID; a project is a hash of its name"`
	Outcome string    `json:"outcome" enum:"begun,done,refused,failed" doc:"begun: a change that is about to take effect; another entry of the same request says how it ended"`
	Status  int       `json:"status,omitempty" doc:"of the answer over HTTP"`
	Request string    `json:"request,omitempty" doc:"the same for all entries of a request; the id of its trace, if it has one"`
	Count   int       `json:"count,omitempty" doc:"how often it was repeated since the previous entry; absent if it was not"`
}

func (a *api) registerAudit(h huma.API) {
	list := operation("list-audit", http.MethodGet, "/v1/audit", "List who changed what, and who read across conversations", "operations", 422, 503)
	list.Description = "Entries hold no content. GET /openapi.json says for each operation whether it is audited (`x-mneme-access.audit`)."
	serve(a, h, list, a.listAudit)
}

func (a *api) listAudit(ctx context.Context, in *auditInput) (*auditOutput, error) {
	page, err := a.Audit.List(ctx, audit.Query{Tenant: in.Tenant, Since: in.Since, Action: in.Action, Subject: in.Subject, Project: in.Project, After: in.After, Limit: in.Limit})
	if err != nil {
		a.Logger.ErrorContext(ctx, "the audit log can't be read", "error", err)
		return nil, huma.ErrorWithHeaders(huma.Error503ServiceUnavailable("the audit log can't be read now: try again"), later())
	}
	out := &auditOutput{}
	out.Body.NextAfter, out.Body.More = page.Next, page.More
	out.Body.Entries = each(page.Entries, func(e audit.Stored) AuditEntry {
		return AuditEntry{
			Seq: e.Seq, Time: e.Time, Tenant: e.Tenant, Subject: e.Subject, Role: e.Role, Via: e.Via, Action: e.Action, Target: e.Target,
			Outcome: string(e.Outcome), Status: e.Status, Request: e.Request, Count: e.Count,
		}
	})
	return out, nil
}
