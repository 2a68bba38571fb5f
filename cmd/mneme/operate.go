package main

import (
	"context"
	"fmt"
	"os"

	"mneme/internal/console"
	"mneme/internal/httpapi"
)

// StatusCmd shows the log and the projections.
type StatusCmd struct{}

// Help implements kong.HelpProvider.
func (*StatusCmd) Help() string {
	return `Lag is what is published and not applied yet. mneme doctor says what to do about what is wrong.

Example:

    mneme status --json | jq '.projections[] | {name, state, lag}'`
}

// Run prints the state.
func (c *StatusCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	api, err := g.client()
	if err != nil {
		return err
	}
	var s httpapi.Status
	if err := api.get(ctx, "/v1/status", nil, &s); err != nil {
		return err
	}
	if g.JSON {
		return t.json(s)
	}
	if err := t.card("events", s.Stream.Messages, "head", s.Stream.Head, "bytes", s.Stream.Bytes, "partitions", s.Stream.Partitions); err != nil {
		return err
	}
	if err := t.text("\n"); err != nil {
		return err
	}
	rows := [][]any{}
	for _, p := range s.Projections {
		rows = append(rows, []any{p.Name, p.Store, p.Partition, p.State, p.Checkpoint, p.Lag, p.Applied, p.Duplicates, p.Failed, p.Error})
	}
	if err := t.table([]column{
		{Name: "PROJECTION"}, {Name: "STORE", Drop: 7}, {Name: "PARTITION", Right: true, Drop: 4}, {Name: "STATE"}, {Name: "CHECKPOINT", Right: true, Drop: 2},
		{Name: "LAG", Right: true}, {Name: "APPLIED", Right: true, Drop: 5}, {Name: "DUPLICATES", Right: true, Drop: 6}, {Name: "FAILED", Right: true, Drop: 1},
		{Name: "ERROR", Min: 12, Drop: 3},
	}, rows); err != nil {
		return err
	}
	for _, p := range s.Projections {
		if p.Failed > 0 {
			t.say("\nSkipped events and why: mneme failed list")
			break
		}
	}
	return nil
}

// VerifyCmd compares the read models with the log.
type VerifyCmd struct{}

// Help implements kong.HelpProvider.
func (*VerifyCmd) Help() string {
	return `It takes about as long as applying the whole log did; everything goes on meanwhile.

Example:

    mneme verify || echo "exit code $?"            3 is a difference, 1 a failure`
}

// Run prints one hash for each projection, and what differs.
func (c *VerifyCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	api, err := g.client()
	if err != nil {
		return err
	}
	if isTerminal(t.err) {
		t.say("Replaying the log beside the read models; this takes about as long as applying it did.")
	}
	var v httpapi.Verification
	if err := api.post(ctx, "/v1/verify", "", nil, &v); err != nil {
		return err
	}
	if g.JSON {
		err = t.json(v)
	} else {
		for _, p := range v.Projections {
			verdict := "equal"
			if !p.Equal {
				verdict = "DIFFERS in " + counted(len(p.Differences), "conversation")
			}
			if p.Behind > 0 {
				verdict += fmt.Sprintf(" up to sequence %d; %s not applied yet", p.UpTo, counted(p.Behind, "event"))
			}
			out := fmt.Sprintf("%s: %s, hash %s, %s, %s\n", p.Name, verdict, p.Hash, counted(p.Conversations, "conversation"), counted(p.Events, "event"))
			for _, d := range p.Differences {
				out += fmt.Sprintf("  %s %s\n", console.OneLine(d.Tenant), console.OneLine(d.Conversation))
			}
			if err = t.text(out); err != nil {
				return err
			}
		}
	}
	if err == nil && !v.Equal {
		err = errDifference
	}
	return err
}

// FailedListCmd lists failed events.
type FailedListCmd struct {
	Projection string `help:"Only of this projection." enum:",graph,files" default:"" placeholder:"NAME"`
	After      uint64 `help:"Only above this sequence." placeholder:"SEQ"`
	Limit      int    `help:"At most this many of each projection; 0 means all." default:"0"`
}

// Help implements kong.HelpProvider.
func (*FailedListCmd) Help() string {
	return `Those of all tenants, unless --tenant or MNEME_TENANT names one. The log still has them: mneme event SEQ shows one that can be decoded.

Examples:

    mneme failed list
    mneme failed list --projection graph --tenant team-a`
}

// Run prints the list.
func (c *FailedListCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	api, err := g.client()
	if err != nil {
		return err
	}
	projections := []string{"graph", "files"}
	if c.Projection != "" {
		projections = []string{c.Projection}
	}
	tenant := ""
	if _, set := os.LookupEnv("MNEME_TENANT"); set || g.given["MNEME_TENANT"] {
		tenant = g.Tenant
	}
	list := []httpapi.FailedEvent{}
	for _, projection := range projections {
		some, err := c.of(ctx, api, projection, tenant)
		if err != nil {
			return err
		}
		list = append(list, some...)
	}
	if g.JSON {
		return t.json(list)
	}
	rows := make([][]any, len(list))
	for i, f := range list {
		rows[i] = []any{f.Projection, f.Seq, f.Class, f.Tenant, f.Conversation, f.Type, f.EventID, f.Reason}
	}
	return t.table([]column{
		{Name: "PROJECTION", Drop: 2}, {Name: "SEQ", Right: true}, {Name: "CLASS", Drop: 3}, {Name: "TENANT", Min: 8, Drop: 4}, {Name: "CONVERSATION", Min: 12, Drop: 1},
		{Name: "TYPE", Min: 12, Drop: 6}, {Name: "EVENT", Min: 10, Drop: 5}, {Name: "REASON", Min: 46},
	}, rows)
}

// of lists the failed events of one projection, page by page.
func (c *FailedListCmd) of(ctx context.Context, api *client, projection, tenant string) (list []httpapi.FailedEvent, err error) {
	for after := c.After; ; {
		size := 1000
		if c.Limit > 0 {
			size = min(size, c.Limit-len(list))
		}
		var page struct{ Failed []httpapi.FailedEvent }
		if err := api.get(ctx, "/v1/failed", parameters{"projection": projection, "tenant": tenant, "after": after, "limit": size}, &page); err != nil {
			return nil, err
		}
		list = append(list, page.Failed...)
		if len(page.Failed) < size || len(list) == c.Limit {
			return list, nil
		}
		after = list[len(list)-1].Seq
	}
}
