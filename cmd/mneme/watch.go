package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"mneme.dev/mneme/internal/capture"
	"mneme.dev/mneme/internal/connect"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/settings"
)

// WatchCmd follows the transcripts of this machine for a server elsewhere.
type WatchCmd struct {
	Agent []string `help:"Follow this agent, connected or not: ${captured}; may be given more than once. Without it, those that mneme connect connected to --url." enum:"${captured}" placeholder:"AGENT"`
	Index []string `help:"Index this folder as mneme index does, and again when its files change; may be given more than once." sep:"none" placeholder:"PATH" complete:"directory"`
	Once  bool     `help:"Read what is there, then exit."`
	State string   `help:"File that remembers what was read. Defaults to one for each server and tenant in ~/.local/state/mneme." placeholder:"FILE" complete:"file"`
	settings.Redacting
}

func (*WatchCmd) Help() string {
	return `Does for a server on another machine what mneme up does on its own: reads what agents write to their transcripts as they write it, then earlier sessions, oldest first. It publishes over HTTP to --url and needs a token with the role write if the server requires one. Secrets are replaced before anything leaves this machine.

While the server does not answer, it keeps trying. It remembers what it has read, so a restart reads only what has changed. Ctrl-C ends it; nothing is lost, however it ends. The last message of a transcript is published when the next one begins, or when the file has not changed for two minutes.

With --index it also keeps the code of projects indexed: it looks for changed files every ten seconds, or less often if looking takes long. Only named folders are indexed.

A token that the server refuses at the start ends it with exit code 1. If the server refuses it later, it keeps trying, because the token may be replaced in its file; with --once it ends. The exit code of --once is also 1 if a line was refused or a file could not be read.

Examples:

    mneme watch --url https://mneme.example.com --token-file ~/.mneme-token
    mneme watch --agent claude-code --once
    mneme watch --index ~/src/cli --index ~/src/shop`
}

// watched is the output of watch --json at its end.
type watched struct {
	Published    uint64 `json:"published"`     // events, in this run
	RefusedLines int    `json:"refused_lines"` // of the files that this run read
	UnreadFiles  int    `json:"unread_files"`  // that could not be read to their end
	LastError    string `json:"last_error,omitempty"`
	IndexedFiles int    `json:"indexed_files"` // of folders given with --index: published or published as removed
}

// Run follows until it is interrupted, or with --once until all is read.
func (c *WatchCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	rules, err := redactRules(c.Redacting)
	if err != nil {
		return err
	}
	roots, folders, err := transcriptFolders()
	if err != nil {
		return err
	}
	indexed, err := c.folders(ctx, g, api)
	if err != nil {
		return err
	}
	follow := func() []capture.Folder { return c.chosen(folders, g) }
	if c.Once && len(follow()) == 0 && len(indexed) == 0 {
		return usageError("no agent is connected to %s: run mneme connect, or name agents with --agent", settings.Redacted(g.URL))
	}
	state, release, err := c.claimState(g)
	if err != nil {
		return err
	}
	defer release()
	log, err := reachLog(ctx, api, t)
	if err != nil {
		return interruptedIsDone(ctx, err)
	}
	logger := slog.New(slog.NewTextHandler(t.err, &slog.HandlerOptions{Level: slog.LevelInfo}))
	how := capture.Config{
		Log: log, Tenant: g.Tenant, Roots: roots, Lookup: api.lookup, Redact: rules, Follow: follow, Marks: state, Logger: logger,
	}
	denied := make(chan error, 1)
	if c.Once {
		once := onceLog{log, denied}
		how.Log, how.Lookup = once, once.lookup
	}
	receiver := capture.New(how)
	code := &codeFollower{folders: indexed, log: log, logger: logger}
	var following sync.WaitGroup
	following.Go(func() {
		if c.Once {
			code.look(ctx)
		} else {
			code.follow(ctx)
		}
	})
	if !c.Once || len(follow()) > 0 {
		err = c.await(ctx, receiver, denied, t)
	}
	receiver.Close()
	following.Wait()
	return errors.Join(c.report(g, t, receiver.Status(), code), err)
}

// transcriptFolders returns where all agents keep transcripts.
func transcriptFolders() (roots []string, folders []capture.Folder, err error) {
	for _, agent := range settings.Captured {
		list, err := capture.Roots(agent)
		if err != nil {
			return nil, nil, err
		}
		roots = append(roots, list...)
		for _, root := range list {
			folders = append(folders, capture.Folder{Agent: agent, Path: root})
		}
	}
	return roots, folders, nil
}

// chosen returns the folders to follow: those of the named agents or, if none is named, of the agents that
// are connected to the server.
func (c *WatchCmd) chosen(folders []capture.Folder, g *Globals) []capture.Folder {
	names := c.Agent
	if len(names) == 0 {
		for _, a := range connect.Inspect("") {
			if a.Connected && a.Tenant == g.Tenant && strings.TrimRight(a.Server, "/") == strings.TrimRight(g.URL, "/") {
				names = append(names, a.Agent)
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(folders), func(f capture.Folder) bool { return !slices.Contains(names, f.Agent) })
}

// claimState returns the file that remembers what was read, which only one process may use.
func (c *WatchCmd) claimState(g *Globals) (path string, release func(), err error) {
	path = c.State
	if path == "" {
		if path, err = stateFile("watch", strings.TrimRight(g.URL, "/"), g.Tenant); err != nil {
			return "", nil, err
		}
	}
	return claimed("watch", path)
}

// stateFile returns where a command remembers what it did, a file for each list of parts.
func stateFile(command string, parts ...string) (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", &program.UsageError{Err: fmt.Errorf("name a file with --state: %w", err)}
		}
		base = filepath.Join(home, ".local", "state")
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return filepath.Join(base, "mneme", fmt.Sprintf("%s-%x.json", command, sum[:8])), nil
}

// claimed makes sure that no other process uses a file in which a command remembers something.
func claimed(command, path string) (string, func(), error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", nil, err
	}
	lock := flock.New(path + ".lock")
	alone, err := lock.TryLock()
	switch {
	case err != nil:
		return "", nil, err
	case !alone:
		return "", nil, fmt.Errorf("another mneme %s uses %s: end it, or name another file with --state", command, path)
	}
	return path, func() { _ = lock.Unlock() }, nil
}

// reachLog waits until the server answers.
func reachLog(ctx context.Context, api *client, t *terminal) (*remoteLog, error) {
	for said := false; ; {
		log, err := openRemoteLog(ctx, api)
		var away *awayError
		if !errors.As(err, &away) {
			return log, err
		}
		if !said {
			said = true
			t.say("waiting for the server: %v", err)
		}
		select {
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// interruptedIsDone returns no error for a command that its user ended.
func interruptedIsDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// await waits until the user ends the command, or with --once until all is read. On a terminal it shows how
// much of the history is left. The error is one of denied.
func (c *WatchCmd) await(ctx context.Context, r *capture.Receiver, denied <-chan error, t *terminal) error {
	bar, most, shown := t.counter("reading earlier sessions").quiet(), 0, true
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !c.Once || !r.Idle() {
		left := r.Left()
		most = max(most, left)
		switch {
		case left > 0:
			bar.ChangeMax(most)
			_ = bar.Set(most - left)
			shown = true
		case shown:
			_ = bar.Clear()
			shown = false
		}
		select {
		case <-tick.C:
		case err := <-denied:
			_ = bar.Clear()
			return err
		case <-ctx.Done():
			_ = bar.Clear()
			return nil
		}
	}
	_ = bar.Clear()
	return nil
}

func (c *WatchCmd) report(g *Globals, t *terminal, s capture.Status, code *codeFollower) error {
	done := watched{s.Published, s.RefusedLines, s.UnreadFiles, s.LastError, code.files}
	var err error
	if g.JSON {
		err = t.json(done)
	} else {
		text := "published " + counted(done.Published, "event")
		if len(code.folders) > 0 {
			text += ", indexed " + counted(done.IndexedFiles, "changed file")
		}
		err = t.text(text + "\n")
	}
	switch {
	case err != nil || !c.Once:
		return err
	case done.RefusedLines > 0:
		return fmt.Errorf("%s refused; their events are not in the log", counted(done.RefusedLines, "line"))
	case done.UnreadFiles > 0:
		return fmt.Errorf("%s could not be read to the end: %s", counted(done.UnreadFiles, "file"), done.LastError)
	}
	return code.trouble()
}
