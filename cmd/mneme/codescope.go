package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"

	"mneme.dev/mneme/internal/httpapi"
)

// CodeConversationsCmd finds the conversations about a function.
type CodeConversationsCmd struct {
	Code    string `arg:"" name:"name|file:line" help:"A function, a type or another named piece of code; or a line of it, as FILE:LINE."`
	File    string `help:"The file that a name is in, if several have it." placeholder:"FILE" complete:"file"`
	Project string `help:"The project: its name, or a folder; . is this one." default:"." placeholder:"NAME" complete:"directory"`
	Limit   int    `help:"Maximum number of conversations." default:"20"`
	waitFlags
}

func (*CodeConversationsCmd) Help() string {
	return `Lists the conversations of a project whose messages name a function, a type or another piece of its code: by a declared reference, by a file and a line as they were then, or by its name. Tools that read or changed its file do not count: see mneme conversations about.

Examples:

    mneme code conversations Store.Close
    mneme code conversations pkg/store/store.go:120
    mneme code conversations Close --file log.go --project ~/src/cli
    mneme code conversations Retry --json | jq -r '.conversations[].id'`
}

// query returns the parameters of the API request. A file that is there is sent by its whole path.
func (c *CodeConversationsCmd) query() (parameters, error) {
	query := parameters{"limit": c.Limit}
	file := c.File
	if parts := atLine.FindStringSubmatch(c.Code); parts != nil {
		line, err := strconv.Atoi(parts[2])
		if err != nil || line < 1 {
			return nil, usageError("%s: lines count from 1", c.Code)
		}
		if file != "" {
			return nil, usageError("--file says where a name is: %s already says where", c.Code)
		}
		file, query["line"] = parts[1], line
	} else {
		query["name"] = c.Code
	}
	if _, err := os.Stat(file); err == nil {
		if whole, err := filepath.Abs(file); err == nil {
			if whole, err = filepath.EvalSymlinks(whole); err == nil {
				file = whole
			}
		}
	}
	query["file"] = file
	return query.with(c.waitFlags.query()), nil
}

func (c *CodeConversationsCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	query, err := c.query()
	if err != nil {
		return err
	}
	name, err := projectNamed(c.Project)
	if err != nil {
		return err
	}
	return showOne(ctx, g, t, api, "/v1/projects/"+segment(name)+"/code/conversations", query, t.namingScope)
}

type namingScope struct {
	Scope         httpapi.NamedScope          `json:"scope"`
	Conversations []httpapi.ScopeConversation `json:"conversations"`
	More          bool                        `json:"more"`
}

func (t *terminal) namingScope(found *namingScope) error {
	t.say("%s:%d-%d %s %s", found.Scope.Path, found.Scope.StartLine, found.Scope.EndLine, found.Scope.Kind, found.Scope.Name)
	if len(found.Conversations) == 0 {
		return t.text("nothing found\n")
	}
	var rows [][]any
	for _, c := range found.Conversations {
		for _, m := range c.Mentions {
			rows = append(rows, []any{c.ID, m.By, m.Turn, m.Seq, m.As, c.Title})
		}
	}
	if err := t.table([]column{
		conversationColumn, {Name: "BY", Drop: 2}, {Name: "TURN", Right: true, Drop: 3}, {Name: "SEQ", Right: true, Drop: 4}, {Name: "NAMED AS", Min: 16}, {Name: "TITLE", Min: 12, Drop: 1},
	}, rows); err != nil {
		return err
	}
	if found.More {
		t.say("There may be more: raise --limit, or name the code by FILE:LINE.")
	}
	return nil
}
