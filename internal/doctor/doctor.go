// Package doctor checks everything that mneme needs to work, and says how to fix what is
// wrong. Checks change nothing, and none requires another to pass: if the server is
// down, its data directory can still be checked.
package doctor

import (
	"context"
	"time"

	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/version"
)

// Level is the result of a check.
type Level string

// Levels, the most severe last. A warning is about something that works now but may fail later.
const (
	OK      Level = "ok"
	Warning Level = "warning"
	Failed  Level = "failed"
)

// Finding is the outcome of one check.
type Finding struct {
	Check  string `json:"check"`
	Level  Level  `json:"level"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"` // what to do; empty for nothing
}

// Options say what to check.
type Options struct {
	Client  settings.Client
	Data    string // a data directory on this machine, "" for none
	Models  settings.Models
	Project string // a folder in which an agent may have settings of its own, "" for none
	Mine    version.Info
}

// patience is how long a server may take to answer one question.
const patience = 5 * time.Second

// Run performs all checks.
func Run(ctx context.Context, o Options) []Finding {
	e := &examination{Options: o, now: time.Now}
	e.settings()
	e.openFiles()
	e.trust()
	e.nats(ctx)
	e.http(ctx)
	e.agents(ctx)
	if o.Data != "" {
		e.data(ctx)
	}
	if o.Models.Store == "neo4j" {
		e.neo4j(ctx)
	}
	return e.findings
}

// examination collects the findings, and data that one check passes to another.
type examination struct {
	Options
	now      func() time.Time
	findings []Finding
	answers  bool  // the HTTP API does
	room     int64 // bytes that the log may still take, 0 if unknown
}

func (e *examination) add(check string, level Level, detail, remedy string) {
	e.findings = append(e.findings, Finding{check, level, detail, remedy})
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
