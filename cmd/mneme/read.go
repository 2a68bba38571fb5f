package main

import (
	"context"
	"fmt"
	"strconv"

	"mneme/internal/httpapi"
)

// ConversationsListCmd lists conversations.
type ConversationsListCmd struct {
	Limit  int    `help:"At most this many; 0 means all." default:"0"`
	Status string `help:"Only these: active or archived." enum:",active,archived" default:""`
}

// Run prints the list.
func (c *ConversationsListCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	api, err := g.client()
	if err != nil {
		return err
	}
	list := []httpapi.Conversation{}
	for cursor := ""; ; {
		size := 1000
		if c.Limit > 0 {
			size = min(size, c.Limit-len(list))
		}
		var page struct {
			Conversations []httpapi.Conversation
			NextCursor    string `json:"next_cursor"`
		}
		if err := api.get(ctx, "/v1/conversations", map[string]any{"limit": size, "cursor": cursor, "status": c.Status}, &page); err != nil {
			return err
		}
		list = append(list, page.Conversations...)
		cursor = page.NextCursor
		if cursor == "" || (c.Limit > 0 && len(list) >= c.Limit) {
			break
		}
	}
	if g.JSON {
		return t.json(list)
	}
	rows := make([][]string, len(list))
	for i, c := range list {
		rows[i] = []string{c.ID, c.Status, number(c.TurnCount), number(c.MessageCount), number(c.ToolCallCount), number(c.TotalChars), c.UpdatedAt, c.Title}
	}
	return t.table([]string{"CONVERSATION", "STATUS", "TURNS", "MESSAGES", "TOOL CALLS", "CHARS", "UPDATED", "TITLE"}, rows)
}

// ConversationsShowCmd shows one conversation.
type ConversationsShowCmd struct {
	ID   string `arg:"" help:"The conversation."`
	AsOf uint64 `help:"As of this sequence of the log." placeholder:"SEQ"`
}

// Run prints it.
func (c *ConversationsShowCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	api, err := g.client()
	if err != nil {
		return err
	}
	var answer httpapi.Conversation
	if err := api.get(ctx, conversation(c.ID, ""), map[string]any{"as_of": c.AsOf}, &answer); err != nil {
		return err
	}
	if g.JSON {
		return t.json(answer)
	}
	return t.table([]string{"PROPERTY", "VALUE"}, [][]string{
		{"id", answer.ID}, {"title", answer.Title}, {"status", answer.Status}, {"tags", fmt.Sprint(answer.Tags)},
		{"agent", answer.Agent}, {"cwd", answer.Cwd}, {"turns", number(answer.TurnCount)}, {"steps", number(answer.StepCount)},
		{"messages", number(answer.MessageCount)}, {"tool calls", number(answer.ToolCallCount)}, {"tool results", number(answer.ToolResultCount)},
		{"chars", number(answer.TotalChars)}, {"created", answer.CreatedAt}, {"updated", answer.UpdatedAt},
		{"sequences", fmt.Sprintf("%d to %d", answer.FirstSeq, answer.LastSeq)},
	})
}

// FilesCmd lists the files of a conversation.
type FilesCmd struct {
	ID    string `arg:"" help:"The conversation."`
	Limit int    `help:"At most this many." default:"200"`
	AsOf  uint64 `help:"As of this sequence of the log." placeholder:"SEQ"`
	All   bool   `help:"Also temporary and generated files."`
}

// Run prints the list.
func (c *FilesCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	api, err := g.client()
	if err != nil {
		return err
	}
	var answer struct{ Files []httpapi.File }
	if err := api.get(ctx, conversation(c.ID, "/files"), map[string]any{"limit": c.Limit, "as_of": c.AsOf, "all": c.All}, &answer); err != nil {
		return err
	}
	if g.JSON {
		return t.json(answer.Files)
	}
	rows := make([][]string, len(answer.Files))
	for i, f := range answer.Files {
		rows[i] = []string{f.Kind, f.Tool, strconv.Itoa(f.Turn), strconv.FormatUint(f.Seq, 10), strconv.Itoa(f.Count), f.Path}
	}
	return t.table([]string{"KIND", "TOOL", "TURN", "SEQ", "COUNT", "PATH"}, rows)
}

// ContextCmd prints the context of a conversation.
type ContextCmd struct {
	ID       string `arg:"" help:"The conversation."`
	MaxChars int    `help:"Budget in Unicode code points, headings included." default:"100000"`
	Strategy string `help:"How to choose: hybrid, recent or pruned." enum:"hybrid,recent,pruned" default:"hybrid"`
	Format   string `help:"markdown or json." enum:"markdown,json" default:"markdown"`
	Explain  bool   `help:"With --format json: say why each part is there."`
	AsOf     uint64 `help:"As of this sequence of the log." placeholder:"SEQ"`
	AtLeast  uint64 `help:"Wait until this sequence is applied." placeholder:"SEQ"`
}

// Run prints it.
func (c *ContextCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	api, err := g.client()
	if err != nil {
		return err
	}
	format := c.Format
	if g.JSON {
		format = "json"
	}
	body, err := api.raw(ctx, "GET", conversation(c.ID, "/context"), map[string]any{
		"max_chars": c.MaxChars, "strategy": c.Strategy, "format": format, "explain": c.Explain, "as_of": c.AsOf, "at_least": c.AtLeast,
	}, "", nil)
	if err != nil {
		return err
	}
	_, err = t.out.Write(body)
	return err
}
