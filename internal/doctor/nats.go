package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/pkg/eventlog"
)

// nats checks the server, JetStream, and the log.
func (e *examination) nats(ctx context.Context) {
	if err := e.Client.NATSTLS.Check(); err != nil {
		e.add("nats", Failed, "not asked: "+err.Error(), "correct the value, or unset it")
		return
	}
	asking, stop := context.WithCancel(ctx)
	defer stop()
	options := append(program.NATSOptions(e.Client.NATSTLS), nats.Timeout(patience), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if isRefused(err) { // what is refused is never answered
			stop()
		}
	}))
	conn, err := eventlog.Connect(e.Client.NATSURL, "doctor", slog.New(slog.DiscardHandler), options...)
	where := settings.Redacted(e.Client.NATSURL)
	what, remedy := program.Refusal(err)
	switch {
	case err != nil && e.WithoutNATS:
		e.add("nats", OK, "not checked: commands go to the HTTP API, no NATS server is named, and none lets this user in at "+where, "")
		return
	case what != "":
		e.add("nats", Failed, fmt.Sprintf("%s: %s", where, what), remedy)
		return
	case err != nil:
		e.add("nats", Failed, fmt.Sprintf("no answer from %s: %v", where, err), "start the NATS server, or mneme up, which has one; or name the server with --nats-url or MNEME_NATS_URL")
		return
	}
	defer conn.Close()
	e.server(conn)
	js, err := jetstream.New(conn)
	if err != nil {
		e.add("jetstream", Failed, err.Error(), "")
		return
	}
	asking, cancel := context.WithTimeout(asking, patience)
	defer cancel()
	e.jetStream(asking, conn, js)
	if isRefused(conn.LastError()) {
		return
	}
	e.stream(asking, js)
	e.copies(ctx, conn, js)
	if log, err := eventlog.Open(asking, conn); err == nil {
		e.made = log.Created()
		e.producers(asking, log)
		e.readable(ctx, log)
	}
}

// sameLog compares the log at NATS with the one that the API serves, by the times at which they were made. Without a named
// NATS server, the one at the usual address may be somebody else's, and is then left out.
func (e *examination) sameLog(served time.Time) {
	if served.IsZero() {
		return
	}
	has := "has another log than "
	switch {
	case e.noLog && e.WithoutNATS:
		has = "shows this user no log, unlike "
	case e.made.IsZero(), e.made.Equal(served):
		return
	}
	api, at := settings.Redacted(e.Client.URL), settings.Redacted(e.Client.NATSURL)
	if !e.WithoutNATS {
		e.add("log", Failed, fmt.Sprintf("%s serves another log, made at %s, than the one at %s, made at %s", api, served.Format(time.RFC3339), at, e.made.Format(time.RFC3339)),
			"name the NATS server of the API with --nats-url; if the log was made again while the API ran, restart that")
		return
	}
	e.room = 0
	e.findings = slices.DeleteFunc(e.findings, func(f Finding) bool { return slices.Contains(e.ofNATS, f) })
	e.add("nats", OK, "not checked: no NATS server is named, and the one at "+at+" "+has+api, "")
}

// readable reads the log, as far as it gets within patience.
func (e *examination) readable(ctx context.Context, log *eventlog.Log) {
	const check = "log content"
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	switch unreadable, err := log.Unreadable(ctx); {
	case errors.Is(err, context.DeadlineExceeded):
		e.add(check, OK, fmt.Sprintf("not checked, because reading the whole log takes more than %s; mneme verify reads it", patience), "")
	case err != nil:
		e.add(check, Warning, "the log cannot be read: "+err.Error(), "check the server's log")
	case unreadable > 0:
		e.add(check, Failed, fmt.Sprintf("events of the log that cannot be read, because their bytes on the disk are damaged: %d", unreadable), "restore the log from a backup, or write the events back with mneme repair log; check the disk")
	default:
		e.add(check, OK, "every event can be read", "")
	}
}

// server checks the server's version and limits.
func (e *examination) server(conn *nats.Conn) {
	where := conn.ConnectedUrlRedacted()
	if conn.ConnectedAddr() == "pipe" { // of net.Pipe; the URL is then a default
		where = "in this process"
	}
	detail := fmt.Sprintf("%s, nats-server %s", where, conn.ConnectedServerVersion())
	var major, minor int
	if n, _ := fmt.Sscanf(conn.ConnectedServerVersion(), "%d.%d", &major, &minor); n == 2 && (major < 2 || major == 2 && minor < 12) {
		e.add("nats", Failed, detail+" is too old", "run nats-server 2.12 or later, which stores batches all or nothing")
		return
	}
	if limit := conn.MaxPayload(); limit < natsdeploy.MaxMessageBytes {
		e.add("nats", Warning, fmt.Sprintf("%s accepts messages of at most %d bytes, but events can have %d", detail, limit, natsdeploy.MaxMessageBytes),
			fmt.Sprintf("set max_payload: %d in the server's configuration (deploy/nats/server.conf)", natsdeploy.MaxMessageBytes))
		return
	}
	e.add("nats", OK, detail, "")
}

// isRefused reports whether an error is the server's refusal to say anything about JetStream to this user.
func isRefused(err error) bool {
	return errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"$JS.API.INFO"`)
}

func (e *examination) jetStream(ctx context.Context, conn *nats.Conn, js jetstream.JetStream) {
	account, err := js.AccountInfo(ctx)
	switch {
	case err != nil && isRefused(conn.LastError()):
		e.noLog = true
		e.add("jetstream", Failed, "the NATS server does not let this user ask: "+conn.LastError().Error(), "connect as the user operator: docs/operations/access.md")
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		e.noLog = true
		e.add("jetstream", Failed, "JetStream is off", "enable it in the server's configuration; deploy/nats/server.conf is a working example")
	case err != nil:
		e.add("jetstream", Failed, "it does not answer: "+err.Error(), "check the server's log; a cluster without a leader does not answer")
	case account.Limits.MaxStore > 0 && account.Store > uint64(account.Limits.MaxStore)/10*9:
		e.add("jetstream", Warning, fmt.Sprintf("%s of %s stored in this account", size(account.Store), size(account.Limits.MaxStore)), "raise the account's limit before it is reached: events are then refused")
	default:
		e.add("jetstream", OK, fmt.Sprintf("%s stored in this account", size(account.Store)), "")
	}
}

// How full the log may be before doctor reports a warning or a failure.
const (
	fullWarning = 0.80
	fullFailed  = 0.98
)

func (e *examination) stream(ctx context.Context, js jetstream.JetStream) {
	info, err := natsdeploy.Inspect(ctx, js)
	switch {
	case errors.Is(err, natsdeploy.ErrNoStream):
		e.noLog = true
		asking, cancel := context.WithTimeout(ctx, time.Second) // a user who may not ask gets no answer
		defer cancel()
		if taken := natsdeploy.Taken(asking, js); taken != nil {
			e.add("log", Failed, taken.Error(), "do what the message says, then start mneme up or ingestor")
			return
		}
		e.add("log", Failed, "there is "+err.Error(), "if it never existed, start mneme up or ingestor, which create it; if it was deleted, restore it from a backup, or without one restart mneme up or ingestor and run mneme repair log, which writes back what the read models hold; only then rebuild")
		return
	case errors.Is(err, natsdeploy.ErrIncompatible):
		e.add("log", Failed, err.Error(), "fix what the message names; mneme never changes an existing stream")
		e.missing(info.Missing)
		return
	case err != nil:
		e.add("log", Failed, err.Error(), "check the server's log")
		return
	}
	e.room = max(info.MaxBytes-int64(info.Bytes), 1)
	detail := fmt.Sprintf("events: %d, head %d, %s of %s, partitions: %d, replicas: %d", info.Messages, info.Head, size(info.Bytes), size(info.MaxBytes), info.Partitions, info.Replicas)
	level, what, remedy := JudgeSize(info.Bytes, info.MaxBytes)
	if what != "" {
		detail += ": " + what
	}
	e.add("log", level, detail, remedy)
	e.missing(info.Missing)
}

func (e *examination) missing(n uint64) {
	if n > 0 {
		what, remedy := MissingEvents(n)
		e.add("log", Failed, what, remedy)
	}
}

// JudgeSize says whether a log is full, or nearly, and what to do. what is empty if it is not.
func JudgeSize(bytes uint64, maxBytes int64) (level Level, what, remedy string) {
	full := float64(bytes) / float64(maxBytes)
	switch remedy = "make room on the disk and raise its limit: nats stream edit " + natsdeploy.Stream + " --max-bytes"; {
	case maxBytes <= 0 || full < fullWarning:
		return OK, "", ""
	case full < fullFailed:
		return Warning, fmt.Sprintf("%.0f %% full, events are refused at 100", 100*full), remedy
	}
	return Failed, "it is full", remedy
}

// MissingEvents returns what to tell a user about n events missing from the log, and what
// to do.
func MissingEvents(n uint64) (what, remedy string) {
	return fmt.Sprintf("events missing from the log although no removal was recorded: %d", n),
		"restore the log from a backup; do not rebuild, the read models may hold the last copy; mneme repair log writes back what they hold, mneme repair log --accept records that you removed the rest"
}

// tolerance is how far a producer's time may be ahead before doctor warns.
const tolerance = time.Minute

// producers checks whether the newest events have times in the future.
func (e *examination) producers(ctx context.Context, log *eventlog.Log) {
	var ahead time.Duration
	var source string
	var seq uint64
	err := log.Tail(ctx, eventlog.Filter{}, eventlog.TailOptions{Last: 100, ToEnd: true}, func(m eventlog.Message) error {
		r, _, err := m.Decode()
		if d := r.Time.Sub(e.now()); err == nil && !r.Time.IsZero() && d > max(ahead, tolerance) {
			ahead, source, seq = d, r.Source, m.Seq
		}
		return nil
	})
	switch {
	case err != nil:
		e.add("producers", Warning, "the newest events can't be read: "+err.Error(), "")
	case ahead > 0:
		e.add("producers", Warning, fmt.Sprintf("the event at sequence %d, of %s, has a time %s ahead of this clock", seq, source, ahead.Round(time.Second)),
			"set the clock of the machine that published it, or of this one; this affects displayed times and filters by time, not the order")
	default:
		e.add("producers", OK, "no time in the newest events is ahead of this clock", "")
	}
}

// size formats a number of bytes for people.
func size[T ~int64 | ~uint64](n T) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	value, unit := float64(n), 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}
