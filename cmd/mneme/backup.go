package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/internal/audit"
	"mneme.dev/mneme/internal/backup"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/pkg/eventlog"
)

// BackupCmd groups what makes and checks backups.
type BackupCmd struct {
	Create BackupCreateCmd `cmd:"" default:"withargs" help:"Back up the log while everything runs."`
	Verify BackupVerifyCmd `cmd:"" help:"Read a backup and compare it with its manifest."`
}

// BackupCreateCmd backs up the log.
type BackupCreateCmd struct {
	Out  string `required:"" placeholder:"DIR" complete:"file" help:"The new directory to write the backup to."`
	Keep int    `placeholder:"N" help:"Afterwards, remove the oldest backups of this log in the same directory until N are left; none while the log has lost events."`
	Once bool   `help:"If a complete backup is in DIR already, keep it and only do what --keep says: for a job that is retried with the same DIR."`
}

func (*BackupCreateCmd) Help() string {
	return `Only the log needs a backup: everything else is rebuilt from it. The backup holds all events up to the last one when it began. The directory appears once the backup is complete and has been read back; an interrupted backup leaves at most a directory that ends in .partial.

It is made over NATS (--nats-url), whose snapshot API the credentials must allow. The NATS command can restore it too: nats stream restore DIR.

Examples:

    mneme backup create --out backup-2026-01-31
    mneme backup create --out /backups/2026-01-31 --keep 14
    mneme backup verify backup-2026-01-31
    mneme restore backup-2026-01-31`
}

// backedUp is what the commands print about a backup.
type backedUp struct {
	Path       string    `json:"path"`
	Time       time.Time `json:"time"`
	Version    string    `json:"version"`
	First      uint64    `json:"first_seq"`
	Last       uint64    `json:"last_seq"`
	Events     uint64    `json:"events"`
	Bytes      int64     `json:"bytes"`
	Content    string    `json:"content_sha256"`
	Identities string    `json:"identities_sha256"`
	Missing    uint64    `json:"missing_events,omitempty"` // of the log, and so of a new backup
	Removed    []string  `json:"removed,omitempty"`        // older backups
	Seconds    float64   `json:"seconds"`
}

func describeBackup(path string, m backup.Manifest, began time.Time) backedUp {
	return backedUp{path, m.Time, m.Version, m.First, m.Last, m.Events, m.Bytes, m.Content, m.Identities, 0, nil, time.Since(began).Seconds()}
}

func (b *backedUp) print(g *Globals, t *terminal, what string) error {
	if g.JSON {
		return t.json(b)
	}
	return t.text(fmt.Sprintf("%s %s: %s up to sequence %d, %s bytes, content %s\n", what, b.Path, counted(b.Events, "event"), b.Last, number(b.Bytes), b.Content))
}

// Run writes the backup and prints what it holds.
func (c *BackupCreateCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if c.Keep < 0 {
		return &program.UsageError{Err: errors.New("--keep: at least 1; 0, the default, removes none")}
	}
	conn, err := g.connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	began := time.Now()
	progress, finish := t.steps()
	m, err := backup.Create(ctx, conn, c.Out, progress)
	finish()
	what := "backed up to"
	if errors.Is(err, backup.ErrExists) && c.Once {
		what = "already complete:"
		m, err = backup.Verify(c.Out, nil)
	}
	if errors.Is(err, backup.ErrExists) {
		return &program.UsageError{Err: err}
	}
	if err != nil {
		return err
	}
	b := describeBackup(c.Out, m, began)
	if b.Missing, err = missingEvents(ctx, conn); err != nil {
		t.say("warning: could not check whether the log has lost events: %v", g.explained(err))
	}
	lost := err != nil || b.Missing > 0
	if b.Missing > 0 {
		t.say("warning: the log has lost %s, which this backup does not have either: keep the backups from before; mneme doctor says what to do", counted(b.Missing, "event"))
	}
	if c.Keep > 0 && !lost {
		var foreign []string
		b.Removed, foreign, err = backup.Prune(c.Out, c.Keep)
		for _, path := range b.Removed {
			t.say("removed %s", path)
		}
		if len(foreign) > 0 {
			t.say("warning: %s of another log or damaged, which --keep does not remove: if this log began anew because the other was lost, restore the newest of them; if nobody needs them, remove them yourself: %s",
				counted(len(foreign), "backup"), strings.Join(foreign, ", "))
		}
		if err != nil {
			return fmt.Errorf("the backup is complete, but older ones could not be removed: %w", err)
		}
	}
	return b.print(g, t, what)
}

// missingEvents returns how many events the log has lost.
func missingEvents(ctx context.Context, conn *nats.Conn) (uint64, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return 0, err
	}
	info, err := natsdeploy.Inspect(ctx, js)
	return info.Missing, err
}

// BackupVerifyCmd checks a backup.
type BackupVerifyCmd struct {
	Path string `arg:"" name:"dir" complete:"file" help:"The directory of the backup."`
}

func (*BackupVerifyCmd) Help() string {
	return `Needs no server. The exit code is 3 if the backup is damaged; the error then names the byte of the file and the last sequence before it.

Example:

    mneme backup verify backup-2026-01-31`
}

func (c *BackupVerifyCmd) Run(_ context.Context, g *Globals, t *terminal) error {
	began := time.Now()
	progress, finish := t.steps()
	read := int64(0)
	m, err := backup.Verify(c.Path, func(n int) {
		read += int64(n)
		progress("verifying", read, -1)
	})
	finish()
	if damaged := (*backup.DamagedError)(nil); errors.As(err, &damaged) {
		t.say("mneme: %v", err)
		return errDifference
	}
	if err != nil {
		return err
	}
	b := describeBackup(c.Path, m, began)
	return b.print(g, t, "complete:")
}

// RestoreCmd restores the log.
type RestoreCmd struct {
	Path     string         `arg:"" name:"from" complete:"file" help:"The directory of the backup."`
	Data     string         `placeholder:"DIR" complete:"file" help:"Restore into this data directory of mneme up, which must not be running, instead of into a server."`
	LogSize  settings.Bytes `placeholder:"SIZE" help:"Size at which the restored log is full, in bytes or with a unit, such as 20GiB; default: that of the empty log it replaces, or of the backup."`
	Replicas int            `placeholder:"N" help:"Copies in a cluster; default: those of the empty log it replaces, or of the backup; on a single server one."`
}

func (*RestoreCmd) Help() string {
	return `Verifies the backup, then restores the log with the same sequences and message ids. A log that holds events is never replaced. If the restore is interrupted, run it again: it replaces what it left, and until then the programs refuse the log and say so.

Stop ingestor, file-tracker, summarizer and the agents first; mneme up and context-api may run. Afterwards read models that lag behind the log catch up by themselves; if they are ahead of it, mneme status shows them as halted and says what to do.

Examples:

    mneme restore backup-2026-01-31
    mneme restore backup-2026-01-31 --data /var/lib/mneme
    mneme restore backup-2026-01-31 --replicas 3`
}

// Run restores the log and prints what it holds.
func (c *RestoreCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if c.Replicas < 0 {
		return usageError("--replicas must not be negative")
	}
	conn, stop, err := c.open(ctx, g)
	if err != nil {
		return err
	}
	defer stop()
	began := time.Now()
	progress, finish := t.steps()
	m, err := backup.Restore(ctx, conn, c.Path, backup.Options{MaxBytes: int64(c.LogSize), Replicas: c.Replicas}, progress)
	finish()
	if damaged := (*backup.DamagedError)(nil); errors.As(err, &damaged) {
		t.say("mneme: %v", err)
		return errDifference
	}
	if errors.Is(err, backup.ErrNotEmpty) {
		return fmt.Errorf("%w: %s", err, c.elsewhere())
	}
	if err != nil {
		return err
	}
	if err := recordRestore(ctx, conn); err != nil {
		t.say("mneme: the log is restored, but the audit log does not say so: %v", g.explained(err))
	}
	b := describeBackup(c.Path, m, began)
	if err := b.print(g, t, "restored"); err != nil {
		return err
	}
	t.remark("", "Read models that lag behind the log catch up by themselves; those that are ahead of it halt.", "mneme status")
	return nil
}

// elsewhere says where a backup can go if the log is not empty.
func (c *RestoreCmd) elsewhere() string {
	if c.Data != "" {
		return fmt.Sprintf("name a new directory with --data, or move %s away if nobody needs its events", filepath.Join(c.Data, "nats"))
	}
	return fmt.Sprintf("restore into a new directory of mneme up with --data, or name another server with --nats-url; "+
		"if nobody needs the events of this one, stop mneme up and move the folder nats of its data away, or on a server of its own run nats stream rm %s", natsdeploy.Stream)
}

// recordRestore writes a restore into the audit log. It comes after the restore: a server without a log has no audit log
// either, and a log that holds events is never replaced.
func recordRestore(ctx context.Context, conn *nats.Conn) error {
	w, err := audit.NewWriter(conn, 0)
	if err != nil {
		return err
	}
	e := audit.ByCommand(natsdeploy.AuditRestore)
	e.Outcome = audit.Done
	return w.Write(ctx, e)
}

// open connects to the server, or starts one on the data directory.
func (c *RestoreCmd) open(ctx context.Context, g *Globals) (conn *nats.Conn, stop func(), err error) {
	if c.Data == "" {
		conn, err = g.connect()
		if err != nil {
			return nil, nil, err
		}
		return conn, conn.Close, nil
	}
	server, err := embedded.Start(ctx, embedded.Config{Dir: filepath.Join(c.Data, "nats")})
	if err != nil {
		return nil, nil, err
	}
	conn, err = eventlog.Connect("", "restore", slog.New(slog.DiscardHandler), server.InProcess())
	if err != nil {
		server.Stop()
		return nil, nil, err
	}
	return conn, func() { conn.Close(); server.Stop() }, nil
}

// connect connects to NATS, whether or not there is a log.
func (g *Globals) connect() (*nats.Conn, error) {
	if err := g.given.check(&g.Client); err != nil {
		return nil, err
	}
	options := append(program.NATSOptions(g.NATSTLS), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if errors.Is(err, nats.ErrPermissionViolation) {
			g.isRefused(err)
		}
	}))
	conn, err := eventlog.Connect(g.NATSURL, "cli", slog.New(slog.DiscardHandler), options...)
	what, remedy := program.Refusal(err)
	switch where := settings.Redacted(g.NATSURL); {
	case what != "":
		return nil, fmt.Errorf("NATS at %s: %s: %s", where, what, asFlags(remedy))
	case err != nil && g.withoutNATS():
		return nil, fmt.Errorf("NATS at %s: %w: this command goes to NATS, where the token for HTTP is not enough. It is for those who run the server: if you do, name its NATS with --nats-url", where, err)
	case err != nil:
		return nil, fmt.Errorf("NATS at %s: %w: start mneme with `mneme up`, or name the server with --nats-url", where, err)
	}
	return conn, nil
}

// asFlags replaces the variables that a text names by the flags that set the same.
func asFlags(text string) string {
	return settingNames.ReplaceAllStringFunc(text, func(name string) string { return "--" + settings.Flag(name) })
}

var settingNames = regexp.MustCompile(`MNEME_[A-Z_]+`)

// steps returns a bar for steps that follow each other.
func (t *terminal) steps() (backup.Progress, func()) {
	var bar *bar
	current := ""
	finish := func() {
		if bar != nil {
			_ = bar.Finish()
		}
	}
	return func(what string, bytes, total int64) {
		if what != current {
			finish()
			bar, current = t.progress(total, what), what
		}
		if total >= 0 {
			bytes = min(bytes, total)
		}
		_ = bar.Set64(bytes)
	}, finish
}
