package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nats-io/nats.go"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/pkg/eventlog"
)

// damage copies the log while its server is down, damages the copy, and checks that mneme reports
// missing events. The log itself stays intact, so the acknowledged events can still be compared
// with it.
func (c *campaign) damage(ctx context.Context, f Fault) (err error) {
	server := c.system.machines[targetNATS]
	if err := server.terminate(); err != nil {
		c.violated("%v", err)
	}
	dir := filepath.Join(c.dir, fmt.Sprintf("damaged-%d", f.N))
	defer func() { _ = os.RemoveAll(dir) }()
	err = os.CopyFS(dir, os.DirFS(filepath.Join(c.system.dir, "nats")))
	if startErr := server.start(); err == nil {
		err = startErr
	}
	if err != nil || ctx.Err() != nil {
		return err
	}
	// The server that looks at the copy has no accounts, so the log is in that of all.
	accounts := filepath.Join(dir, "jetstream")
	if err := os.Rename(filepath.Join(accounts, natsdeploy.LogAccount), filepath.Join(accounts, "$G")); err != nil {
		return err
	}
	before, unreadable, err := lookAt(ctx, dir)
	if err != nil || before.Messages == 0 {
		return err
	}
	if before.Missing > 0 || unreadable > 0 {
		c.violated("an intact log of %d events is reported with %d missing and %d unreadable", before.Messages, before.Missing, unreadable)
	}
	if err := damageBlock(f.Kind, filepath.Join(accounts, "$G", "streams", natsdeploy.Stream, "msgs")); err != nil {
		return err
	}
	after, unreadable, err := lookAt(ctx, dir)
	if err != nil {
		return err
	}
	// Projections notice a log that ends earlier, and halt.
	if after.Missing == 0 && unreadable == 0 && after.Head >= before.Head {
		c.violated("%s: no event is reported missing from a log that had %d events, %+v", f, before.Messages, after)
	}
	return nil
}

// damageBlock damages the largest file of messages.
func damageBlock(kind Kind, dir string) error {
	blocks, err := filepath.Glob(filepath.Join(dir, "*.blk"))
	if err != nil {
		return err
	}
	largest, size := "", int64(-1)
	for _, block := range blocks {
		if info, err := os.Stat(block); err == nil && info.Size() > size {
			largest, size = block, info.Size()
		}
	}
	switch {
	case largest == "":
		return fmt.Errorf("no file of messages in %s", dir)
	case kind == LogRemoved:
		return os.Remove(largest)
	case kind == LogCut:
		return os.Truncate(largest, size/2)
	}
	raw, err := os.ReadFile(largest)
	if err != nil {
		return err
	}
	at := bytes.Index(raw[size/3:], []byte(`_id":"`)) // inside the body of a message
	if at < 0 {
		return fmt.Errorf("no event after the first third of %s", largest)
	}
	copy(raw[size/3+int64(at):], "XXXX")
	return os.WriteFile(largest, raw, 0o600)
}

// lookAt opens the log in a directory that no server uses.
func lookAt(ctx context.Context, dir string) (state eventlog.State, unreadable uint64, err error) {
	server, err := embedded.Start(ctx, embedded.Config{Dir: dir})
	if err != nil {
		return state, 0, err
	}
	defer server.Stop()
	conn, err := nats.Connect("", server.InProcess())
	if err != nil {
		return state, 0, err
	}
	defer conn.Close()
	log, err := eventlog.Open(ctx, conn)
	if err != nil {
		return state, 0, err
	}
	if state, err = log.State(ctx); err != nil {
		return state, 0, err
	}
	unreadable, err = log.Unreadable(ctx)
	return state, unreadable, err
}
