package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/harness"
)

// Row is the position of a message, call or result, and the event that made it.
type Row struct {
	Seq     uint64 `json:"seq" doc:"sequence in the log"`
	Turn    int    `json:"turn" doc:"number of user messages up to here"`
	Step    int    `json:"step" doc:"number of assistant messages up to here"`
	EventID string `json:"event_id"`
	Source  string `json:"source"`
	Time    string `json:"time,omitempty" doc:"the producer's time, RFC 3339"`
	// InheritedFrom qualifies the ids: they are unique only within the conversation that a row comes from.
	InheritedFrom string `json:"inherited_from,omitempty" doc:"in a branch: the conversation from which it inherits this row; absent for its own rows"`
}

func rowOf(p graph.Position, o graph.Origin) Row {
	return Row{Seq: p.Seq, Turn: p.Turn, Step: p.Step, EventID: o.EventID, Source: o.Source, Time: o.Time, InheritedFrom: o.InheritedFrom}
}

// Extent gives the full length of a truncated text.
type Extent struct {
	Truncated bool `json:"truncated,omitempty" doc:"only the beginning of the text is shown: request this item alone to get all of it"`
	Bytes     int  `json:"bytes,omitempty" doc:"length of the whole text, if it is truncated"`
	Chars     int  `json:"chars,omitempty" doc:"code points in the whole text, if it is truncated"`
}

func extentOf(b graph.Body) Extent {
	if b.Whole() {
		return Extent{}
	}
	return Extent{Truncated: true, Bytes: b.Bytes, Chars: b.Chars}
}

// Message is a message as the API shows it. Extent is that of the content.
type Message struct {
	Row
	MessageID string `json:"message_id"`
	Role      string `json:"role" enum:"user,assistant,system"`
	Content   string `json:"content"`
	Extent
	Reasoning          string             `json:"reasoning,omitempty"`
	ReasoningTruncated bool               `json:"reasoning_truncated,omitempty" doc:"only the beginning of the reasoning is shown: request this message alone to get all of it"`
	Speaker            string             `json:"speaker,omitempty"`
	Session            string             `json:"session,omitempty"`
	Model              string             `json:"model,omitempty"`
	Usage              json.RawMessage    `json:"usage,omitempty"`
	Origin             string             `json:"origin,omitempty" doc:"where the message came from if no person or model wrote it, for example compaction; meta also if its text shows that the agent's program wrote it in the user's name"`
	References         []events.Reference `json:"references,omitempty"`
	ToolCalls          []ToolCall         `json:"tool_calls,omitempty" doc:"with include_tool_calls: the calls of an assistant message"`
	MoreToolCalls      bool               `json:"more_tool_calls,omitempty" doc:"the message has more calls than shown: list the steps or the tool calls of its turn"`
}

func showMessage(m graph.Message, reasoning bool) Message {
	shown := Message{
		Row: rowOf(m.Position, m.Origin), MessageID: m.MessageID, Role: m.Role, Content: m.Content.Text, Extent: extentOf(m.Content),
		Speaker: m.Speaker, Session: m.Session, Model: m.Model, Usage: json.RawMessage(m.Usage), Origin: harness.Origin(m.Role, m.Via, m.Content.Text), References: m.References,
	}
	if reasoning {
		shown.Reasoning, shown.ReasoningTruncated = m.Reasoning.Text, !m.Reasoning.Whole()
	}
	return shown
}

type messagesInput struct {
	RowsParams
	Role      string `query:"role" enum:"user,assistant,system"`
	ToolCalls bool   `query:"include_tool_calls" doc:"include under each assistant message the calls that follow it, with their results"`
	Reasoning bool   `query:"include_reasoning" doc:"include the model's thinking"`
}

type messagesOutput struct {
	Body struct {
		Messages   []Message `json:"messages"`
		NextCursor string    `json:"next_cursor,omitempty" doc:"cursor of the next page; absent if there is none"`
	}
}

type messageInput struct {
	ConversationParam
	AsOfParam
	WaitParams
	MessageID string `path:"message_id" doc:"percent-encoded"`
}

// read reads the message.
func (in *messageInput) read(ctx context.Context, g graph.Reader) (graph.Message, error) {
	ref := graph.Ref{ID: in.MessageID}
	found, err := g.MessagesByID(ctx, in.id(), []graph.Ref{ref}, in.seq())
	m, ok := found[ref]
	if err == nil && !ok {
		err = fmt.Errorf("message %q of conversation %q: %w", in.MessageID, in.ID, graph.ErrNotFound)
	}
	return m, err
}

func (a *api) registerMessages(h huma.API) {
	list := operation("list-messages", http.MethodGet, "/v1/conversations/{id}/messages", "List the messages of a conversation", "messages", 404, 422, 503, 504)
	list.Description = pagesDoc
	serve(a, h, list, a.messages)
	show := operation("show-message", http.MethodGet, "/v1/conversations/{id}/messages/{message_id}", "Show a message with its full text", "messages", 404, 422, 503, 504)
	serve(a, h, show, a.message)
}

func (a *api) messages(ctx context.Context, in *messagesInput) (*messagesOutput, error) {
	q, scope, g, err := a.rows(ctx, &in.RowsParams, "list-messages", in.Role)
	if err != nil {
		return nil, err
	}
	page, err := graph.Messages(ctx, g, in.id(), graph.MessageListQuery{ListQuery: q, Role: in.Role, Calls: in.ToolCalls})
	if err != nil {
		return nil, err
	}
	out := &messagesOutput{}
	out.Body.Messages = each(page.Rows, func(m graph.MessageWithCalls) Message {
		shown := showMessage(m.Message, in.Reasoning)
		shown.ToolCalls, shown.MoreToolCalls = each(m.Calls, showUse), m.MoreCalls
		return shown
	})
	out.Body.NextCursor = scope.next(page.Next)
	return out, nil
}

func (a *api) message(ctx context.Context, in *messageInput) (*output[Message], error) {
	g, err := a.graph(ctx, in.id(), in.WaitParams, in.AsOfParam)
	if err != nil {
		return nil, err
	}
	m, err := in.read(ctx, g)
	if err != nil {
		return nil, err
	}
	if !m.Content.Recorded() || !m.Reasoning.Recorded() {
		p, err := source[*events.MessageCreated](ctx, a, in.Tenant, m.Position, m.Origin)
		if err == nil {
			m.Content, err = whole(m.Content, p.Content, m.Seq)
		}
		if err == nil {
			m.Reasoning, err = whole(m.Reasoning, p.Reasoning, m.Seq)
		}
		if err != nil {
			return nil, err
		}
	}
	return &output[Message]{Body: showMessage(m, true)}, nil
}
