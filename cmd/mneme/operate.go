package main

import (
	"context"
	"fmt"

	"mneme/internal/console"
	"mneme/internal/httpapi"
)

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
