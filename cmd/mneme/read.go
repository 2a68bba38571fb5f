package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/pkg/files"
)

// ContextCmd prints the context of a conversation, or of a project.
type ContextCmd struct {
	ID            string `arg:"" optional:"" help:"The conversation: its id, or the name that contexts give it, such as d91ec3b9." complete:"conversation"`
	Project       string `help:"Instead of a conversation's context, show what an agent should see when it begins to work in this project; . means the project of this folder." placeholder:"NAME" complete:"directory"`
	Query         string `help:"What to search the past for; defaults to what the user said last. With --project, what the agent is about to do." placeholder:"TEXT"`
	MaxChars      *int   `help:"Budget in Unicode code points, headings and marks included; at least 500. Defaults to 100000, or to 8000 with --project." placeholder:"N"`
	Strategy      string `help:"How to choose what to show: hybrid, relevant, levels, recent or pruned." enum:"hybrid,relevant,levels,recent,pruned" default:"hybrid"`
	Condense      string `help:"How to shorten large tool results that are not among the newest: off, clear, extractive or llm." enum:",off,clear,extractive,llm" default:"" placeholder:"MODE"`
	Format        string `help:"markdown, json, or messages for a model's API: openai or anthropic." enum:"markdown,json,openai,anthropic" default:"markdown"`
	Memory        string `help:"With openai or anthropic, where to put everything except the recent turns: inline in the first message, or separate for you to place." enum:"inline,separate" default:"inline"`
	ProjectMemory string `help:"on or off: whether a young conversation also sees what earlier sessions of its project left. Defaults to the server's setting." enum:",on,off" default:"" placeholder:"MODE"`
	Frame         bool   `help:"With markdown: put the text into <mneme-context>, which says that it is reference data, not instructions. mneme removes such frames from what agents record."`
	Explain       bool   `help:"With a format other than markdown: explain why each part is included."`
	LeftOut       bool   `help:"Like --explain, for a conversation: show also what was left out, and the larger budget with which it would be included."`
	Rewrite       bool   `help:"For a conversation with --query: let the server's model add other words to the query. The manifest of --explain says which."`
	Record        bool   `help:"Record that this context was shown: mneme contexts lists it and can rebuild it. Only for a conversation."`
	searchFlags
	waitFlags
}

func (*ContextCmd) Help() string {
	return `Examples:

    mneme context ID --max-chars 20000
    mneme context --project . --query "fix the flaky upload test"
    mneme context ID --query "why did we change the parser?"
    mneme context ID --strategy levels             summaries first, then the newest turns
    mneme context ID --as-of 1200                  as it was then
    mneme context ID --at-least 57                 including what was just published
    mneme context ID --format json --explain       why each part is there
    mneme context ID --json --left-out             what was left out, and the budget that shows it
    mneme context ID --format openai               messages for the next call of a model`
}

func (c *ContextCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	format := c.Format
	if c.Frame && (g.JSON || format != "markdown") {
		return &program.UsageError{Err: errors.New("--frame needs the format markdown")}
	}
	if g.JSON && format == "markdown" {
		format = "json"
	}
	if format == "markdown" && (c.Explain || c.LeftOut) {
		return &program.UsageError{Err: errors.New("--explain and --left-out need a format other than markdown: add --json")}
	}
	path, query, err := c.request(format)
	if err != nil {
		return err
	}
	body, err := api.raw(ctx, http.MethodGet, path, query, "", nil)
	if err != nil && c.Project != "" {
		return unknownProject(err, c.Project, c.pastFlags)
	}
	if err != nil {
		return err
	}
	if format == "markdown" {
		return t.text(string(body))
	}
	return t.rawJSON(body, false)
}

// request returns what to ask the server for.
func (c *ContextCmd) request(format string) (path string, query parameters, err error) {
	query = parameters{"query": c.Query, "format": format, "memory": c.Memory, "explain": c.Explain, "frame": c.Frame}.with(c.pastFlags.query(), c.waitFlags.query())
	if c.MaxChars != nil {
		query["max_chars"] = *c.MaxChars
	}
	switch {
	case c.ID != "" && c.Project != "":
		return "", nil, &program.UsageError{Err: errors.New("name a conversation or a project, not both")}
	case c.Project != "" && (c.LeftOut || c.Record || c.Rewrite):
		return "", nil, &program.UsageError{Err: errors.New("--left-out, --record and --rewrite need a conversation")}
	case c.Rewrite && c.Query == "":
		return "", nil, &program.UsageError{Err: errors.New("--rewrite is for a query: add --query")}
	case c.Project != "":
		name, err := projectNamed(c.Project)
		return "/v1/projects/" + segment(name) + "/context", query, err
	case c.ID == "":
		return "", nil, &program.UsageError{Err: errors.New("name a conversation, or a project with --project")}
	}
	if c.LeftOut {
		query["explain"] = "candidates"
	}
	query["record"], query["rewrite"] = c.Record, c.Rewrite
	query["strategy"], query["condense"], query["project_memory"] = c.Strategy, c.Condense, c.ProjectMemory
	return conversation(c.ID, "/context"), query.with(c.searchFlags.query()), nil
}

// FilesCmd lists the files of a conversation.
type FilesCmd struct {
	conversationArg
	Kind        []string `help:"Only files whose strongest access is of this kind: write, read, search or list; may be given more than once." enum:"read,write,search,list" placeholder:"KIND"`
	Limit       int      `help:"Maximum number of files; 0 means as many as the server lists, 10,000." default:"200"`
	All         bool     `help:"Include temporary and generated files, such as those in node_modules, or below /tmp outside of the working directory."`
	ByDirectory bool     `help:"Group the files by directory."`
	pastFlags
	waitFlags
}

func (*FilesCmd) Help() string {
	return `Examples:

    mneme files ID
    mneme files ID --kind write --json | jq -r '.[].path'`
}

func (c *FilesCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	answer := struct{ Files, Directories []json.RawMessage }{Files: []json.RawMessage{}}
	query := parameters{"limit": cmp.Or(c.Limit, 10_000), "all": c.All, "kind": c.Kind}.with(c.pastFlags.query(), c.waitFlags.query())
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
	if len(rows) == 0 && !c.All {
		t.say("No files; --all also lists temporary and generated ones.")
	}
	return t.table([]column{
		{Name: "KIND"}, {Name: "TOOL", Min: 8, Drop: 2}, {Name: "TURN", Right: true, Drop: 3}, {Name: "SEQ", Right: true, Drop: 4},
		{Name: "COUNT", Right: true, Drop: 1}, {Name: "PATH", Min: 20, End: true},
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
			_, name := files.Split(f.Path)
			rows = append(rows, []any{d.Path, f.Kind, f.Tool, f.Turn, f.Seq, f.Count, name})
		}
	}
	return t.table([]column{
		{Name: "DIRECTORY", Min: 12, End: true}, {Name: "KIND"}, {Name: "TOOL", Min: 8, Drop: 2}, {Name: "TURN", Right: true, Drop: 3}, {Name: "SEQ", Right: true, Drop: 4},
		{Name: "COUNT", Right: true, Drop: 1}, {Name: "FILE", Min: 12},
	}, rows)
}

// EventCmd shows an event.
type EventCmd struct {
	Seq uint64 `arg:"" help:"Its sequence in the log."`
}

func (*EventCmd) Help() string {
	return `Prints structured CloudEvents JSON, indented on a terminal.

Example:

    mneme event 1200 | jq .data`
}

func (c *EventCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	body, err := api.raw(ctx, http.MethodGet, "/v1/events/"+strconv.FormatUint(c.Seq, 10), nil, "", nil)
	if err != nil {
		return err
	}
	return t.rawJSON(body, t.isPerson() && !g.JSON)
}
