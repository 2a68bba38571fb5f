package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/pkg/window"
)

// Found is a message that a search found.
type Found struct {
	Row
	MessageID string `json:"message_id"`
	Role      string `json:"role" enum:"user,assistant,system"`
	Speaker   string `json:"speaker,omitempty"`
	Session   string `json:"session,omitempty"`
	Text      string `json:"text" doc:"its content, or an excerpt around its best passage, with […] for omissions"`
	window.Match
}

type searchConversationInput struct {
	ConversationParam
	AsOfParam
	WaitParams
	EmbeddedParam
	Query    string `query:"query" required:"true" minLength:"1" maxLength:"100000" doc:"what to search for, in words"`
	Limit    int    `query:"limit" minimum:"1" maximum:"1000" default:"20" doc:"maximum number of messages"`
	MaxChars int    `query:"max_chars" minimum:"100" maximum:"100000" default:"600" doc:"maximum length of the text of each message, in Unicode code points"`
}

type searchConversationOutput struct {
	Body struct {
		Messages  []Found `json:"messages" doc:"best first"`
		Embedding string  `json:"embedding_model,omitempty" doc:"the model whose embeddings took part in the ranking; absent if only words did"`
		Missing   string  `json:"embedding_missing,omitempty" doc:"which embeddings did not take part in the ranking, and why"`
		Embedded  uint64  `json:"embedded_up_to,omitempty" doc:"sequence of the last message whose vectors took part; absent with built-in embeddings, which all messages have"`
	}
}

func (a *api) registerSearch(h huma.API) {
	op := operation("search-conversation", http.MethodGet, "/v1/conversations/{id}/search", "Search the messages of a conversation", "messages", 404, 422, 503, 504)
	op.Description = "Messages are ranked like the relevant past of a context: by their words, their meaning and their surroundings, and by the speaker or time that the query names. Tool results are not searched."
	huma.Register(h, op, a.searchConversation)
	a.registerSearchAll(h)
}

func (a *api) searchConversation(ctx context.Context, in *searchConversationInput) (*searchConversationOutput, error) {
	source, _, err := a.source(ctx, in.id(), in.WaitParams, in.AsOfParam, true, 0)
	if err != nil {
		return nil, a.problem(err)
	}
	hits, found, err := window.Search(ctx, source, window.SearchQuery{
		Conversation: in.id(), Text: in.Query, AsOf: in.AsOf, EmbeddedUpTo: in.EmbeddedUpTo, Limit: in.Limit, MaxChars: in.MaxChars,
	})
	if err != nil {
		return nil, a.problem(err)
	}
	out := &searchConversationOutput{}
	out.Body.Embedding, out.Body.Missing, out.Body.Embedded = found.Model, found.Missing, found.EmbeddedUpTo
	out.Body.Messages = each(hits, showFound)
	return out, nil
}

func showFound(hit window.Hit) Found {
	return Found{
		Row: rowOf(hit.Position, hit.Origin), MessageID: hit.MessageID, Role: hit.Role, Speaker: hit.Speaker, Session: hit.Session,
		Text: hit.Text, Match: hit.Match,
	}
}
