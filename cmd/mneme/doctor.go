package main

import (
	"cmp"
	"context"
	"os"
	"strings"

	"mneme.dev/mneme/internal/console"
	"mneme.dev/mneme/internal/doctor"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/version"
)

// DoctorCmd checks an installation.
type DoctorCmd struct {
	Data string `help:"Also check this data directory, whether or not a server uses it. Defaults to MNEME_DATA, or .mneme if it exists." placeholder:"DIR" complete:"directory"`
	settings.Models
}

func (*DoctorCmd) Help() string {
	return `Checks settings, limits, NATS, the log, the HTTP API, clocks, projections, the tools for agents, the agents that are connected on this machine, disk and read models (with --store neo4j those in Neo4j). It changes nothing, and continues if a server is down. To find damage it reads each SQLite file completely, for up to 10 s.

The exit code is 3 if a check failed; warnings do not count.

Examples:

    mneme doctor
    mneme doctor --data /var/lib/mneme
    mneme doctor --json | jq '.checks[] | select(.level != "ok")'`
}

// Run prints a line for each check, and what to do about problems.
func (c *DoctorCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if err := g.given.check(&c.Models); err != nil {
		return err
	}
	data := cmp.Or(c.Data, os.Getenv("MNEME_DATA"))
	if _, err := os.Stat(".mneme"); data == "" && err == nil {
		data = ".mneme"
	}
	d := httpapi.NewDiagnosis(doctor.Run(ctx, doctor.Options{
		Client: g.Client, WithoutNATS: g.namesOnlyHTTP(), Data: data, Models: c.Models, Project: ".", Mine: version.Get(), Doing: func(what string) { t.status("checking %s", what) },
	}))
	t.status("")
	if err := c.print(t, g.JSON, d); err != nil {
		return err
	}
	if !d.OK {
		return errDifference
	}
	return nil
}

func (c *DoctorCmd) print(t *terminal, asJSON bool, d httpapi.Diagnosis) error {
	if asJSON {
		return t.json(d)
	}
	if !t.isPerson() {
		rows := make([][]any, len(d.Checks))
		for i, f := range d.Checks {
			rows[i] = []any{string(f.Level), f.Check, f.Detail, f.Remedy}
		}
		return t.table([]column{{Name: "LEVEL"}, {Name: "CHECK"}, {Name: "DETAIL"}, {Name: "REMEDY"}}, rows)
	}
	colors := map[doctor.Level]style{doctor.OK: green, doctor.Warning: yellow, doctor.Failed: red}
	var out strings.Builder
	for _, f := range d.Checks {
		out.WriteString(t.paint(colors[f.Level], pad(string(f.Level), len(doctor.Warning))) + "  " +
			t.hang(t.paint(bold, f.Check)+"  "+console.Clean(f.Detail), 9) + "\n")
		if f.Remedy != "" {
			out.WriteString(strings.Repeat(" ", 9) + t.hang("→ "+f.Remedy, 11) + "\n")
		}
	}
	return t.painted(out.String())
}
