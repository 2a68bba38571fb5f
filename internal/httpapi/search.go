package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/pkg/recall"
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
	Ranks *window.Ranks `json:"ranks,omitempty" doc:"with ranks=true: its place in the results of each method, from 1; absent beyond 1,000"`
}

type searchConversationInput struct {
	ConversationParam
	AsOfParam
	WaitParams
	EmbeddedParam
	Query    string    `query:"query" required:"true" minLength:"1" maxLength:"100000" doc:"what to search for, in words"`
	Limit    int       `query:"limit" minimum:"1" maximum:"1000" default:"20" doc:"maximum number of messages"`
	MaxChars int       `query:"max_chars" minimum:"100" maximum:"100000" default:"600" doc:"maximum length of the text of each message, in Unicode code points"`
	Method   string    `query:"method" enum:"fused,words,meaning" default:"fused" doc:"what to rank by. fused: as a context does; words: BM25 alone; meaning: the cosine of the embeddings alone"`
	Ranks    bool      `query:"ranks" doc:"also show the place of each message by each method"`
	Role     string    `query:"role" enum:"user,assistant,system" doc:"only messages of this role"`
	Speaker  string    `query:"speaker" maxLength:"512" doc:"only messages of this speaker"`
	FromSeq  uint64    `query:"from_seq" doc:"only messages from this sequence on"`
	ToSeq    uint64    `query:"to_seq" doc:"only messages up to this sequence"`
	FromTurn int       `query:"from_turn" minimum:"0" doc:"only messages from this turn on"`
	ToTurn   int       `query:"to_turn" minimum:"0" doc:"only messages up to this turn; 0 means no limit"`
	Since    time.Time `query:"since" doc:"only messages from this time on (RFC 3339)"`
	Until    time.Time `query:"until" doc:"only messages before this time (RFC 3339)"`
	Contains []string  `query:"contains,explode" maxItems:"16" doc:"only messages that contain this phrase, in any case, as whole words; with * at its end, the last word may go on. May be given more than once: all must be there"`
	Without  []string  `query:"without,explode" maxItems:"16" doc:"only messages that do not contain this phrase; may be given more than once"`
	Cursor   string    `query:"cursor" doc:"next_cursor of the previous page; requires the same query, method and filters. With as_of, pages do not shift when messages come"`
}

// keep returns which messages the filters keep.
func (in *searchConversationInput) keep() window.Filter {
	return window.Filter{
		Role: in.Role, Speaker: in.Speaker, FromSeq: in.FromSeq, ToSeq: in.ToSeq, FromTurn: in.FromTurn, ToTurn: in.ToTurn,
		Since: in.Since, Until: in.Until, Contains: in.Contains, Without: in.Without,
	}
}

// maxSearchPages bounds how far down the cursor of a search goes, in messages.
const maxSearchPages = 20_000

type searchConversationOutput struct {
	Body struct {
		NextCursor string `json:"next_cursor,omitempty" doc:"cursor of the next page; absent if there is none"`

		Messages  []Found `json:"messages" doc:"best first"`
		Embedding string  `json:"embedding_model,omitempty" doc:"the model whose embeddings took part in the ranking; absent if only words did"`
		Missing   string  `json:"embedding_missing,omitempty" doc:"which embeddings did not take part in the ranking, and why"`
		Embedded  uint64  `json:"embedded_up_to,omitempty" doc:"sequence of the last message whose vectors took part; absent with built-in embeddings, which all messages have"`
	}
}

// methods are the values of the parameter method.
var methods = map[string]recall.Method{"fused": recall.Fused, "words": recall.ByWords, "meaning": recall.ByMeaning}

func (a *api) registerSearch(h huma.API) {
	op := operation("search-conversation", http.MethodGet, "/v1/conversations/{id}/search", "Search the messages of a conversation", "messages", 404, 422, 503, 504)
	op.Description = "Messages are ranked like the relevant past of a context: by their words, their meaning and their surroundings, and by the speaker or time that the query names. Tool results are not searched."
	huma.Register(h, op, a.searchConversation)
	a.registerSearchAll(h)
}

func (a *api) searchConversation(ctx context.Context, in *searchConversationInput) (*searchConversationOutput, error) {
	scope := scopeOf("search-conversation", in.Tenant, in.ID, in.Query, in.Method, fmt.Sprintf("%#v", in.keep()), strconv.FormatUint(in.AsOf, 10))
	from, err := scope.start(in.Cursor)
	if err != nil {
		return nil, err
	}
	source, err := a.source(ctx, in.id(), in.WaitParams, in.AsOfParam, true, 0)
	if err != nil {
		return nil, a.problem(err)
	}
	hits, found, next, err := window.Search(ctx, source, window.SearchQuery{
		Conversation: in.id(), Text: in.Query, AsOf: in.AsOf, EmbeddedUpTo: in.EmbeddedUpTo, Limit: in.Limit, MaxChars: in.MaxChars,
		By: methods[in.Method], From: int(min(from, maxSearchPages)), Keep: in.keep(), Ranks: in.Ranks,
	})
	if err != nil {
		return nil, a.problem(err)
	}
	out := &searchConversationOutput{}
	out.Body.Embedding, out.Body.Missing, out.Body.Embedded = found.Model, found.Missing, found.EmbeddedUpTo
	out.Body.Messages = each(hits, showFound)
	if next < maxSearchPages {
		out.Body.NextCursor = scope.next(uint64(next))
	}
	return out, nil
}

func showFound(hit window.Hit) Found {
	return Found{
		Row: rowOf(hit.Position, hit.Origin), MessageID: hit.MessageID, Role: hit.Role, Speaker: hit.Speaker, Session: hit.Session,
		Text: hit.Text, Match: hit.Match, Ranks: hit.Ranks,
	}
}
