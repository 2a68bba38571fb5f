package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/window"
)

// ServedContext is a context that was shown to somebody, and remembered.
type ServedContext struct {
	Seq           uint64 `json:"seq" doc:"sequence of the event that remembers it"`
	EventID       string `json:"event_id"`
	Source        string `json:"source" doc:"mneme/context-api, unless somebody else published the event"`
	Time          string `json:"time,omitempty" doc:"when it was served, RFC 3339"`
	AsOf          uint64 `json:"as_of"`
	Hash          string `json:"hash" doc:"SHA-256 of its Markdown"`
	Chars         int    `json:"chars"`
	MaxChars      int    `json:"max_chars" doc:"the budget, less the room for a frame"`
	Strategy      string `json:"strategy"`
	Query         string `json:"query,omitempty"`
	Condense      string `json:"condense,omitempty"`
	Format        string `json:"format,omitempty"`
	ProjectMemory bool   `json:"project_memory,omitempty"`
	EmbeddedUpTo  uint64 `json:"embedded_up_to,omitempty"`

	Reranked []uint64 `json:"reranked,omitempty" doc:"the sequences of the best messages, in the order that a reranker gave them"`
}

func showServed(r events.Recorded, seq uint64, p *events.ContextServed) ServedContext {
	shown := ServedContext{
		Seq: seq, EventID: r.ID, Source: r.Source, AsOf: p.AsOf, Hash: p.Hash, Chars: p.Chars, MaxChars: p.MaxChars, Strategy: p.Strategy,
		Query: p.Query, Condense: p.Condense, Format: p.Format, ProjectMemory: p.ProjectMemory, EmbeddedUpTo: p.EmbeddedUpTo, Reranked: p.Reranked,
	}
	if !r.Time.IsZero() {
		shown.Time = r.Time.UTC().Format(time.RFC3339Nano)
	}
	return shown
}

type servedListInput struct {
	ConversationParam
	WaitParams
	PageParams
}

type servedListOutput struct {
	Body struct {
		Contexts   []ServedContext `json:"contexts" doc:"oldest first"`
		NextCursor string          `json:"next_cursor,omitempty" doc:"cursor of the next page; absent if there is none"`
	}
}

type servedInput struct {
	ConversationParam
	WaitParams
	Seq uint64 `path:"seq" minimum:"1" doc:"sequence of the event that remembers the context"`
}

// RemadeContext is a remembered context, reproduced.
type RemadeContext struct {
	Served   ServedContext `json:"served"`
	Equal    bool          `json:"equal" doc:"the context made now has the hash of the one that was served"`
	Hash     string        `json:"hash" doc:"SHA-256 of the Markdown made now"`
	Markdown string        `json:"markdown" doc:"the context made now"`
}

func (a *api) registerServed(h huma.API) {
	list := operation("list-contexts", http.MethodGet, "/v1/conversations/{id}/contexts", "List the contexts that were shown", "context", 404, 422, 503, 504)
	list.Description = "The contexts of the conversation that were requested with record=true, with their parameters and hashes."
	serve(a, h, list, a.servedList)
	show := operation("show-context", http.MethodGet, "/v1/conversations/{id}/contexts/{seq}", "Rebuild a context that was shown", "context", 404, 422, 503, 504)
	show.Description = "Builds the context with the remembered parameters as of the remembered sequence, and compares its hash. They differ if a source was erased or summaries were lost, if another version of the program chooses differently, or if the remembered event is false."
	serve(a, h, show, a.served)
}

// kindServed is the kind of the events that remember contexts.
var kindServed = events.Kind(events.TypeContextServed)

// beginRecord refuses a record that the sender may not make, and fixes the sequence of a context
// of the newest state, so that it can be reproduced.
func (a *api) beginRecord(ctx context.Context, in *contextInput) error {
	if grant := access.Of(ctx); grant != nil && grant.Role < access.Write {
		return forbidden(fmt.Sprintf("record=true needs the role write, and the token has %s", grant.Role), "query.record")
	}
	r, _ := humago.Unwrap(exchangeOf(ctx).huma)
	write := r.Clone(ctx)
	write.Method = http.MethodPost // a page of another site may read, but not write
	if http.NewCrossOriginProtection().Check(write) != nil {
		return forbidden("a browser sent this for a page of another site, and such pages may not write here", "query.record")
	}
	r.Header.Del("If-None-Match") // this is a new fact, even if the text is known
	if in.AsOf != 0 {
		return nil
	}
	v, err := a.pins(ctx).Open(ctx, in.id(), in.at(in.AsOfParam))
	if err != nil {
		return err
	}
	c, err := v.Graph().Conversation(ctx, in.id(), in.seq())
	if err != nil {
		return err
	}
	in.AsOf, in.AtLeast = c.LastSeq, 0 // at_least is reached
	return nil
}

// maxServedQuery is how much of a query counts in a context.
const maxServedQuery = 2_000

// recordContext stores that a context is served, and returns the sequence of that event.
func (a *api) recordContext(ctx context.Context, in *contextInput, c *window.Context) (string, error) {
	p := &events.ContextServed{
		AsOf: c.AsOf, Hash: c.Manifest.Hash, Chars: c.Chars, MaxChars: c.MaxChars, Strategy: c.Strategy, Query: plain.Prefix(in.Query, maxServedQuery),
		Condense: c.Manifest.Settings.Condense, ProjectMemory: c.Manifest.Settings.ProjectMemory, Format: in.Format, EmbeddedUpTo: in.EmbeddedUpTo,
	}
	if s := c.Manifest.Search; s != nil {
		p.EmbeddedUpTo = s.EmbeddedUpTo
		if s.Reranked != nil {
			p.Reranked = s.Reranked.Order
		}
	}
	w, err := a.newWrite(ctx, in.id(), "", p)
	if err != nil {
		return "", err
	}
	if err := w.take(ctx); err != nil {
		return "", err
	}
	ack, err := a.Log.Publish(ctx, in.Tenant, w.event)
	if err != nil {
		return "", err
	}
	return strconv.FormatUint(ack.Seq, 10), nil
}

func (a *api) servedList(ctx context.Context, in *servedListInput) (*servedListOutput, error) {
	s := scopeOf("list-contexts", in.Tenant, in.ID)
	from, err := s.start(in.Cursor)
	if err != nil {
		return nil, err
	}
	if _, err := a.pins(ctx).Open(ctx, in.id(), in.at(AsOfParam{})); err != nil { // for a conversation that is unknown or deleted
		return nil, err
	}
	out := &servedListOutput{}
	out.Body.Contexts = []ServedContext{}
	out.Body.NextCursor, err = a.eachOfKind(ctx, in.id(), kindServed, s, from, in.Limit, func(r *events.Recorded, seq uint64) {
		if p, ok := r.Payload.(*events.ContextServed); ok {
			out.Body.Contexts = append(out.Body.Contexts, showServed(*r, seq, p))
		}
	})
	return out, err
}

// eachOfKind reads a page of a conversation's events of one kind from the log, oldest first. It returns the cursor of
// the next page, "" if there is none.
func (a *api) eachOfKind(ctx context.Context, id events.ConversationID, kind string, s scope, from uint64, limit int, yield func(*events.Recorded, uint64)) (next string, err error) {
	for n := 0; ; n++ {
		m, err := a.Log.NextOfKind(ctx, id.Tenant, id.ID, kind, from)
		if errors.Is(err, eventlog.ErrNotFound) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		if n == limit {
			return s.next(from), nil
		}
		from = m.Seq + 1
		if r, _, err := m.Decode(); err == nil {
			yield(&r, m.Seq)
		}
	}
}

func (a *api) served(ctx context.Context, in *servedInput) (*output[RemadeContext], error) {
	missing := huma.Error404NotFound(fmt.Sprintf("no context of conversation %q was remembered at sequence %d: see GET /v1/conversations/{id}/contexts", in.ID, in.Seq))
	m, err := a.Log.Get(ctx, in.Seq)
	if errors.Is(err, eventlog.ErrNotFound) {
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	r, address, err := m.Decode()
	p, ok := r.Payload.(*events.ContextServed)
	if err != nil || !ok || address.Tenant != in.Tenant || address.Conversation != in.ID {
		return nil, missing
	}
	memory := "off"
	if p.ProjectMemory {
		memory = "on"
	}
	c, err := a.contextOf(ctx, &contextInput{
		ConversationParam: in.ConversationParam, AsOfParam: AsOfParam{AsOf: p.AsOf}, WaitParams: in.WaitParams, EmbeddedParam: EmbeddedParam{EmbeddedUpTo: p.EmbeddedUpTo},
		RerankParams: RerankParams{Rerank: "false", Reranked: p.Reranked},
		Query:        p.Query, MaxChars: p.MaxChars, Strategy: p.Strategy, Condense: p.Condense, ProjectMemory: memory,
	})
	if err != nil {
		return nil, err
	}
	return &output[RemadeContext]{Body: RemadeContext{Served: showServed(r, in.Seq, p), Equal: c.Manifest.Hash == p.Hash, Hash: c.Manifest.Hash, Markdown: c.Markdown()}}, nil
}
