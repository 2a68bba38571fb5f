// Package doctor checks everything that mneme needs to work, and says how to fix what is
// wrong. Checks change nothing, and none requires another to pass: if the server is
// down, its data directory can still be checked.
package doctor

import (
	"context"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/version"
	"mneme.dev/mneme/pkg/eventlog"
)

// Level is the result of a check, and Finding its outcome, as GET /v1/doctor shows them.
type (
	Level   = httpapi.Level
	Finding = httpapi.Check
)

// Levels, see [Level].
const (
	OK      = httpapi.LevelOK
	Warning = httpapi.LevelWarning
	Failed  = httpapi.LevelFailed
)

// Options say what to check.
type Options struct {
	Client settings.Client
	// WithoutNATS says that the user may reach the server over HTTP alone: a NATS server that does not admit the user, or has
	// another log, is no failure.
	WithoutNATS bool
	Data        string // a data directory on this machine, "" for none
	Models      settings.Models
	Project     string // a folder in which an agent may have settings of its own, "" for none
	Mine        version.Info
	// Doing, if not nil, is told what is being checked before each check that can take long.
	Doing func(what string)
}

// patience is how long a server may take to answer one question.
const patience = 5 * time.Second

// Run performs all checks.
func Run(ctx context.Context, o Options) []Finding {
	e := &examination{Options: o, now: time.Now}
	e.settings()
	e.openFiles()
	e.trust()
	e.doing("NATS and the log")
	before := len(e.findings)
	e.nats(ctx)
	e.ofNATS = slices.Clone(e.findings[before:])
	e.doing("the HTTP API")
	e.http(ctx)
	e.doing("the agents on this machine")
	e.agents(ctx)
	if o.Data != "" {
		e.data(ctx)
	}
	if o.Models.Store == "neo4j" {
		e.doing("Neo4j")
		e.neo4j(ctx)
	}
	return e.findings
}

func (e *examination) doing(what string) {
	if e.Doing != nil {
		e.Doing(what)
	}
}

// Serving returns the checks that a process makes of itself: its status, its settings and files, and the
// log at its NATS server. Only the space on the disk of its data directory is checked, because a process
// that serves from it notices damage by itself.
func Serving(log *eventlog.Log, data string) func(context.Context, httpapi.Status) []Finding {
	return func(ctx context.Context, status httpapi.Status) []Finding {
		e := &examination{Options: Options{Data: data}, now: time.Now}
		e.settings()
		e.openFiles()
		e.trust()
		e.through(ctx, log)
		e.reported(status)
		e.disk()
		return e.findings
	}
}

// through checks NATS and the log through the connection of a process.
func (e *examination) through(ctx context.Context, log *eventlog.Log) {
	if !log.Conn().IsConnected() {
		e.add("nats", Failed, "this process has lost its connection to NATS: it serves reads, and publishes nothing", "start the NATS server, or see what separates the two; the process connects again by itself")
		return
	}
	e.server(log.Conn())
	js, err := jetstream.New(log.Conn())
	if err != nil {
		e.add("jetstream", Failed, err.Error(), "")
		return
	}
	e.jetStream(ctx, log.Conn(), js)
	e.stream(ctx, js)
	e.copies(ctx, log.Conn(), js)
	e.producers(ctx, log)
}

// examination collects the findings, and data that one check passes to another.
type examination struct {
	Options
	now      func() time.Time
	findings []Finding
	answers  bool      // the HTTP API does
	room     int64     // bytes that the log may still take, 0 if unknown
	made     time.Time // when the log at NATS was, zero if unknown
	noLog    bool      // NATS has none, or not for this user
	ofNATS   []Finding
}

func (e *examination) add(check string, level Level, detail, remedy string) {
	e.findings = append(e.findings, Finding{Check: check, Level: level, Detail: detail, Remedy: remedy})
}

// settings checks the environment variables.
func (e *examination) settings() {
	problems := settings.Environment()
	for _, p := range problems {
		if p.Unknown {
			e.add("settings", Warning, p.Reason, "correct the name, or unset it; mneme config lists the names")
		} else {
			e.add("settings", Failed, p.Reason, "correct the value, or unset it; programs refuse to start with it")
		}
	}
	if len(problems) == 0 {
		e.add("settings", OK, "every MNEME_ variable is known and valid", "")
	}
}
