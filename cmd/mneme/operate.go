package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"mneme.dev/mneme/internal/console"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/pkg/projection"
)

// VerifyCmd compares the read models with the log.
type VerifyCmd struct{}

func (*VerifyCmd) Help() string {
	return `This takes about as long as applying the whole log did; everything else keeps running.

Example:

    mneme verify || echo "exit code $?"            3 is a difference, 1 a failure`
}

// Run prints one hash for each projection, and the differences.
func (c *VerifyCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	if isTerminal(t.err) {
		t.say("Replaying the log to compare it with the read models; this takes about as long as applying it did.")
	}
	var v httpapi.Verification
	if err := api.post(ctx, "/v1/verify", "", nil, &v); err != nil {
		return err
	}
	if g.JSON {
		if err := t.json(v); err != nil {
			return err
		}
	} else if err := t.verified(&v); err != nil {
		return err
	}
	if v.Equal {
		return nil
	}
	c.remedies(t, &v)
	return errDifference
}

func (t *terminal) verified(v *httpapi.Verification) error {
	var out strings.Builder
	for _, p := range v.Projections {
		verdict := "equal"
		if !p.Equal {
			verdict = "DIFFERS in " + counted(len(p.Differences), "conversation")
		}
		switch {
		case p.Behind == 0 && p.Later > 0:
			verdict += fmt.Sprintf(" up to sequence %d; %s applied meanwhile", p.UpTo, counted(p.Later, "event"))
		case p.Behind > 0:
			verdict += fmt.Sprintf(" up to sequence %d; %s not applied yet", p.UpTo, counted(p.Behind, "event"))
		}
		fmt.Fprintf(&out, "%s: %s, hash %s, %s, %s\n", p.Name, verdict, p.Hash, counted(p.Conversations, "conversation"), counted(p.Events, "event"))
		for _, d := range p.Differences {
			fmt.Fprintf(&out, "  %s %s: %s\n", console.OneLine(d.Tenant), console.OneLine(d.Conversation), differences[projection.Side(d.MissingIn)])
		}
	}
	return t.text(out.String())
}

// differences describe how a conversation differs.
var differences = map[projection.Side]string{
	projection.MissingInLog:   "events are missing in the log",
	projection.MissingInModel: "events are missing in the read model",
	projection.MissingNowhere: "the same events, different rows",
}

// remedies prints what to do about differences, once for each cause.
func (*VerifyCmd) remedies(t *terminal, v *httpapi.Verification) {
	log, models := false, []string{}
	for _, p := range v.Projections {
		for _, d := range p.Differences {
			if projection.Side(d.MissingIn) == projection.MissingInLog {
				log = true
			} else if !slices.Contains(models, p.Name) {
				models = append(models, p.Name)
			}
		}
	}
	if log {
		t.remark(red, "The log has lost events that read models still hold.", "restore the log, or write the events back with mneme repair log; do not rebuild before that")
	}
	for _, name := range models {
		t.remark(red, "The read model "+name+" differs from a replay of the log.", "mneme rebuild "+name)
	}
}
