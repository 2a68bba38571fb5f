package main

import (
	"context"
	"fmt"

	"mneme.dev/mneme/internal/console"
	"mneme.dev/mneme/internal/httpapi"
)

// RepairCmd groups the repairs.
type RepairCmd struct {
	Log RepairLogCmd `cmd:"" help:"Write back to the log the events that only the read models hold."`
}

// RepairLogCmd writes back to the log what only the read model "graph" holds.
type RepairLogCmd struct {
	DryRun bool `help:"Only report."`
	Accept bool `help:"Give up what is still missing or unreadable afterwards: warnings about it then stop."`
}

func (*RepairLogCmd) Help() string {
	return `When a disk or a purge has removed events from the log, the read models may hold the last copy. First restore the log from a backup, if there is one. This command then publishes the events that are still missing: each with its old identity, at the end of the log.

Some events cannot be written back and are listed: texts over 64 KiB, of which the read models hold only the beginning, and summaries that a rebuild would refuse, because their events change their order or a summary before them is missing (the summarizer writes new ones). --accept gives them up, after which a rebuild is no longer refused. A log that was newly created, or restored from an older backup, counts nothing as missing: with such a log, mneme rebuild all --force gives these events up. Events whose form the read models do not keep exactly are counted as inexact; of an image or another file in base64, only its name comes back.

The command can be repeated. Afterwards run mneme rebuild all, so that the read models show the new order: events that were written back follow the events of their conversation that were never lost.

--accept also records that you removed events of deleted conversations on purpose.

The exit code is 3 if something could not be written back.

Examples:

    mneme repair log --dry-run
    mneme repair log
    mneme repair log --accept
    mneme rebuild all`
}

// Run requests the repair and prints its report.
func (c *RepairLogCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	if isTerminal(t.err) {
		t.say("Comparing the log with the read model graph; this takes about as long as reading both.")
	}
	var r httpapi.LogRepair
	err := api.ask(ctx, "/v1/log/repair", map[string]bool{"dry_run": c.DryRun, "accept": c.Accept}, &r)
	if err != nil {
		return err
	}
	if g.JSON {
		err = t.json(r)
	} else {
		err = c.print(t, &r)
	}
	if err == nil && r.Restored < r.Events {
		err = errDifference
	}
	return err
}

func (c *RepairLogCmd) print(t *terminal, r *httpapi.LogRepair) error {
	verb := "written back"
	if r.DryRun {
		verb = "can be written back"
	}
	out := fmt.Sprintf("%s missing from the log, %s only in the read model graph: %s %s", counted(r.Missing, "event"), counted(r.Events, "event"), t.number(int64(r.Restored)), verb)
	if r.Inexact > 0 {
		out += fmt.Sprintf(" (%s not exactly as published)", t.number(int64(r.Inexact)))
	}
	out += "\n"
	for _, one := range r.Conversations {
		out += fmt.Sprintf("  %s %s: %s %s", console.OneLine(one.Tenant), console.OneLine(one.Conversation), counted(one.Restored, "event"), verb)
		if n := len(one.Unrestorable); n > 0 {
			out += fmt.Sprintf(", %d not", n)
		}
		out += "\n"
		for _, u := range one.Unrestorable {
			out += fmt.Sprintf("    sequence %d, %s %s: %s\n", u.Seq, u.Kind, console.OneLine(u.ID), console.OneLine(u.Reason))
		}
	}
	if err := t.text(out); err != nil {
		return err
	}
	lost := r.Events - r.Restored
	switch {
	case r.NeedsForce && r.Left == 0:
		t.remark(yellow, "Only in the read model: "+counted(lost, "event")+" that can't be written back.", "restore the log from a backup that has them, or go on without them: mneme rebuild all --force")
	case r.DryRun && r.Left > 0:
		t.remark(yellow, "Would still be missing: "+counted(r.Left, "event")+".", "restore them from a backup, or accept the loss with --accept")
	case r.DryRun:
	case r.Left > 0:
		t.remark(yellow, "Still missing: "+counted(r.Left, "event")+".", "restore them from a backup, or accept the loss with --accept")
	case r.Restored > 0:
		t.remark("", "The log holds the events again.", "mneme rebuild all")
	}
	return nil
}
