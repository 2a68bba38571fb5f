package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"mneme.dev/mneme/internal/httpapi"
)

// ConversationsAboutCmd finds the conversations about a piece of code.
type ConversationsAboutCmd struct {
	File   string `arg:"" optional:"" name:"file" help:"A file, by its path or the end of its path; FILE:LINE for one line." complete:"file"`
	Symbol string `help:"A function or a type, by its name in references, in the file or anywhere. File accesses of tools then do not count." placeholder:"NAME"`
	Limit  int    `help:"Maximum number of conversations." default:"20"`
	waitFlags
}

func (*ConversationsAboutCmd) Help() string {
	return `Lists conversations whose messages refer to the code or whose tools read, changed, found or listed the file, newest mention first, each with its newest mentions.

Examples:

    mneme conversations about parser.go
    mneme conversations about pkg/parser.go:120           references to other lines are left out
    mneme conversations about --symbol AuthService
    mneme conversations about auth.go --symbol AuthService --json | jq -r '.conversations[].id'`
}

// atLine matches a file with a line and an optional column, as compilers print them.
var atLine = regexp.MustCompile(`^(.+?):(\d+)(?::\d+)?:?$`)

// query returns the parameters of the API request.
func (c *ConversationsAboutCmd) query() (parameters, error) {
	query := parameters{"file": c.File, "name": c.Symbol, "limit": c.Limit}
	if parts := atLine.FindStringSubmatch(c.File); parts != nil {
		line, err := strconv.Atoi(parts[2])
		if err != nil || line < 1 {
			return nil, usageError("%s: lines count from 1", c.File)
		}
		query["file"], query["line"] = parts[1], line
	}
	if c.File == "" && c.Symbol == "" {
		return nil, usageError("name a file, or a symbol with --symbol")
	}
	return query.with(c.waitFlags.query()), nil
}

func (c *ConversationsAboutCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	query, err := c.query()
	if err != nil {
		return err
	}
	return showOne(ctx, g, t, api, "/v1/code/conversations", query, t.mentioning)
}

type mentioning struct {
	Conversations []httpapi.CodeConversation `json:"conversations"`
	More          bool                       `json:"more"`
}

func (t *terminal) mentioning(found *mentioning) error {
	if len(found.Conversations) == 0 {
		return t.text("nothing found\n")
	}
	var rows [][]any
	for _, c := range found.Conversations {
		for _, m := range mentionsOf(c) {
			rows = append(rows, []any{c.ID, m.how, m.turn, m.seq, m.count, m.file, m.symbol, c.Title})
		}
	}
	if err := t.table([]column{
		conversationColumn, {Name: "HOW"}, {Name: "TURN", Right: true, Drop: 3}, {Name: "SEQ", Right: true, Drop: 4},
		{Name: "COUNT", Right: true, Drop: 2}, {Name: "FILE", Min: 16, End: true}, {Name: "SYMBOL", Drop: 5}, {Name: "TITLE", Min: 12, Drop: 1},
	}, rows); err != nil {
		return err
	}
	if found.More {
		t.say("There may be more: older mentions were not examined.")
	}
	return nil
}

// mention is a row of the table.
type mention struct {
	how, file, symbol string
	turn, count       int
	seq               uint64
}

// mentionsOf returns a conversation's references and accesses, newest first.
func mentionsOf(c httpapi.CodeConversation) (list []mention) {
	for _, r := range c.References {
		list = append(list, mention{how: "reference", file: r.File + linesOf(r.StartLine, r.EndLine), symbol: r.Name, turn: r.Turn, seq: r.Seq, count: 1})
	}
	for _, a := range c.Accesses {
		list = append(list, mention{how: a.Kind, file: a.Path, turn: a.Turn, seq: a.Seq, count: a.Count})
	}
	slices.SortStableFunc(list, func(a, b mention) int { return cmp.Compare(b.seq, a.seq) })
	return list
}

// linesOf returns :3 or :3-9, "" if the lines are unknown.
func linesOf(start, end int) string {
	switch {
	case start == 0 && end == 0:
		return ""
	case end <= start:
		return fmt.Sprintf(":%d", start)
	}
	return fmt.Sprintf(":%d-%d", max(start, 1), end)
}
