package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/writefile"
)

// ConversationsListCmd lists conversations.
type ConversationsListCmd struct {
	Limit         int      `help:"Maximum number of rows; 0 means all." default:"0"`
	Order         string   `help:"activity: newest event first. created: latest start first, an order that new events do not change." enum:"activity,created" default:"activity"`
	Sort          string   `help:"Conversations with the most of this first, as insights --by conversation shows them: tokens, errors, rereads (of files) or duration (of calls)." enum:",${insights_sort}" default:"" placeholder:"SORT"`
	Status        string   `help:"Only conversations with this status: active or archived." enum:",active,archived" default:"" placeholder:"STATUS"`
	Tag           []string `help:"Only conversations with this tag; if given more than once, with all of them." placeholder:"TAG" sep:"none"`
	Agent         string   `help:"Only conversations of this agent, in any spelling: claude-code is Claude Code, too. mneme insights --by agent shows the names." placeholder:"NAME"`
	Project       string   `help:"Only conversations of this project; . means the project of this folder." placeholder:"NAME" complete:"directory"`
	BranchOf      string   `help:"Only branches of this conversation." placeholder:"ID" complete:"conversation"`
	CreatedAfter  instant  `help:"Only conversations that began at this time or later: RFC 3339, a date, which means its local midnight, or how long ago, such as 7d." placeholder:"TIME"`
	CreatedBefore instant  `help:"Only conversations that began before this time." placeholder:"TIME"`
	UpdatedAfter  instant  `help:"Only conversations whose newest event is from this time or later." placeholder:"TIME"`
	UpdatedBefore instant  `help:"Only conversations whose newest event is older than this time." placeholder:"TIME"`
	waitFlags
}

func (*ConversationsListCmd) Help() string {
	return `Examples:

    mneme conversations list --limit 20
    mneme conversations list --project .
    mneme conversations list --sort errors --limit 10
    mneme conversations list --tag bug --agent "Claude Code" --updated-after 2026-01-31
    mneme conversations list --json | jq -r '.[].id'`
}

// filters returns the filters in use. It leaves out the rest, including the default order,
// so that older servers can answer too.
func (c *ConversationsListCmd) filters() (parameters, error) {
	project, err := projectNamed(c.Project)
	order := c.Order
	if order == "activity" { // the server's default
		order = ""
	}
	return parameters{
		"order": order, "status": c.Status, "tag": c.Tag, "agent": c.Agent, "project": project, "branch_of": c.BranchOf,
		"created_after": c.CreatedAfter.query, "created_before": c.CreatedBefore.query, "updated_after": c.UpdatedAfter.query, "updated_before": c.UpdatedBefore.query,
	}, err
}

func (c *ConversationsListCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	if c.Sort != "" {
		return c.sorted(ctx, g, t, api)
	}
	filters, err := c.filters()
	if err != nil {
		return err
	}
	page, err := api.pages(ctx, "/v1/conversations", "conversations", c.Limit, filters.with(c.waitFlags.query()))
	if err != nil {
		return err
	}
	if g.JSON {
		return t.json(page)
	}
	list, err := decodeRows[httpapi.Conversation](page)
	if err != nil {
		return err
	}
	if name, ok := filters["project"].(string); ok && len(list) == 0 {
		api.remarkUnknown(ctx, t, name)
	}
	if len(list) == 0 {
		api.remarkUnknownAgent(ctx, t, c.Agent)
		if filters.values().Encode() == "" {
			t.say("No conversations yet: mneme connect records a coding agent, mneme import reads existing recordings.")
		}
	}
	rows := make([][]any, len(list))
	for i, c := range list {
		rows[i] = []any{c.ID, c.Status, c.TurnCount, c.MessageCount, c.ToolCallCount, c.TotalChars, when(c.UpdatedAt), c.Title}
	}
	return t.table([]column{
		conversationColumn, {Name: "STATUS", Drop: 5}, {Name: "TURNS", Right: true, Drop: 1}, {Name: "MESSAGES", Right: true, Drop: 3},
		{Name: "TOOL CALLS", Right: true, Drop: 6}, {Name: "CHARS", Right: true, Drop: 4}, {Name: "UPDATED", Drop: 2}, {Name: "TITLE", Min: 16},
	}, rows)
}

// sorted prints conversations by what they did, as the command insights does.
func (c *ConversationsListCmd) sorted(ctx context.Context, g *Globals, t *terminal, api *client) error {
	others, err := c.filters()
	if err != nil {
		return err
	}
	for name, values := range others.values() {
		if len(values) > 0 && name != "agent" && name != "project" {
			return usageError("--sort: only --agent, --project and --limit can be combined with it, not --%s", strings.ReplaceAll(name, "_", "-"))
		}
	}
	limit := cmp.Or(c.Limit, maxInsights)
	return (&InsightsCmd{By: "conversation", Sort: c.Sort, Project: c.Project, Agent: c.Agent, Limit: limit, waitFlags: c.waitFlags}).Run(ctx, g, t, api)
}

// ConversationsShowCmd shows one conversation.
type ConversationsShowCmd struct {
	conversationArg
	Messages int `help:"Show this many of the last messages; 0 for none." default:"10"`
	pastFlags
	waitFlags
}

func (*ConversationsShowCmd) Help() string {
	return `Examples:

    mneme conversations show ID
    mneme conversations show ID --messages 0 --as-of 1200`
}

func (c *ConversationsShowCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	query := c.pastFlags.query().with(c.waitFlags.query())
	body, err := api.raw(ctx, http.MethodGet, conversation(c.ID), query, "", nil)
	if err != nil {
		return err
	}
	if g.JSON {
		return t.rawJSON(body, false)
	}
	var answer httpapi.Conversation
	if err := json.Unmarshal(body, &answer); err != nil {
		return err
	}
	branched := ""
	if answer.BranchedFrom != nil {
		branched = fmt.Sprintf("%s at message %s", answer.BranchedFrom.ConversationID, answer.BranchedFrom.MessageID)
	}
	inherited := ""
	if h := answer.Inherited; h != nil {
		inherited = fmt.Sprintf("%s of %s from there", counted(h.MessageCount, "message"), counted(h.TurnCount, "turn"))
	}
	if err := t.card(
		"id", answer.ID, "title", answer.Title, "status", answer.Status, "tags", answer.Tags, "agent", answer.Agent, "model", answer.Model,
		"cwd", answer.Cwd, "project", answer.Project, "branch of", branched, "inherited", inherited, "turns", answer.TurnCount, "steps", answer.StepCount,
		"messages", answer.MessageCount, "tool calls", answer.ToolCallCount, "tool results", answer.ToolResultCount, "chars", answer.TotalChars,
		"created", when(answer.CreatedAt), "updated", when(answer.UpdatedAt), "sequences", fmt.Sprintf("%d to %d", answer.FirstSeq, answer.LastSeq),
	); err != nil || c.Messages == 0 {
		return err
	}
	rows, err := api.pages(ctx, conversation(c.ID, "/messages"), "messages", c.Messages, query.with(parameters{"order": "newest", "include_tool_calls": true}))
	if err != nil {
		return err
	}
	list, err := decodeRows[httpapi.Message](rows)
	if err != nil {
		return err
	}
	if len(list) > 0 {
		if err := t.text("\n"); err != nil {
			return err
		}
	}
	return t.transcript(list, true, extent{content: excerptLines, result: excerptLines})
}

// ConversationsExportCmd writes a conversation's events.
type ConversationsExportCmd struct {
	conversationArg
	Output string `short:"o" help:"The file to write, - for standard output. A regular file is written completely or not at all; a device, a FIFO or /dev/fd/N is written to directly. Links are followed." default:"-" placeholder:"FILE" type:"path" complete:"file"`
}

func (*ConversationsExportCmd) Help() string {
	return `Each line is one event as structured CloudEvents JSON, in log order.

Examples:

    mneme conversations export ID -o session.ndjson
    mneme conversations export ID | gzip > session.ndjson.gz
    mneme import session.ndjson --url http://127.0.0.1:9000`
}

func (c *ConversationsExportCmd) Run(ctx context.Context, t *terminal, api *client) error {
	response, err := api.open(ctx, http.MethodGet, conversation(c.ID, "/export"), nil, "", nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if c.Output == "-" || c.Output == "/dev/stdout" {
		return copyLines(escapeControls{t.out, t.isPerson()}, response.Body)
	}
	return writefile.Write(c.Output, response.Body)
}

// copyLines copies line by line, so that no character is split.
func copyLines(to io.Writer, from io.Reader) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if _, failed := to.Write(line); failed != nil {
			return failed
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
