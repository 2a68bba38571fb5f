package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"mneme.dev/mneme/internal/bench"
	"mneme.dev/mneme/internal/program"
)

// BenchCaptureCmd measures how transcripts are followed.
type BenchCaptureCmd struct {
	Paths     []string      `arg:"" name:"path" complete:"file" help:"Sessions of Claude Code, for example ~/.claude/projects."`
	Factor    float64       `help:"How many times faster than it was recorded the session is written; no pause is longer than a second." default:"10"`
	Kills     int           `help:"How often the watcher is killed." default:"20"`
	Files     int           `help:"Earlier sessions to read; 0 leaves them out." default:"2000"`
	IdleFiles int           `help:"Files that do not change; 0 leaves them out." default:"5000"`
	IdleFor   time.Duration `help:"How long they are watched. Folders are walked once a minute." default:"2m"`
	benchStore
}

func (*BenchCaptureCmd) Help() string {
	return `Starts "mneme up" as a separate process on an empty temporary directory, and, at the same time, "mneme watch" on a folder of transcripts. It measures three things:

One session, the middle one by size, is written into that folder line by line. "readable" is the time from when a line is written until GET /v1/conversations/ID?at_least=SEQ has answered with an event of it. An agent's message ends with the next one, so its time counts from the line that completes it; the last message of the file is not measured. Then the session is written again, while the watcher is killed with SIGKILL and started again --kills times. What both left in the log is compared with an import of the finished file: events that are missing, that are there twice, or that have another content.

"history" is how fast a watcher reads --files earlier sessions, copies of all sessions under other ids; as much space is needed in the temporary directory, and again for the log.

"idle" is the share of a core that a watcher of --idle-files files takes while none changes.

Examples:

    mneme bench capture ~/.claude/projects
    mneme bench capture session.jsonl --factor 1 --files 0 --idle-files 0`
}

func (c *BenchCaptureCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if c.Factor <= 0 {
		return usageError("--factor %v: must be positive", c.Factor)
	}
	for _, err := range []error{atLeast("--kills", c.Kills, 1), atLeast("--files", c.Files, 0), atLeast("--idle-files", c.IdleFiles, 0), atLeast("--idle-for", c.IdleFor, time.Second)} {
		if err != nil {
			return &program.UsageError{Err: err}
		}
	}
	program, err := c.program(g)
	if err != nil {
		return err
	}
	r, err := bench.RunCapture(ctx, bench.CaptureOptions{
		Program: program, Paths: c.Paths, Factor: c.Factor, Kills: c.Kills, Files: c.Files, IdleFiles: c.IdleFiles, IdleFor: c.IdleFor,
	}, t.status)
	if err := t.measured(ctx, err); err != nil {
		return err
	}
	list := []figure{
		{"machine", machine(r.Machine)}, {"store", r.Store.String()},
		{"session", fmt.Sprintf("%s lines, %s events, %.2f MB, written %g times as fast as recorded", number(r.Lines), number(r.Events), r.MB, r.Factor)},
		{"readable", fmt.Sprintf("%s; %s at the end not measured", quantiles(r.Readable), counted(r.Held, "event"))},
		{"replayed", differing(r.Replayed)},
		{"killed", fmt.Sprintf("%s, after %d kills, %d of them after it had published", differing(r.Killed), r.Kills, r.Working)},
	}
	if h := r.History; h != nil {
		list = append(list, figure{"history", fmt.Sprintf("%.1f MB/s until all were in the log, %.1f MB/s until all could be read (%s files, %s events, %.0f MB; %.0f s of processor time of the watcher)",
			h.MBPS, h.AppliedMBPS, number(h.Files), number(h.Events), h.MB, h.CPU)})
	}
	if i := r.Idle; i != nil {
		share := "n/a"
		if i.Share != nil {
			share = fmt.Sprintf("%.2f %%", 100**i.Share)
		}
		list = append(list, figure{"idle", fmt.Sprintf("%s of a core, %s resident (%s files for %.0f s)", share, mb(i.ResidentMB), number(i.Files), i.Seconds)})
	}
	return t.report(g, r, list)
}

func differing(d bench.Differences) string {
	if d.None() {
		return "no event lost, doubled or changed"
	}
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{d.Lost, "lost"}, {d.Doubled, "doubled"}, {d.Changed, "changed"}, {d.Strange, "that the import does not have"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", counted(p.n, "event"), p.what))
		}
	}
	if d.Moved {
		parts = append(parts, "in another order")
	}
	return strings.Join(parts, ", ")
}
