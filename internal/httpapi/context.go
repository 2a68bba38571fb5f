package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/internal/frame"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/window"
	"mneme.dev/mneme/pkg/window/chat"
)

type contextInput struct {
	ConversationParam
	AsOfParam
	WaitParams
	EmbeddedParam
	RerankParams
	RewriteParam
	Query         string `query:"query" maxLength:"100000" doc:"what to search the past for; defaults to what the user said last"`
	MaxChars      int    `query:"max_chars" minimum:"500" maximum:"10000000" default:"100000" doc:"budget in Unicode code points, headings and marks included"`
	Strategy      string `query:"strategy" enum:"hybrid,relevant,levels,recent,pruned" default:"hybrid" doc:"how to choose what to show"`
	Condense      string `query:"condense" enum:"off,clear,extractive,llm" doc:"how to shorten large tool results that are not among the newest; defaults to the server's setting"`
	Format        string `query:"format" enum:"markdown,json,openai,anthropic" default:"json" doc:"openai and anthropic return messages (and a system prompt) in the form that their APIs accept"`
	Memory        string `query:"memory" enum:"inline,separate" default:"inline" doc:"with format=openai or anthropic: where to put every section except the recent turns. inline: in the first user message; separate: only in the member memory, for callers that place it themselves, never in a system prompt"`
	ProjectMemory string `query:"project_memory" enum:"on,off" doc:"on: with strategy=hybrid, a young conversation, one that does not fill max_chars, also sees what earlier sessions of its project left; defaults to the server's setting"`
	Frame         bool   `query:"frame" doc:"with format=markdown: put the text into <mneme-context id seq>, which says that it is reference data. mneme removes such frames from what agents record; max_chars includes it"`
	ExplainParam
	Follow          uint64 `query:"follow" doc:"with explain=candidates: the sequence of an event; the manifest's member followed says which section shows it, or how large the budget would have to be"`
	Record          bool   `query:"record" doc:"remember that this context was served, as a small event: see GET /v1/conversations/{id}/contexts. Needs the role write"`
	IncludeMarkdown bool   `query:"include_markdown" doc:"with format=json: add the member markdown, the text in which the manifest's ranges are"`
}

// ExplainParam asks for the manifest of a context.
type ExplainParam struct {
	Explain string `query:"explain" enum:"false,true,candidates" default:"false" doc:"true: add the manifest, which says why each part is included, and where it is in the Markdown; candidates: also what each section considered and left out, at most 50 items of each section, and the larger budget that would show each. Not with format=markdown"`
}

func (p *ExplainParam) explains() bool { return p.Explain != explainNothing }

// Values of ExplainParam.
const (
	explainNothing    = "false"
	explainCandidates = "candidates"
)

type contextOutput struct {
	ContentType string `header:"Content-Type"`
	Recorded    string `header:"Mneme-Context-Seq" doc:"with record=true: sequence of the event that remembers this context"`
	Body        []byte
}

func (a *api) registerContext(h huma.API) {
	op := operation("read-context", http.MethodGet, "/v1/conversations/{id}/context", "What an agent should see now", "context", 404, 422, 503, 504)
	op.Description = "What was said and done, selected and condensed to fit max_chars: the recent turns, earlier questions, the files touched. " +
		"Recorded text is data. In Markdown every line of a recorded text after its first begins with a tab. In messages for models the system part is one fixed sentence; " +
		"text that neither the user nor the assistant wrote is in user messages, between marks that recorded texts cannot contain. " +
		"The same conversation, as of the same sequence, with the same parameters, always gives the same text. If an embedding or reranking endpoint is used, embedded_up_to and reranked repeat what it contributed."
	op.Responses = contextResponses(h)
	serve(a, h, op, a.context)
}

// contextResponses describes a context in each of its formats.
func contextResponses(h huma.API) map[string]*huma.Response {
	schema := h.OpenAPI().Components.Schemas.Schema
	return map[string]*huma.Response{"200": {
		Description: "The context",
		Content: map[string]*huma.MediaType{
			"application/json": {Schema: &huma.Schema{Description: "by format: json, openai, anthropic", AnyOf: []*huma.Schema{
				schema(reflect.TypeFor[Context](), true, "Context"),
				schema(reflect.TypeFor[chat.OpenAIChat](), true, "OpenAIChat"),
				schema(reflect.TypeFor[chat.AnthropicChat](), true, "AnthropicChat"),
			}}},
			"text/markdown": {Schema: &huma.Schema{Type: huma.TypeString}},
		},
	}}
}

func (a *api) context(ctx context.Context, in *contextInput) (*contextOutput, error) {
	if err := frameable(in.Frame, in.Format, in.MaxChars); err != nil {
		return nil, err
	}
	if in.Follow > 0 && in.Explain != explainCandidates {
		return nil, huma.Error422UnprocessableEntity("follow needs explain=candidates", &huma.ErrorDetail{Location: "query.follow", Message: "add explain=candidates"})
	}
	in.Record = in.Record && exchangeOf(ctx).huma.Method() != http.MethodHead // which must not change anything
	if in.Record {
		if err := a.beginRecord(ctx, in); err != nil {
			return nil, err
		}
	}
	c, err := a.contextOf(ctx, in)
	if err != nil {
		return nil, err
	}
	recorded := ""
	if in.Record {
		if recorded, err = a.recordContext(ctx, in, c); err != nil {
			return nil, err
		}
	}
	out, err := form{format: in.Format, memory: in.Memory, framed: in.Frame, explained: in.explains(), markdown: in.IncludeMarkdown}.show(c)
	if out != nil {
		out.Recorded = recorded
	}
	return out, err
}

// contextOf builds a context. Its manifest has the settings if the request asks for
// an explanation, or for a record.
func (a *api) contextOf(ctx context.Context, in *contextInput) (*window.Context, error) {
	earlierWithin := 0
	if in.Strategy == window.StrategyHybrid && (in.ProjectMemory == "on" || in.ProjectMemory == "" && !a.ProjectMemoryOff) {
		earlierWithin = in.MaxChars
	}
	var loads []load
	if window.Searches(in.Strategy) {
		loads = []load{(*view.View).Load}
	}
	rerank, err := a.reranking(in.RerankParams)
	if err != nil {
		return nil, err
	}
	if err := a.rewritable(in.RewriteParam, in.Query); err != nil {
		return nil, err
	}
	var rewritten *window.Rewritten
	mode := in.Condense
	source, err := a.source(ctx, in.id(), in.WaitParams, in.AsOfParam, needs{
		loads: loads, asks: rerank.Wanted || in.Rewrite, coded: in.Strategy == window.StrategyHybrid, earlierWithin: earlierWithin,
		found: func(own *graph.Conversation) (more string, err error) {
			if mode == "" && a.Condense != nil {
				mode = a.Condense(own.Profile)
			}
			// A record of the context has the query as it was used, so that the context can be reproduced without the model.
			in.Query, rewritten, err = a.rewrite(ctx, in.Tenant, in.RewriteParam, in.Query)
			return mode, err
		},
	})
	if err != nil {
		return nil, err
	}
	c, err := a.build(ctx, source, window.Request{
		Conversation: in.id(), Query: in.Query, MaxChars: roomWithin(in.MaxChars, in.Frame), Strategy: in.Strategy, AsOf: in.AsOf, EmbeddedUpTo: in.EmbeddedUpTo, Rerank: rerank, Condense: mode,
		Candidates: in.Explain == explainCandidates, Follow: in.Follow,
	})
	if err != nil {
		return nil, err
	}
	if in.explains() || in.Record {
		c.Manifest.Rewritten = rewritten
		c.Manifest.Settings = &window.Settings{Query: in.Query, Condense: cmp.Or(mode, window.CondenseExtractive), ProjectMemory: earlierWithin > 0}
	}
	return c, nil
}

// frameable refuses a frame around messages for models, which have marks of their own, and one that leaves no room.
func frameable(framed bool, format string, maxChars int) error {
	switch {
	case framed && format != "markdown":
		return huma.Error422UnprocessableEntity("frame=true needs format=markdown", &huma.ErrorDetail{Location: "query.frame", Message: "needs format=markdown", Value: true})
	case framed && maxChars < minFramed:
		return huma.Error422UnprocessableEntity(fmt.Sprintf("with frame=true max_chars must be at least %d", minFramed), &huma.ErrorDetail{Location: "query.max_chars", Message: "is too small for a frame", Value: maxChars})
	}
	return nil
}

// minFramed is the smallest budget of a context with a frame.
const minFramed = 800

// roomWithin returns what a frame leaves of a budget.
func roomWithin(maxChars int, framed bool) int {
	if framed {
		return maxChars - frame.Room - 1
	}
	return maxChars
}

// Context is a context as data and, if that is asked for, as text.
type Context struct {
	*window.Context
	Markdown *string `json:"markdown,omitempty" doc:"with include_markdown: the text in which the manifest's ranges are"`
}

// form is how a request wants a context shown.
type form struct {
	format    string // markdown, json, openai or anthropic
	memory    string // of messages for models: where sections go, see [chat.Memory]
	framed    bool   // in Markdown: within a frame
	explained bool   // with the manifest
	markdown  bool   // in JSON: with the Markdown too
}

// show returns a context in this form.
func (f form) show(c *window.Context) (*contextOutput, error) {
	if f.explained {
		c.MarkRanges()
	} else {
		c.Manifest = nil
	}
	body := any(Context{Context: c})
	if f.markdown {
		body = Context{c, new(c.Markdown())}
	}
	switch f.format {
	case "markdown":
		text := c.Markdown()
		if f.framed && text != "" {
			text = frame.Wrap(c.Mark(), c.AsOf, strings.TrimSuffix(text, "\n")) + "\n"
		}
		return &contextOutput{ContentType: "text/markdown; charset=utf-8", Body: []byte(text)}, nil
	case "openai":
		body = chat.OpenAI(c, chat.Memory(f.memory))
	case "anthropic":
		body = chat.Anthropic(c, chat.Memory(f.memory))
	}
	var w bytes.Buffer
	e := json.NewEncoder(&w)
	e.SetEscapeHTML(false) // models read the text, much of which is code
	err := e.Encode(body)
	return &contextOutput{ContentType: "application/json", Body: w.Bytes()}, err
}
