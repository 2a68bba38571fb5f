package main

import (
	"context"
	"encoding/json"
	"net/http"
	"path"
	"strconv"

	"mneme.dev/mneme/internal/httpapi"
)

// ContextCmd prints the context of a conversation.
type ContextCmd struct {
	conversationArg
	Query    string `help:"What to search the past for; defaults to what the user said last." placeholder:"TEXT"`
	MaxChars int    `help:"Budget in Unicode code points, headings and marks included; at least 500." default:"100000"`
	Strategy string `help:"How to choose what to show: hybrid, relevant, levels, recent or pruned." enum:"hybrid,relevant,levels,recent,pruned" default:"hybrid"`
	Condense string `help:"How to shorten large tool results that are not among the newest: off, clear, extractive or llm." enum:",off,clear,extractive,llm" default:"" placeholder:"MODE"`
	Format   string `help:"markdown, json, or messages for a model's API: openai or anthropic." enum:"markdown,json,openai,anthropic" default:"markdown"`
	Memory   string `help:"With openai or anthropic, where to put everything except the recent turns: inline in the first message, or separate for you to place." enum:"inline,separate" default:"inline"`
	Explain  bool   `help:"With a format other than markdown: explain why each part is included."`
	searchFlags
	waitFlags
}

// Help implements kong.HelpProvider.
func (*ContextCmd) Help() string {
	return `Examples:

    mneme context ID --max-chars 20000
    mneme context ID --query "why did we change the parser?"
    mneme context ID --strategy levels             summaries first, then the newest turns
    mneme context ID --as-of 1200                  as it was then
    mneme context ID --at-least 57                 including what was just published
    mneme context ID --format json --explain       why each part is there
    mneme context ID --format openai               messages for the next call of a model`
}

// Run prints it.
func (c *ContextCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	api, err := g.client()
	if err != nil {
		return err
	}
	format := c.Format
	if g.JSON && format == "markdown" {
		format = "json"
	}
	body, err := api.raw(ctx, http.MethodGet, conversation(c.ID, "/context"), parameters{
		"query": c.Query, "max_chars": c.MaxChars, "strategy": c.Strategy, "condense": c.Condense, "format": format, "memory": c.Memory, "explain": c.Explain,
	}.with(c.searchFlags.query(), c.waitFlags.query()), "", nil)
	if err != nil {
		return err
	}
	if format == "markdown" {
		return t.text(string(body))
	}
	return t.rawJSON(body, false)
}

// FilesCmd lists the files of a conversation.
type FilesCmd struct {
	conversationArg
	Kind        []string `help:"Only files whose strongest access is of this kind: write, read, search or list; may be given more than once." enum:"read,write,search,list" placeholder:"KIND"`
	Limit       int      `help:"Maximum number of files." default:"200"`
	All         bool     `help:"Include temporary and generated files."`
	ByDirectory bool     `help:"Group the files by directory."`
	pastFlags
	waitFlags
}

// Help implements kong.HelpProvider.
func (*FilesCmd) Help() string {
	return `Examples:

    mneme files ID
    mneme files ID --kind write --json | jq -r '.[].path'`
}

// Run prints the list.
func (c *FilesCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	api, err := g.client()
	if err != nil {
		return err
	}
	answer := struct{ Files, Directories []json.RawMessage }{Files: []json.RawMessage{}}
	query := parameters{"limit": c.Limit, "all": c.All, "kind": c.Kind}.with(c.pastFlags.query(), c.waitFlags.query())
	if c.ByDirectory {
		query["group_by"] = "directory"
	}
	if err := api.get(ctx, conversation(c.ID, "/files"), query, &answer); err != nil {
		return err
	}
	if c.ByDirectory {
		return showDirectories(g, t, answer.Directories)
	}
	if g.JSON {
		return t.json(answer.Files)
	}
	list, err := decodeRows[httpapi.File](answer.Files)
	if err != nil {
		return err
	}
	rows := make([][]any, len(list))
	for i, f := range list {
		rows[i] = []any{f.Kind, f.Tool, f.Turn, f.Seq, f.Count, f.Path}
	}
	return t.table([]column{
		{Name: "KIND"}, {Name: "TOOL", Min: 8, Drop: 2}, {Name: "TURN", Right: true, Drop: 3}, {Name: "SEQ", Right: true, Drop: 4},
		{Name: "COUNT", Right: true, Drop: 1}, {Name: "PATH", Min: 20},
	}, rows)
}

func showDirectories(g *Globals, t *terminal, answer []json.RawMessage) error {
	if g.JSON {
		return t.json(answer)
	}
	list, err := decodeRows[httpapi.Directory](answer)
	if err != nil {
		return err
	}
	rows := [][]any{}
	for _, d := range list {
		for _, f := range d.Files {
			rows = append(rows, []any{d.Path, f.Kind, f.Tool, f.Turn, f.Seq, f.Count, path.Base(f.Path)})
		}
	}
	return t.table([]column{
		{Name: "DIRECTORY", Min: 12}, {Name: "KIND"}, {Name: "TOOL", Min: 8, Drop: 2}, {Name: "TURN", Right: true, Drop: 3}, {Name: "SEQ", Right: true, Drop: 4},
		{Name: "COUNT", Right: true, Drop: 1}, {Name: "FILE", Min: 12},
	}, rows)
}

// EventCmd shows an event.
type EventCmd struct {
	Seq uint64 `arg:"" help:"Its sequence in the log."`
}

// Help implements kong.HelpProvider.
func (*EventCmd) Help() string {
	return `Prints structured CloudEvents JSON, indented on a terminal.

Example:

    mneme event 1200 | jq .data`
}

// Run prints it.
func (c *EventCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	api, err := g.client()
	if err != nil {
		return err
	}
	body, err := api.raw(ctx, http.MethodGet, "/v1/events/"+strconv.FormatUint(c.Seq, 10), nil, "", nil)
	if err != nil {
		return err
	}
	return t.rawJSON(body, t.isPerson() && !g.JSON)
}
