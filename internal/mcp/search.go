package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/window"
)

type searchArguments struct {
	Query        string `json:"query"`
	Conversation string `json:"conversation"`
	Project      string `json:"project"`
	Kind         string `json:"kind"`
	Tool         string `json:"tool"`
	File         string `json:"file"`
	Role         string `json:"role"`
	FromTurn     int    `json:"from_turn"`
	ToTurn       int    `json:"to_turn"`
	Since        string `json:"since"`
	Until        string `json:"until"`
	Limit        int    `json:"limit"`
	Cursor       string `json:"cursor"`
}

// Kinds of what a search finds.
const (
	kindMessage = "message"
	kindTool    = "tool"
	kindAll     = "all"
)

// filter returns which messages and results the arguments keep.
func (in *searchArguments) filter() (f window.Filter, err error) {
	f = window.Filter{Tool: in.Tool, File: in.File, Role: in.Role, FromTurn: in.FromTurn, ToTurn: in.ToTurn}
	if f.Since, err = momentOf("since", in.Since); err != nil {
		return f, err
	}
	if f.Until, err = momentOf("until", in.Until); err != nil {
		return f, err
	}
	if _, why := f.Reversed(); why != "" {
		return f, refuse("%s", why)
	}
	return f, nil
}

// momentOf reads a time argument: a time, or a date, which means its midnight in UTC. It returns the zero time for an
// absent one.
func momentOf(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := events.ParseTime(text); err == nil {
		return at, nil
	}
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return at, refuse("%s is neither a time such as 2026-01-31T15:04:05Z nor a date such as 2026-01-31", name)
	}
	return at, nil
}

// kind returns what the arguments search for, "" for messages by default.
func (in *searchArguments) kind() (string, error) {
	kind := in.Kind
	if kind == "" && (in.Tool != "" || in.File != "") {
		kind = kindTool
	}
	switch {
	case kind == kindMessage && in.Tool+in.File != "":
		return "", refuse("tool and file are for tool results: leave kind out")
	case kind == kindTool && in.Role != "":
		return "", refuse("role is for messages: leave it out with kind=tool")
	}
	return kind, nil
}

// hit is a message or a tool result that was found, or a conversation.
type hit struct {
	Ref          string  `json:"ref"`
	Conversation string  `json:"conversation"`
	Title        string  `json:"title,omitempty"`
	Time         string  `json:"time,omitempty"`
	Turn         int     `json:"turn,omitempty"`
	Role         string  `json:"role,omitempty"`
	Tool         string  `json:"tool,omitempty"`
	Argument     string  `json:"argument,omitempty"`
	Text         string  `json:"text,omitempty"`
	Score        float64 `json:"score,omitempty"`
}

type found struct {
	Project    string `json:"project"`
	Hits       []hit  `json:"hits"`
	NextCursor string `json:"next_cursor,omitempty"`
	// Left is how many older conversations of a project were not searched for tool results.
	Left int `json:"conversations_left_out,omitempty"`
	// Partial says that the search did not examine all results of the newer ones.
	Partial bool `json:"tool_results_partial,omitempty"`
}

// The most that a hit shows.
const (
	hitText  = 300
	hitTitle = 120
)

// messagesEach limits the messages of each conversation that a search over several conversations
// shows.
const messagesEach = 3

func (c *call) search(ctx context.Context, in searchArguments) (answer, error) {
	in.Query = plain.Prefix(in.Query, maxQuery)
	keep, err := in.filter()
	if err != nil {
		return answer{}, err
	}
	kind, err := in.kind()
	if err != nil {
		return answer{}, err
	}
	results := kind == kindTool || kind == kindAll
	offset, err := offsetOf(in.Cursor)
	if err != nil {
		return answer{}, err
	}
	out := found{Hits: []hit{}}
	var list []hit // from the first hit on; one more than are shown, if there is one
	most := offset + in.Limit + 1
	switch {
	case in.Conversation != "":
		list, err = c.inConversation(ctx, in, kind, keep, &out, most)
	case results && in.Project == everything:
		err = refuse("tool results are searched in one conversation or in one project: name it")
	case in.FromTurn != 0 || in.ToTurn != 0:
		err = refuse("from_turn and to_turn are for one conversation: each counts its own turns")
	case in.Project == everything && c.grant != nil && c.grant.Project != "":
		err = refuse("the token is only for the project %q: leave the argument project out", c.grant.Project)
	case in.Query == "" && kind == "" && keep.OfMessages() == nil:
		list, err = c.newest(ctx, in, &out, most)
	default:
		list, err = c.inSeveral(ctx, in, kind, keep, &out, most)
	}
	if err != nil {
		return answer{}, err
	}
	out.Project = plain.Clip(plain.Line(out.Project), headProject)
	list = list[min(offset, len(list)):]
	shown, err := fit(searchChars-frameRoom, list[:min(in.Limit, len(list))], func(hits []hit) any { out.Hits = hits; return out })
	if err != nil {
		return answer{}, err
	}
	out.Hits = append([]hit{}, list[:shown]...) // never null
	if shown < len(list) {
		out.NextCursor = strconv.Itoa(offset + shown)
	}
	return answer{value: out}, nil
}

// fit returns how many rows an answer can show within a number of characters, cursor included.
func fit[T any](most int, rows []T, answerOf func([]T) any) (int, error) {
	const roomForCursor = 40
	empty, err := encode(answerOf(rows[:0]))
	if err != nil {
		return 0, err
	}
	used := plain.Length(string(empty)) + roomForCursor
	for i := range rows {
		raw, err := encode(rows[i])
		if err != nil {
			return 0, err
		}
		if used += plain.Length(string(raw)) + 1; used > most {
			return i, nil
		}
	}
	return len(rows), nil
}

func offsetOf(cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(cursor)
	if err != nil || n < 0 || n > maxOffset {
		return 0, refuse("the cursor is not one of this list: leave it out to begin again")
	}
	return n, nil
}

func refTo(conversation string, seq uint64) string {
	return fmt.Sprintf("%s#seq=%d", conversation, seq)
}

func refToTurn(conversation string, turn int) string {
	return fmt.Sprintf("%s#turn=%d", conversation, turn)
}

func hitOf(conversation, title string, h *window.Hit) hit {
	return hit{
		Ref: refTo(conversation, h.Seq), Conversation: conversation, Title: plain.Clip(plain.Line(title), hitTitle), Time: h.Time, Turn: h.Turn, Role: h.Role,
		Text: plain.Clip(plain.Flat(h.Text), hitText), Score: rounded(h.Match.Relevance),
	}
}

// rounded keeps three digits: the rest says nothing to a model.
func rounded(score float64) float64 {
	n, _ := strconv.ParseFloat(strconv.FormatFloat(score, 'f', 3, 64), 64)
	return n
}

var errNoSearch = refusal("searches are switched off on this server")

// inConversation searches the messages of one conversation, its tool results, or both in turn.
func (c *call) inConversation(ctx context.Context, in searchArguments, kind string, keep window.Filter, out *found, most int) ([]hit, error) {
	name, err := c.named(ctx, in.Conversation)
	if err != nil {
		return nil, err
	}
	id := events.ConversationID{Tenant: c.tenant, ID: name}
	if err := c.permit(ctx, id); err != nil {
		return nil, err
	}
	asked := window.Ask(in.Query)
	keep.Contains, keep.Without = asked.Contains, asked.Without
	switch {
	case in.Query == "" && kind == "" && reflect.ValueOf(keep).IsZero():
		return nil, refuse("query is missing: without one give a filter, leave conversation out too, or read ID#turn=1 with memory_read")
	case c.Cache == nil:
		return nil, errNoSearch
	}
	v, err := c.pins.OpenWithFiles(ctx, id, view.At{})
	if errors.Is(err, graph.ErrNotFound) {
		return nil, c.noConversation(id)
	}
	if err == nil && kind != kindTool {
		err = v.Load(ctx)
	}
	if err == nil && (kind == kindTool || kind == kindAll) {
		err = v.LoadTools(ctx)
	}
	if err == nil {
		err = v.Begin(ctx)
	}
	if err != nil {
		return nil, err
	}
	defer v.Release()
	query := window.SearchQuery{Conversation: id, Text: asked.Text, Prefixes: asked.Prefixes, Limit: most, MaxChars: hitText, Keep: keep}
	query.Rerank.Wanted = c.Cache.RerankAlways
	title := v.Lineage().Conversation().Title
	var said, shown []hit
	if kind != kindTool {
		hits, err := messagesIn(ctx, v.Source(ctx), query)
		if err != nil {
			return nil, err
		}
		for i := range hits {
			said = append(said, hitOf(id.ID, title, &hits[i]))
		}
	}
	if kind == kindTool || kind == kindAll {
		hits, _, _, err := window.SearchTools(ctx, v.Source(ctx), query)
		if err != nil {
			return nil, err
		}
		for i := range hits {
			shown = append(shown, hitOfResult(id.ID, title, &hits[i]))
		}
	}
	out.Project, err = c.projectOf(ctx, id)
	return inTurn(said, shown), err
}

// maxLists is how many lists of messages a search without words reads to find enough that its filter keeps. Each examines up
// to [window.MaxExamined] messages.
const maxLists = 10

// messagesIn finds messages; if the query has no words, the newest ones.
func messagesIn(ctx context.Context, src window.Source, query window.SearchQuery) (hits []window.Hit, err error) {
	if strings.TrimSpace(query.Text) == "" && len(query.Prefixes) == 0 {
		most := query.Limit
		for n, next := 0, uint64(0); n < maxLists && len(hits) < most && (n == 0 || next != 0); n++ {
			var more []window.Hit
			query.Limit = most - len(hits)
			if more, next, err = window.List(ctx, src, query, next); err != nil {
				return nil, err
			}
			hits = append(hits, more...)
		}
		return hits, nil
	}
	hits, _, _, err = window.Search(ctx, src, query)
	return hits, err
}

// inTurn takes from two lists alternately, because their scores cannot be compared.
func inTurn(a, b []hit) (list []hit) {
	for i := range max(len(a), len(b)) {
		list = append(list, a[min(i, len(a)):min(i+1, len(a))]...)
		list = append(list, b[min(i, len(b)):min(i+1, len(b))]...)
	}
	return list
}

// hitOfResult points to the call, whose record includes the result, or to a result without one.
func hitOfResult(conversation, title string, h *window.ToolHit) hit {
	return hit{
		Ref: refTo(conversation, cmp.Or(h.Call.Seq, h.Result.Seq)), Conversation: conversation, Title: plain.Clip(plain.Line(title), hitTitle),
		Time: h.Result.Time, Turn: h.Result.Turn, Tool: plain.Clip(plain.Line(h.Call.ToolName), hitTitle), Argument: h.About,
		Text: plain.Clip(plain.Flat(h.Text), hitText), Score: rounded(h.Match.Relevance),
	}
}
