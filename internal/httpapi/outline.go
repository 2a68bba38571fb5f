package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
)

// OutlinedTurn is a turn in few bytes: at most 80 for a conversation of less than a million events.
type OutlinedTurn struct {
	Number   int    `json:"n"`
	FirstSeq uint64 `json:"seq" doc:"its first sequence"`
	LastSeq  uint64 `json:"end" doc:"its last sequence"`
	Time     int64  `json:"at,omitempty" doc:"of the user message, in seconds since 1970; absent if it has none"`
	Chars    int    `json:"chars" doc:"code points of all message contents"`
	Calls    int    `json:"calls,omitempty" doc:"tool calls"`
}

// OutlinedSummary is a summary without its texts.
type OutlinedSummary struct {
	ID       string `json:"id"`
	Level    int    `json:"level"`
	FirstSeq uint64 `json:"seq"`
	LastSeq  uint64 `json:"end"`
	Frontier bool   `json:"frontier,omitempty" doc:"no higher summary consolidates it"`
}

// maxOutlinedSummaries limits the summaries of an outline to the newest ones.
const maxOutlinedSummaries = 1_000

type outlineInput struct{ RowsParams }

type outlineOutput struct {
	Body struct {
		Turns      []OutlinedTurn    `json:"turns"`
		Summaries  []OutlinedSummary `json:"summaries,omitempty" doc:"on the first page: the newest 1,000 summaries, in the order of what they cover, without older revisions"`
		NextCursor string            `json:"next_cursor,omitempty" doc:"cursor of the next page; absent if there is none"`
	}
}

type conversationEventsInput struct {
	RowsParams
	Kind string `query:"kind" enum:"message_created,tool_called,tool_returned" doc:"only events of this kind"`
}

// LoggedEvent is an event of the log.
type LoggedEvent struct {
	Seq   uint64          `json:"seq" doc:"sequence in the log"`
	Kind  string          `json:"kind"`
	Event json.RawMessage `json:"event,omitempty" doc:"the CloudEvent as it was published, in structured mode; absent if the event is over 256 KiB, or if the log no longer holds it"`
	Bytes int             `json:"bytes" doc:"size of its data"`
}

type conversationEventsOutput struct {
	Body struct {
		Events     []LoggedEvent `json:"events"`
		NextCursor string        `json:"next_cursor,omitempty" doc:"cursor of the next page; absent if there is none"`
	}
}

// The size of a page of raw events: it ends with the event that exceeds maxEventsBytes.
const (
	maxShownEvent  = 256 << 10
	maxEventsBytes = 1 << 20
)

func (a *api) registerOutline(h huma.API) {
	outline := operation("show-outline", http.MethodGet, "/v1/conversations/{id}/outline", "Outline a conversation", "turns", 404, 422, 503, 504)
	outline.Description = "Where its turns and summaries are, in few bytes and without texts, for a timeline. " + pagesDoc
	serve(a, h, outline, a.outline)
	list := operation("list-events", http.MethodGet, "/v1/conversations/{id}/events", "List the events behind a conversation's rows", "events", 404, 422, 503, 504)
	list.Description = "The raw CloudEvents of its messages, tool calls and results. GET /v1/conversations/{id}/export has the events of every kind. " + pagesDoc
	serve(a, h, list, a.conversationEvents)
}

func (a *api) outline(ctx context.Context, in *outlineInput) (*outlineOutput, error) {
	g, turns, next, err := a.turnsPage(ctx, "show-outline", &in.RowsParams)
	if err != nil {
		return nil, err
	}
	out := &outlineOutput{}
	out.Body.Turns = each(turns, func(t graph.Turn) OutlinedTurn {
		o := OutlinedTurn{Number: t.Number, FirstSeq: t.FirstSeq, LastSeq: t.Counts.LastSeq, Chars: t.Counts.TotalChars, Calls: t.Counts.ToolCallCount}
		if t.User != nil {
			if at, err := events.ParseTime(t.User.Time); err == nil {
				o.Time = at.Unix()
			}
		}
		return o
	})
	out.Body.NextCursor = next
	if in.Cursor != "" {
		return out, nil
	}
	list, err := g.Summaries(ctx, in.id(), graph.SummaryQuery{AsOf: in.seq(), Limit: maxOutlinedSummaries})
	if err != nil {
		return nil, err
	}
	for i := range list {
		if s := &list[i]; s.SupersededSeq == 0 {
			out.Body.Summaries = append(out.Body.Summaries, OutlinedSummary{ID: s.SummaryID, Level: s.Level, FirstSeq: s.FirstSeq, LastSeq: s.LastSeq, Frontier: s.ConsolidatedSeq == 0})
		}
	}
	slices.SortStableFunc(out.Body.Summaries, func(a, b OutlinedSummary) int {
		return cmp.Or(cmp.Compare(a.FirstSeq, b.FirstSeq), a.Level-b.Level)
	})
	return out, nil
}

func (a *api) conversationEvents(ctx context.Context, in *conversationEventsInput) (*conversationEventsOutput, error) {
	q, scope, g, err := a.rows(ctx, &in.RowsParams, "list-events", in.Kind)
	if err != nil {
		return nil, err
	}
	c, err := g.Conversation(ctx, in.id(), in.seq())
	if err != nil {
		return nil, err
	}
	rows := graph.TranscriptQuery{Before: c.LastSeq + 1, Limit: q.Limit, OldestFirst: q.OldestFirst, CallsOnly: in.Kind == events.Kind(events.TypeToolCalled)}
	if q.Start != 0 && q.OldestFirst {
		rows.From = q.Start
	} else if q.Start != 0 {
		rows.Before = q.Start
	}
	list, err := g.Transcript(ctx, in.id(), rows)
	if err != nil {
		return nil, err
	}
	out := &conversationEventsOutput{}
	out.Body.Events = []LoggedEvent{}
	size, more := 0, len(list) == q.Limit
	for i := range list {
		seq := list[i].Position().Seq
		if q.Start = seq; q.OldestFirst {
			q.Start++
		}
		if kind := kindOf(&list[i]); in.Kind == "" || in.Kind == kind {
			e, err := a.logged(ctx, seq, kind)
			if err != nil {
				return nil, err
			}
			out.Body.Events = append(out.Body.Events, e)
			size += len(e.Event)
		}
		if size > maxEventsBytes && i < len(list)-1 {
			more = true
			break
		}
	}
	if more {
		out.Body.NextCursor = scope.next(q.Start)
	}
	return out, nil
}

// kindOf returns the kind of the event that made a row.
func kindOf(e *graph.Entry) string {
	switch {
	case e.Message != nil:
		return events.Kind(events.TypeMessageCreated)
	case e.Call != nil:
		return events.Kind(events.TypeToolCalled)
	}
	return events.Kind(events.TypeToolReturned)
}

// logged reads an event from the log for a list.
func (a *api) logged(ctx context.Context, seq uint64, kind string) (LoggedEvent, error) {
	shown := LoggedEvent{Seq: seq, Kind: kind}
	stored, err := a.Log.Get(ctx, seq)
	if errors.Is(err, eventlog.ErrNotFound) {
		return shown, nil
	}
	if err != nil {
		return shown, err
	}
	shown.Bytes = len(stored.Data)
	recorded, _, err := stored.Decode()
	if err != nil || shown.Bytes > maxShownEvent {
		return shown, nil //nolint:nilerr // such an event is listed without its text
	}
	shown.Event, err = events.EncodeStructured(recorded.Event)
	return shown, err
}
