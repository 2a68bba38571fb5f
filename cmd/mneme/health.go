package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"mneme.dev/mneme/internal/httpapi"
)

// ConversationsHealthCmd says what is odd about a conversation.
type ConversationsHealthCmd struct {
	conversationArg
	From uint64 `help:"Examine only events from this sequence on." default:"0" placeholder:"SEQ"`
	pastFlags
	waitFlags
}

func (*ConversationsHealthCmd) Help() string {
	return `Each finding names its rule, and the sequences of the events that it is based on:

    loop        the same call had the same result 3 times, with nothing new between
    failing     the same call failed twice, with nothing new between
    rereads     the same part of a file was read 3 times, with no write between
    long_turn   a turn has 150 steps or more
    unanswered  the conversation ends with a request without an answer

The exit code is 3 if there is a finding, else 0. One run examines up to 50,000 messages, calls and results, and says where to continue if there are more.

Examples:

    mneme conversations health ID
    mneme conversations health ID --json | jq -r '.findings[] | [.rule, .count, .subject] | @tsv'
    mneme event 4021                               open an event that a finding names`
}

func (c *ConversationsHealthCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	query := parameters{"from": c.From}.with(c.pastFlags.query(), c.waitFlags.query())
	body, err := api.raw(ctx, http.MethodGet, conversation(c.ID, "/health"), query, "", nil)
	if err != nil {
		return err
	}
	var answer httpapi.Health
	if err := json.Unmarshal(body, &answer); err != nil {
		return err
	}
	if g.JSON {
		err = t.rawJSON(body, false)
	} else {
		err = t.health(&answer)
	}
	if err == nil && len(answer.Findings) > 0 {
		err = errDifference
	}
	return err
}

func (t *terminal) health(h *httpapi.Health) error {
	if len(h.Findings) == 0 {
		if err := t.text(fmt.Sprintf("no findings in %s\n", counted(h.Rows, "row"))); err != nil {
			return err
		}
	}
	rows := make([][]any, len(h.Findings))
	for i, f := range h.Findings {
		seqs := make([]string, len(f.Seqs))
		for j, seq := range f.Seqs {
			seqs[j] = fmt.Sprint(seq)
		}
		rows[i] = []any{f.Rule, f.Count, f.Turn, f.Tool, f.Subject, strings.Join(seqs, " ")}
	}
	if len(rows) > 0 {
		if err := t.table([]column{
			{Name: "RULE"}, {Name: "COUNT", Right: true}, {Name: "TURN", Right: true, Drop: 2}, {Name: "TOOL", Drop: 1}, {Name: "SUBJECT", Min: 20}, {Name: "EVENTS", Min: 12},
		}, rows); err != nil {
			return err
		}
	}
	if h.Found > len(h.Findings) {
		t.say("the first %s of %d are shown", counted(len(h.Findings), "finding"), h.Found)
	}
	if !h.Complete {
		t.say("%s examined; continue with --from %d", counted(h.Rows, "row"), h.NextFrom)
	}
	return nil
}
