package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
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
	Highlights []Highlight   `json:"highlights,omitempty" doc:"the words of the query in the text"`
	Ranks      *window.Ranks `json:"ranks,omitempty" doc:"with ranks=true: its place in the results of each method, from 1; absent beyond 1,000"`
}

// FoundResult is a tool result that a search found.
type FoundResult struct {
	Row
	ToolCallID string      `json:"tool_call_id"`
	CallSeq    uint64      `json:"call_seq,omitempty" doc:"sequence of the call; absent if the call is unknown"`
	ToolName   string      `json:"tool_name,omitempty"`
	Argument   string      `json:"argument,omitempty" doc:"what the call was about: its command, file or pattern, on one line, cut at 200 characters; else all arguments"`
	Success    *bool       `json:"success" doc:"null if it is unknown"`
	NotRun     string      `json:"not_run,omitempty" enum:"refused,cancelled" doc:"why a call that did not succeed did not even run, as in the list of tool calls; absent if it ran"`
	Text       string      `json:"text" doc:"the result and its error, or an excerpt around its best passage, with […] for omissions"`
	Relevance  float64     `json:"relevance" doc:"the score relative to the best one's, 0 to 1; 0 for a query without words"`
	BM25       float64     `json:"bm25" doc:"of its best passage"`
	Duplicates int         `json:"duplicates,omitempty" doc:"how many other results of this conversation and tool with the same text the page leaves out"`
	Highlights []Highlight `json:"highlights,omitempty" doc:"the words of the query in the text"`
}

// Highlight is a word of the query in a text.
type Highlight struct {
	Start int `json:"start" doc:"in the text, in Unicode code points from 0"`
	End   int `json:"end" doc:"not included"`
}

// maxHighlights is how many words of a text are highlighted.
const maxHighlights = 100

// highlights returns the words of a query in a text.
func highlights(text string, asked window.Asked) (list []Highlight) {
	bytes, chars := 0, 0
	for _, span := range recall.Highlights(text, asked.Text, asked.Prefixes) {
		if len(list) == maxHighlights {
			break
		}
		start := chars + plain.Length(text[bytes:span.Start])
		chars = start + plain.Length(text[span.Start:span.End])
		bytes = span.End
		list = append(list, Highlight{start, chars})
	}
	return list
}

type searchConversationInput struct {
	ConversationParam
	AsOfParam
	WaitParams
	EmbeddedParam
	RerankParams
	RewriteParam
	Query    string    `query:"query" maxLength:"100000" doc:"what to search for, in words; a \"phrase in quotes\" must be there, a -word must not, and the end of a word* is open. Without words, the newest that the filters keep are found"`
	Syntax   string    `query:"syntax" enum:"marks,plain" default:"marks" doc:"plain: quotes, dashes and asterisks in the query are ordinary characters"`
	Kind     string    `query:"kind" enum:"message,tool,all" doc:"what to search: messages, the results of tools, or both, each in a list of its own; tool if tool or file is given, else message"`
	Limit    int       `query:"limit" minimum:"1" maximum:"1000" default:"20" doc:"maximum number of messages, and of tool results"`
	MaxChars int       `query:"max_chars" minimum:"100" maximum:"100000" default:"600" doc:"maximum length of each text, in Unicode code points"`
	Method   string    `query:"method" enum:"fused,words,meaning" default:"fused" doc:"what to rank messages by. fused: as a context does; words: BM25 alone; meaning: the cosine of the embeddings alone"`
	Ranks    bool      `query:"ranks" doc:"also show the place of each message by each method"`
	Role     string    `query:"role" enum:"user,assistant,system" doc:"only messages of this role"`
	Speaker  string    `query:"speaker" maxLength:"512" doc:"only messages of this speaker"`
	Tool     string    `query:"tool" maxLength:"512" doc:"only results of this tool, by its name in any case"`
	File     string    `query:"file" maxLength:"4096" doc:"only results of calls that name this file: a path, or its last components"`
	FromSeq  uint64    `query:"from_seq" doc:"only what is from this sequence on"`
	ToSeq    uint64    `query:"to_seq" doc:"only what is up to this sequence"`
	FromTurn int       `query:"from_turn" minimum:"0" doc:"only what is from this turn on"`
	ToTurn   int       `query:"to_turn" minimum:"0" doc:"only what is up to this turn; 0 means no limit"`
	Since    time.Time `query:"since" doc:"only what is from this time on (RFC 3339)"`
	Until    time.Time `query:"until" doc:"only what is before this time (RFC 3339)"`
	Contains []string  `query:"contains,explode" maxItems:"16" doc:"only texts that contain this phrase, in any case, as whole words; with * at its end, the last word may be longer. May be given more than once: a text must contain all of them"`
	Without  []string  `query:"without,explode" maxItems:"16" doc:"only texts that do not contain this phrase; may be given more than once"`
	Cursor   string    `query:"cursor" doc:"next_cursor of the previous page; requires the same query, method and filters. With as_of, pages do not shift when messages come"`
}

// keep returns which messages the filters keep.
func (in *searchConversationInput) keep() window.Filter {
	return window.Filter{
		Role: in.Role, Speaker: in.Speaker, Tool: in.Tool, File: in.File, FromSeq: in.FromSeq, ToSeq: in.ToSeq, FromTurn: in.FromTurn, ToTurn: in.ToTurn,
		Since: in.Since, Until: in.Until, Contains: in.Contains, Without: in.Without,
	}
}

// maxSearchPages bounds how far down the cursor of a search goes, in messages or in results.
const maxSearchPages = 20_000

type searchConversationOutput struct {
	Body struct {
		NextCursor string `json:"next_cursor,omitempty" doc:"cursor of the next page; absent if there is none"`

		Messages    []Found           `json:"messages" doc:"best first; newest first if the query has no words"`
		ToolResults []FoundResult     `json:"tool_results,omitempty" doc:"with kind=tool or all: in the same order, ranked by words alone"`
		Contains    []string          `json:"contains,omitempty" doc:"the phrases in quotation marks in the query, which every hit contains"`
		Without     []string          `json:"without,omitempty" doc:"the words and phrases after - in the query, which no hit contains"`
		ToolsFrom   uint64            `json:"tool_results_from,omitempty" doc:"the first sequence whose tool results were searched, if a very long conversation has older ones that were not"`
		Embedding   string            `json:"embedding_model,omitempty" doc:"the model whose embeddings were used in the ranking; absent if only words were"`
		Missing     string            `json:"embedding_missing,omitempty" doc:"which embeddings were not used in the ranking, and why"`
		Reranked    *window.Reranked  `json:"reranked,omitempty" doc:"the order in which a reranker put the best messages, or why it did not; absent if it was not asked"`
		Rewritten   *window.Rewritten `json:"rewritten,omitempty" doc:"with rewrite=true: what the model added to the query, or why nothing"`
		Embedded    uint64            `json:"embedded_up_to,omitempty" doc:"sequence of the last message whose vectors were used; absent with built-in embeddings, which all messages have"`
	}
}

// methods are the values of the parameter method.
var methods = map[string]recall.Method{"fused": recall.Fused, "words": recall.ByWords, "meaning": recall.ByMeaning}

func (a *api) registerSearch(h huma.API) {
	op := operation("search-conversation", http.MethodGet, "/v1/conversations/{id}/search", "Search the messages or the tool results of a conversation", "messages", 404, 422, 503, 504)
	op.Description = "Messages are ranked like the relevant past of a context: by their words, their meaning and their surroundings, and by the speaker or time that the query names. Tool results are ranked by their words; the first search for them in a conversation makes their index."
	serve(a, h, op, a.searchConversation)
	a.registerSearchAll(h)
}

// Kinds of what a search finds.
const (
	kindMessage = "message"
	kindTool    = "tool"
	kindAll     = "all"
)

// kindFor returns the kind that a request gives, else the one that its filters are for.
func kindFor(kind, tool, file string) string {
	if kind == "" && tool+file != "" {
		return kindTool
	}
	return cmp.Or(kind, kindMessage)
}

// kind returns what a search is for, and refuses parameters that mean nothing for it.
func (in *searchConversationInput) kind() (string, error) {
	kind := kindFor(in.Kind, in.Tool, in.File)
	refuse := func(name string, value any, of string) error {
		return huma.Error422UnprocessableEntity(fmt.Sprintf("%s is for %s: kind=%s has none", name, of, kind), &huma.ErrorDetail{Location: "query." + name, Message: "is for " + of, Value: value})
	}
	const messages, results = "messages", "tool results"
	switch {
	case kind == kindMessage && in.Tool != "":
		return "", refuse("tool", in.Tool, results)
	case kind == kindMessage && in.File != "":
		return "", refuse("file", in.File, results)
	case kind == kindTool && in.Role != "":
		return "", refuse("role", in.Role, messages)
	case kind == kindTool && in.Speaker != "":
		return "", refuse("speaker", in.Speaker, messages)
	case kind == kindTool && in.Ranks:
		return "", refuse("ranks", true, messages)
	case kind == kindTool && in.Method == "meaning":
		return "", refuse("method", in.Method, messages)
	}
	return kind, nil
}

// asked reads the query, and refuses one that asks for nothing.
func (in *searchConversationInput) asked() (asked window.Asked, keep window.Filter, err error) {
	asked, keep = askedWith(in.Query, in.Syntax, in.keep())
	if strings.TrimSpace(in.Query) == "" && in.Kind == "" && reflect.ValueOf(keep).IsZero() {
		err = huma.Error422UnprocessableEntity("nothing to search for: give a query, a kind or a filter", &huma.ErrorDetail{Location: "query.query", Message: "is needed without filters"})
	}
	return asked, keep, cmp.Or(err, inOrder(&keep))
}

// askedWith reads a query, and adds its phrases to a filter.
func askedWith(query, syntax string, keep window.Filter) (window.Asked, window.Filter) {
	asked := window.Asked{Text: query}
	if syntax != "plain" {
		asked = window.Ask(query)
	}
	keep.Contains, keep.Without = slices.Concat(keep.Contains, asked.Contains), slices.Concat(keep.Without, asked.Without)
	return asked, keep
}

// inOrder refuses a filter whose range ends before it begins, because it keeps nothing.
func inOrder(f *window.Filter) error {
	if field, why := f.Reversed(); field != "" {
		return refuseQuery(field, why)
	}
	return nil
}

func (a *api) searchConversation(ctx context.Context, in *searchConversationInput) (*searchConversationOutput, error) {
	kind, err := in.kind()
	if err != nil {
		return nil, err
	}
	asked, keep, err := in.asked()
	if err != nil {
		return nil, err
	}
	scope := scopeOf("search-conversation", in.Tenant, in.ID, in.Query, in.Syntax, kind, in.Method, fmt.Sprintf("%#v", keep), strconv.FormatUint(in.AsOf, 10))
	start, err := scope.start(in.Cursor)
	if err != nil {
		return nil, err
	}
	var loads []load
	if kind != kindTool {
		loads = append(loads, (*view.View).Load)
	}
	if kind != kindMessage {
		loads = append(loads, (*view.View).LoadTools)
	}
	rerank, err := a.reranking(in.RerankParams)
	if err != nil {
		return nil, err
	}
	if in.Rewrite && in.Cursor != "" {
		const text = "has no further pages: send the query with what was added on a new line, without rewrite, and page through that"
		return nil, huma.Error422UnprocessableEntity("rewrite=true "+text, &huma.ErrorDetail{Location: "query.cursor", Message: text, Value: in.Cursor})
	}
	if err := a.rewritable(in.RewriteParam, asked.Text); err != nil {
		return nil, err
	}
	var rewritten *window.Rewritten
	source, err := a.source(ctx, in.id(), in.WaitParams, in.AsOfParam, needs{loads: loads, asks: rerank.Wanted || in.Rewrite, found: func(*graph.Conversation) (_ string, err error) {
		asked.Text, rewritten, err = a.rewrite(ctx, in.Tenant, in.RewriteParam, asked.Text)
		return "", err
	}})
	if err != nil {
		return nil, err
	}
	query := window.SearchQuery{
		Conversation: in.id(), Text: asked.Text, Prefixes: asked.Prefixes, AsOf: in.AsOf, EmbeddedUpTo: in.EmbeddedUpTo, Limit: in.Limit, MaxChars: in.MaxChars,
		By: methods[in.Method], Keep: keep, Ranks: in.Ranks, Rerank: rerank,
	}
	out := &searchConversationOutput{}
	out.Body.Messages, out.Body.Contains, out.Body.Without = []Found{}, asked.Contains, asked.Without
	out.Body.Rewritten = rewritten
	var next uint64
	if kind != kindTool {
		if next, err = searchMessages(ctx, source, query, start, out); err != nil {
			return nil, err
		}
	}
	if kind != kindMessage {
		query.From = int(min(start, maxSearchPages))
		hits, found, further, err := window.SearchTools(ctx, source, query)
		if err != nil {
			return nil, err
		}
		out.Body.ToolResults, out.Body.ToolsFrom = each(hits, showFoundResult), found.From
		for i := range hits {
			out.Body.ToolResults[i].Highlights = highlights(hits[i].Text, asked)
		}
		if next = 0; further < maxSearchPages {
			next = uint64(further)
		}
	}
	if kind != kindAll && !in.Rewrite { // a cursor has one position, in one order
		out.Body.NextCursor = scope.next(next)
	}
	for i := range out.Body.Messages {
		m := &out.Body.Messages[i]
		m.Highlights = highlights(m.Text, asked)
	}
	return out, nil
}

// searchMessages adds the messages that a query finds. next is where the next page starts, 0 if there is none: after
// that many hits or, without words, below that sequence.
func searchMessages(ctx context.Context, source window.Source, query window.SearchQuery, start uint64, out *searchConversationOutput) (next uint64, err error) {
	if strings.TrimSpace(query.Text) == "" && len(query.Prefixes) == 0 {
		hits, next, err := window.List(ctx, source, query, start)
		out.Body.Messages = each(hits, showFound)
		return next, err
	}
	query.From = int(min(start, maxSearchPages))
	hits, found, further, err := window.Search(ctx, source, query)
	if err != nil {
		return 0, err
	}
	out.Body.Embedding, out.Body.Missing, out.Body.Embedded = found.Model, found.Missing, found.EmbeddedUpTo
	out.Body.Reranked = found.Reranked
	out.Body.Messages = each(hits, showFound)
	if further < maxSearchPages {
		next = uint64(further)
	}
	return next, nil
}

func showFound(hit window.Hit) Found {
	return Found{
		Row: rowOf(hit.Position, hit.Origin), MessageID: hit.MessageID, Role: hit.Role, Speaker: hit.Speaker, Session: hit.Session,
		Text: hit.Text, Match: hit.Match, Ranks: hit.Ranks,
	}
}

func showFoundResult(hit window.ToolHit) FoundResult {
	r := &hit.Result
	return FoundResult{
		Row: rowOf(r.Position, r.Origin), ToolCallID: r.ToolCallID, CallSeq: hit.Call.Seq, ToolName: hit.Call.ToolName, Argument: hit.About,
		Success: r.Success, NotRun: notRun(r), Text: hit.Text, Relevance: hit.Match.Relevance, BM25: hit.Match.BM25,
		Duplicates: hit.Duplicates,
	}
}
