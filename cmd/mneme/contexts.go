package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"mneme.dev/mneme/internal/httpapi"
)

// ContextsCmd lists the contexts that were shown, or makes one again.
type ContextsCmd struct {
	conversationArg
	Seq   uint64 `arg:"" optional:"" help:"Rebuild the context that was recorded at this sequence, and check its hash."`
	Limit int    `help:"Maximum number of contexts; 0 means all." default:"200"`
	waitFlags
}

func (*ContextsCmd) Help() string {
	return `A context that was requested with --record is remembered: its parameters, the sequence as of which it was made, and the hash of its text. From these it is reproduced to the byte. If the hash differs, the exit code is 3.

Examples:

    mneme context ID --record --max-chars 20000    show a context, and remember that
    mneme contexts ID                              what was shown, oldest first
    mneme contexts ID 4711                         what the agent knew then`
}

func (c *ContextsCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	if c.Seq != 0 {
		return c.again(ctx, api, g, t)
	}
	return showList(ctx, g, t, api, conversation(c.ID, "/contexts"), "contexts", c.Limit, c.waitFlags.query(), func(list []httpapi.ServedContext) error {
		cells := make([][]any, len(list))
		for i, v := range list {
			cells[i] = []any{v.Seq, v.Time, v.AsOf, v.Strategy, v.Chars, v.MaxChars, v.Hash[:min(len(v.Hash), 12)], v.Query}
		}
		return t.table([]column{
			{Name: "SEQ", Right: true}, {Name: "TIME", Drop: 2}, {Name: "AS OF", Right: true}, {Name: "STRATEGY", Drop: 3}, {Name: "CHARS", Right: true}, {Name: "BUDGET", Right: true, Drop: 1},
			{Name: "HASH", Drop: 4}, {Name: "QUERY", Min: 10},
		}, cells)
	})
}

// again makes a context again.
func (c *ContextsCmd) again(ctx context.Context, api *client, g *Globals, t *terminal) error {
	body, err := api.raw(ctx, http.MethodGet, conversation(c.ID, "/contexts/", strconv.FormatUint(c.Seq, 10)), c.waitFlags.query(), "", nil)
	if err != nil {
		return err
	}
	var made httpapi.RemadeContext
	if err := json.Unmarshal(body, &made); err != nil {
		return err
	}
	if g.JSON {
		err = t.rawJSON(body, false)
	} else {
		err = t.text(made.Markdown)
	}
	if err == nil && !made.Equal {
		t.say("this is not what was served: its hash is %s, and that of the served context %s", made.Hash, made.Served.Hash)
		err = errDifference
	}
	return err
}
