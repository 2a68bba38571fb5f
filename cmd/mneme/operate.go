package main

import (
	"context"
	"fmt"
	"strconv"

	"mneme/internal/httpapi"
)

// StatusCmd shows the log and the projections.
type StatusCmd struct{}

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
	fmt.Fprintf(t.out, "log: %s events, head %s, %s KiB, partitions: %d\n\n", number(s.Stream.Messages), number(s.Stream.Head), number(s.Stream.Bytes/1024), s.Stream.Partitions)
	rows := [][]string{}
	for _, p := range s.Projections {
		rows = append(rows, []string{p.Name, p.Store, strconv.Itoa(p.Partition), p.State, number(p.Checkpoint), number(p.Lag), number(p.Applied), number(p.Duplicates), number(p.Failed), p.Error})
	}
	if err := t.table([]string{"PROJECTION", "STORE", "PARTITION", "STATE", "CHECKPOINT", "LAG", "APPLIED", "DUPLICATES", "FAILED", "ERROR"}, rows); err != nil {
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
				verdict = fmt.Sprintf("DIFFERS in %d conversations", len(p.Differences))
			}
			if p.Behind > 0 {
				verdict += fmt.Sprintf(" up to sequence %d; %s events are not applied yet", p.UpTo, number(p.Behind))
			}
			fmt.Fprintf(t.out, "%s: %s, hash %s, %s conversations, %s events\n", p.Name, verdict, p.Hash, number(p.Conversations), number(p.Events))
			for _, d := range p.Differences {
				fmt.Fprintf(t.out, "  %s %s\n", d.Tenant, d.Conversation)
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
	Projection string `help:"Only of this projection." enum:",graph,files" default:""`
	After      uint64 `help:"Only above this sequence." placeholder:"SEQ"`
	Limit      int    `help:"At most this many of each projection; 0 means all." default:"0"`
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
	list := []httpapi.FailedEvent{}
	for _, projection := range projections {
		some, err := c.of(ctx, api, projection)
		if err != nil {
			return err
		}
		list = append(list, some...)
	}
	if g.JSON {
		return t.json(list)
	}
	rows := make([][]string, len(list))
	for i, f := range list {
		rows[i] = []string{f.Projection, strconv.FormatUint(f.Seq, 10), f.Class, f.Tenant, f.Conversation, f.Type, f.EventID, f.Reason}
	}
	return t.table([]string{"PROJECTION", "SEQ", "CLASS", "TENANT", "CONVERSATION", "TYPE", "EVENT", "REASON"}, rows)
}

// of lists the failed events of one projection, page by page.
func (c *FailedListCmd) of(ctx context.Context, api *client, projection string) (list []httpapi.FailedEvent, err error) {
	for after := c.After; ; {
		size := 1000
		if c.Limit > 0 {
			size = min(size, c.Limit-len(list))
		}
		var page struct{ Failed []httpapi.FailedEvent }
		if err := api.get(ctx, "/v1/failed", map[string]any{"projection": projection, "after": after, "limit": size}, &page); err != nil {
			return nil, err
		}
		list = append(list, page.Failed...)
		if len(page.Failed) < size || len(list) == c.Limit {
			return list, nil
		}
		after = list[len(list)-1].Seq
	}
}
