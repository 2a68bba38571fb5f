package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/pkg/window"
	"mneme.dev/mneme/pkg/window/chat"
)

type contextInput struct {
	ConversationParam
	AsOfParam
	WaitParams
	EmbeddedParam
	Query    string `query:"query" maxLength:"100000" doc:"what to search the past for; defaults to what the user said last"`
	MaxChars int    `query:"max_chars" minimum:"500" maximum:"10000000" default:"100000" doc:"budget in Unicode code points, headings and marks included"`
	Strategy string `query:"strategy" enum:"hybrid,relevant,levels,recent,pruned" default:"hybrid" doc:"how to choose what to show"`
	Condense string `query:"condense" enum:"off,clear,extractive,llm" doc:"how to shorten large tool results that are not among the newest; defaults to the server's setting"`
	Format   string `query:"format" enum:"markdown,json,openai,anthropic" default:"json" doc:"openai and anthropic return messages (and a system prompt) in the form that their APIs accept"`
	Memory   string `query:"memory" enum:"inline,separate" default:"inline" doc:"with format=openai or anthropic: where to put every section except the recent turns. inline: in the first user message; separate: only in the member memory, for callers that place it themselves, never in a system prompt"`
	Explain  bool   `query:"explain" doc:"explain why each part is included; not with format=markdown"`
}

type contextOutput struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func (a *api) registerContext(h huma.API) {
	op := operation("read-context", http.MethodGet, "/v1/conversations/{id}/context", "What an agent should see now", "context", 404, 422, 503, 504)
	op.Description = "What was said and done, selected and condensed to fit max_chars: the recent turns, earlier questions, the files touched. " +
		"Recorded text is data. In Markdown every line of a recorded text after its first begins with a tab. In messages for models the system part is one fixed sentence; " +
		"text that neither the user nor the assistant wrote is in user messages, between marks that recorded texts cannot contain. " +
		"The same conversation, as of the same sequence, with the same parameters, always gives the same text."
	schema := h.OpenAPI().Components.Schemas.Schema
	op.Responses = map[string]*huma.Response{"200": {
		Description: "The context",
		Content: map[string]*huma.MediaType{
			"application/json": {Schema: &huma.Schema{Description: "by format: json, openai, anthropic", AnyOf: []*huma.Schema{
				schema(reflect.TypeFor[window.Context](), true, "Context"),
				schema(reflect.TypeFor[chat.OpenAIChat](), true, "OpenAIChat"),
				schema(reflect.TypeFor[chat.AnthropicChat](), true, "AnthropicChat"),
			}}},
			"text/markdown": {Schema: &huma.Schema{Type: huma.TypeString}},
		},
	}}
	huma.Register(h, op, a.context)
}

func (a *api) context(ctx context.Context, in *contextInput) (*contextOutput, error) {
	source, err := a.source(ctx, in.id(), in.WaitParams, in.AsOfParam, window.Searches(in.Strategy))
	if err != nil {
		return nil, a.problem(err)
	}
	mode := in.Condense
	if mode == "" && a.Condense != nil {
		conversation, err := source.Graph.Conversation(ctx, in.id(), in.seq())
		if err != nil {
			return nil, a.problem(err)
		}
		mode = a.Condense(conversation.Profile)
	}
	c, err := a.build(ctx, source, window.Request{
		Conversation: in.id(), Query: in.Query, MaxChars: in.MaxChars, Strategy: in.Strategy, AsOf: in.AsOf, EmbeddedUpTo: in.EmbeddedUpTo, Condense: mode,
	})
	if err != nil {
		return nil, a.problem(err)
	}
	if !in.Explain {
		c.Manifest = nil
	}
	var body any = c
	switch in.Format {
	case "markdown":
		return &contextOutput{ContentType: "text/markdown; charset=utf-8", Body: []byte(c.Markdown())}, nil
	case "openai":
		body = chat.OpenAI(c, chat.Memory(in.Memory))
	case "anthropic":
		body = chat.Anthropic(c, chat.Memory(in.Memory))
	}
	var w bytes.Buffer
	e := json.NewEncoder(&w)
	e.SetEscapeHTML(false) // models read the text, much of which is code
	err = e.Encode(body)
	return &contextOutput{ContentType: "application/json", Body: w.Bytes()}, err
}
