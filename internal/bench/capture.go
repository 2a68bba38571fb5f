package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"mneme.dev/mneme/pkg/eventlog"
)

// CaptureOptions are the options of [RunCapture].
type CaptureOptions struct {
	Program   Program
	Paths     []string      // sessions of Claude Code
	Factor    float64       // speed at which a session is written, relative to the recording
	Kills     int           // of the watcher, while the session is written for the second time
	Files     int           // number of earlier sessions to read; 0 skips this part
	IdleFiles int           // number of files that do not change; 0 skips this part
	IdleFor   time.Duration // how long they are watched
}

// Capture is the result of [RunCapture].
type Capture struct {
	Machine  Machine     `json:"machine"`
	Store    Store       `json:"store"`
	Session  string      `json:"session"` // the file that was replayed
	Lines    int         `json:"lines"`
	Events   int         `json:"events"` // that an import of the finished file brings
	MB       float64     `json:"mb"`
	Factor   float64     `json:"factor"`
	Readable Latencies   `json:"readable"`
	Held     int         `json:"held_events"` // events that were not measured, because no later line completes them
	Replayed Differences `json:"replayed"`    // without kills
	Kills    int         `json:"kills"`
	Working  int         `json:"kills_working"` // after which the watcher had published something since its start
	Killed   Differences `json:"killed"`

	History *CapturedHistory `json:"history,omitempty"`
	Idle    *CapturedIdle    `json:"idle,omitempty"`
}

// CapturedHistory says how fast earlier sessions were read.
type CapturedHistory struct {
	Files       int     `json:"files"`
	Events      int     `json:"events"`
	MB          float64 `json:"mb"`
	MBPS        float64 `json:"mb_per_s"`         // from the start of the process until all were in the log
	AppliedMBPS float64 `json:"applied_mb_per_s"` // from the start of the process until all were readable
	CPU         float64 `json:"cpu_s"`            // processor time of the watcher
}

// CapturedIdle says what a watcher costs while nothing changes; nil for figures that the system does not report.
type CapturedIdle struct {
	Files      int      `json:"files"`
	Seconds    float64  `json:"seconds"`
	Share      *float64 `json:"core_share"` // of one core
	ResidentMB *float64 `json:"resident_mb"`
}

// Differences say how a watched session differs from an import of the finished file.
type Differences struct {
	Lost    int  `json:"lost"`    // events
	Doubled int  `json:"doubled"` // copies of events that the log has already
	Changed int  `json:"changed"` // events with other content
	Strange int  `json:"strange"` // events that the import does not have
	Moved   bool `json:"moved"`   // the events that both have are in another order
}

// None reports whether there are no differences.
func (d Differences) None() bool { return d == Differences{} }

// logEvent is an event of the log.
type logEvent struct{ identity, content string }

func differences(want, got []logEvent) (d Differences) {
	contents := make(map[string]string, len(want))
	for _, e := range want {
		contents[e.identity] = e.content
	}
	seen := make(map[string]bool, len(got))
	var order []string
	for _, e := range got {
		content, known := contents[e.identity]
		switch {
		case seen[e.identity]:
			d.Doubled++
			continue
		case !known:
			d.Strange++
			continue
		case content != e.content:
			d.Changed++
		}
		seen[e.identity] = true
		order = append(order, e.identity)
	}
	d.Lost = len(contents) - len(order)
	at := 0
	for _, e := range want {
		if !seen[e.identity] {
			continue
		}
		d.Moved = d.Moved || at < len(order) && order[at] != e.identity
		at++
	}
	return d
}

// Tenants of the parts of the measurement: each has a log of its own.
const (
	replayedTenant = "replayed"
	killedTenant   = "killed"
	historyTenant  = "history"
	idleTenant     = "idle"
)

// RunCapture starts the program in an empty directory, and, at the same time, `mneme watch` on a folder of transcripts.
// It writes one of the sessions, the one of middle size among those that are long enough, into that folder line by
// line, Factor times as fast as it was recorded. It measures each event from when the line that completes it is written
// until the API has it. Then it writes the session again while it kills the watcher Kills times. It compares the
// results of both with an import of the finished file. At the end a watcher reads Files earlier sessions, which are
// copies under other ids, and another one follows IdleFiles files of one message each that do not change.
//
// Without a session of Claude Code it returns [ErrNoEvents], and [ErrOneSession] if Files is not 0 and one can't be
// copied.
func RunCapture(ctx context.Context, o CaptureOptions, say Say) (out Capture, err error) {
	out.Machine, out.Factor, out.Kills = thisMachine(), o.Factor, o.Kills
	sources, err := findSources(o.Paths)
	if err != nil {
		return out, err
	}
	s, err := sources.middle(ctx, o.Kills)
	if err == nil && o.Files > 0 {
		err = s.canBeCopied()
	}
	if err != nil {
		return out, err
	}
	dir, err := os.MkdirTemp("", "mneme-bench-capture-")
	if err != nil {
		return out, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	out.Session, out.Lines, out.MB = filepath.Base(s.path), len(s.lines), float64(s.size)/1e6
	out.Store, err = o.Program.loaded(ctx, Embeddings{Kind: "builtin"}, "off", func(*program) error { return nil }, func(server *program) error {
		log, err := server.log(ctx)
		if err != nil {
			return err
		}
		defer log.Conn().Close()
		w := &watch{what: o.Program, server: server, log: log, dir: dir, say: say}
		if err := out.replay(ctx, w, s, o); err != nil {
			return err
		}
		if o.Files > 0 {
			if out.History, err = w.history(ctx, sources, o.Files); err != nil {
				return err
			}
		}
		if o.IdleFiles > 0 {
			out.Idle, err = w.idle(ctx, o.IdleFiles, o.IdleFor)
		}
		return err
	})
	return out, err
}

// replay writes the session twice, and compares with an import.
func (out *Capture) replay(ctx context.Context, w *watch, s *replayed, o CaptureOptions) error {
	path, err := w.replay(ctx, s, o.Factor, out)
	if err != nil {
		return err
	}
	if _, err := importInto(ctx, w.server, ContextOptions{Program: w.what, Paths: []string{path}}); err != nil {
		return err
	}
	want, err := w.logged(ctx, tenant)
	if err != nil {
		return err
	}
	out.Events = len(want)
	got, err := w.logged(ctx, replayedTenant)
	if err != nil {
		return err
	}
	out.Replayed = differences(want, got)
	if out.Working, err = w.replayKilled(ctx, s, o.Factor, o.Kills); err != nil {
		return err
	}
	got, err = w.logged(ctx, killedTenant)
	if err == nil {
		out.Killed = differences(want, got)
	}
	return err
}

// watch runs watchers against a server, for each tenant on a folder of its own.
type watch struct {
	what   Program
	server *program
	log    *eventlog.Log
	dir    string
	say    Say
}

// folder returns the folder of a tenant's transcripts of one project, which it makes.
func (w *watch) folder(tenant, project string) (string, error) {
	path := filepath.Join(w.dir, tenant, "projects", project)
	return path, os.MkdirAll(path, 0o700)
}

// command is the program as a watcher of a tenant's folder. It ends with ctx.
func (w *watch) command(ctx context.Context, tenant string, flags ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, w.what.Executable, append([]string{
		"watch", "--json", "--agent", "claude-code", "--url", w.server.http, "--tenant", tenant, "--state", filepath.Join(w.dir, tenant+".json"),
	}, flags...)...)
	cmd.Env = append(w.what.environment(), "CLAUDE_CONFIG_DIR="+filepath.Join(w.dir, tenant))
	return cmd
}

// kill is kill -9.
func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// once has a watcher read everything that exists. Refused lines are not an error.
func (w *watch) once(ctx context.Context, tenant string) (cpu time.Duration, err error) {
	cmd := w.command(ctx, tenant, "--once")
	var said strings.Builder
	cmd.Stderr = &said
	raw, err := cmd.Output()
	if !json.Valid(raw) {
		return 0, errors.Join(ctx.Err(), fmt.Errorf("mneme watch: %w: %s", err, strings.TrimSpace(said.String())))
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// logged returns all events of a tenant in the log.
func (w *watch) logged(ctx context.Context, of string) (list []logEvent, err error) {
	err = w.log.Tail(ctx, eventlog.Filter{Tenant: of}, eventlog.TailOptions{From: 1, ToEnd: true}, func(m eventlog.Message) error {
		e, _, err := m.Decode()
		if err == nil {
			list = append(list, logEvent{e.Identity(tenant).String(), e.Content().String()})
		}
		return err
	})
	return list, err
}

// rested sets a time long ago, so that the last message of a file counts as complete.
func rested(path string, minutes int) error {
	at := time.Now().Add(-time.Hour - time.Duration(minutes)*time.Minute)
	return os.Chtimes(path, at, at)
}
