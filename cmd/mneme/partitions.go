package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/audit"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/version"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/projection"
)

// PartitionsCmd shows how many partitions the log has, and gives it more.
type PartitionsCmd struct {
	Number *int `arg:"" optional:"" help:"How many partitions the log is to have: a multiple of what it has, at most 32."`
	Yes    bool `short:"y" help:"Do not ask for confirmation. Required without a terminal."`
}

func (*PartitionsCmd) Help() string {
	return `As many processes of a program can share the work on a log as it has partitions. Without a number, the command prints how many there are.

Adding partitions takes a moment. Agents keep publishing, no event moves, and the read models stay; the programs notice and restart their work with the new partitions. The number cannot be reduced. If the command is interrupted, run it again with the same number; until then the programs refuse to start.

First update all programs to this version of mneme. The command needs the role admin on NATS (--nats-url). A log with several replicas is refused: docs/operations.md says what to do first.

Examples:

    mneme partitions
    mneme partitions 32
    mneme partitions 32 --yes --json`
}

// partitioned is what the command prints.
type partitioned struct {
	Partitions int  `json:"partitions"`
	Before     int  `json:"before,omitempty"`     // if there were fewer before this command
	Unfinished bool `json:"unfinished,omitempty"` // a change began and has not ended
	// Splits are the changes since the log was made.
	Splits []splitDone `json:"splits"`
}

type splitDone struct {
	From int    `json:"from"`
	UpTo uint64 `json:"up_to_seq"` // later events are in the new partitions
}

// Run prints the number of partitions, or changes it.
func (c *PartitionsCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	conn, err := g.connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	info, err := natsdeploy.Inspect(ctx, js)
	unfinished := errors.Is(err, natsdeploy.ErrSplitting)
	if err != nil && !unfinished {
		return err
	}
	if c.Number == nil || *c.Number == info.Partitions && !unfinished {
		return c.print(g, t, info, 0, unfinished)
	}
	before := 0
	if !unfinished {
		before = info.Partitions
		if err := c.agree(ctx, t, info); err != nil {
			return err
		}
	}
	err = c.split(ctx, conn, t, unfinished)
	t.status("")
	// mneme up starts its server again for the new partitions, maybe before the last answer has come.
	info, later := settled(ctx, js)
	if err := errors.Join(err, later); err != nil && (later != nil || info.Partitions != *c.Number) {
		return err
	}
	if info.Partitions != *c.Number {
		return fmt.Errorf("the log has %d partitions now: another command changed their number", info.Partitions)
	}
	return c.print(g, t, info, before, false)
}

// settleFor is how long a server may take to start again.
const settleFor = 30 * time.Second

// settled looks at the log, and waits for its server if the server is down.
func settled(ctx context.Context, js jetstream.JetStream) (info natsdeploy.Info, err error) {
	ctx, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	for {
		info, err = natsdeploy.Inspect(ctx, js)
		if err == nil || errors.Is(err, natsdeploy.ErrSplitting) {
			return info, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return info, err
		}
	}
}

// agree refuses what can't be done, and asks about the rest.
func (c *PartitionsCmd) agree(ctx context.Context, t *terminal, info natsdeploy.Info) error {
	err := natsdeploy.MaySplit(info, *c.Number)
	var more *natsdeploy.MoreError
	switch {
	case errors.As(err, &more):
		return &program.UsageError{Err: err}
	case errors.Is(err, natsdeploy.ErrReplicated):
		return fmt.Errorf("%w: make it one copy first (nats stream edit %s --replicas 1), run this command again, then raise the number of copies again", err, natsdeploy.Stream)
	case err != nil || c.Yes:
		return err
	}
	question := fmt.Sprintf("Give the log %d partitions instead of %d? There is no way back to fewer.", *c.Number, info.Partitions)
	return confirm(ctx, t, question, "give the log more partitions", "nothing was changed")
}

// split makes the partitions, unless an erasure is running: an erasure keeps its count in the same configuration.
func (c *PartitionsCmd) split(ctx context.Context, conn *nats.Conn, t *terminal, unfinished bool) error {
	work := func(ctx context.Context) error {
		return eventlog.Split(ctx, conn, *c.Number, func(step string) { t.status("%s", step) })
	}
	if unfinished { // otherwise no erasure can run, and the audit log has the entry already
		return work(ctx)
	}
	writer, err := audit.NewWriter(conn, 0)
	if err != nil {
		return err
	}
	entry := audit.ByCommand(natsdeploy.AuditPartitions)
	entry.Target = fmt.Sprintf("partitions:%d", *c.Number)
	leases, err := projection.NewLeases(projection.LeaseConfig{Conn: conn, Process: "partitions", Program: "mneme partitions", Version: version.Get().Short()})
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(abandonedFor); ; {
		alone, err := leases.Exclusively(ctx, "erase", func(ctx context.Context) error {
			return writer.Around(ctx, func() error { return work(ctx) }, entry)
		})
		if err != nil || alone {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New("an erasure or another change of the partitions is running: wait until it has ended, then run the command again")
		}
		t.status("waiting for an erasure, or for the lease of a command that was killed")
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// abandonedFor is longer than the lease of a killed command lasts.
const abandonedFor = 5 * time.Second

func (c *PartitionsCmd) print(g *Globals, t *terminal, info natsdeploy.Info, before int, unfinished bool) error {
	if g.JSON {
		out := partitioned{Partitions: info.Partitions, Before: before, Unfinished: unfinished, Splits: []splitDone{}}
		for _, s := range info.Splits {
			out.Splits = append(out.Splits, splitDone{s.From, s.UpTo})
		}
		return t.json(out)
	}
	if unfinished {
		return t.text(fmt.Sprintf("a change to %d partitions was interrupted; finish it: mneme partitions %d\n", info.Partitions, info.Partitions))
	}
	text := fmt.Sprintf("the log has %s\n", counted(uint64(info.Partitions), "partition"))
	if before != 0 {
		text = fmt.Sprintf("the log had %s and has %d now; running programs take them over within seconds: mneme status\n", counted(uint64(before), "partition"), info.Partitions)
	}
	return t.text(text)
}
