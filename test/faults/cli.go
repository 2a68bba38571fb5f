package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	neo4jdeploy "mneme.dev/mneme/deploy/neo4j"
)

// Exit codes.
const (
	exitDone = iota
	exitFailed
	exitUsage
	exitViolation
)

// CLI is the command line.
type CLI struct {
	Run   RunCmd   `cmd:"" help:"Run a campaign."`
	Check CheckCmd `cmd:"" help:"Check what a campaign has left in its directory, one that was interrupted too."`

	Jars string `env:"MNEME_TEST_NEO4J_JARS" help:"Folder of Neo4j's jars; without one they are fetched into ${cache}." placeholder:"DIR"`
}

// RunCmd runs a campaign.
type RunCmd struct {
	Seed     uint64        `help:"Decides the schedule and the events." default:"1"`
	Faults   int           `help:"How many." default:"300"`
	Events   int           `help:"How many are published; what is published twice counts once. A million take about 12 GB of disk while it runs." default:"1000000"`
	Duration time.Duration `help:"About how long it takes, without the checks in the end; 12 s for each fault without one." placeholder:"TIME"`
	Dir      string        `help:"Directory of everything that it stores, which must not be there." default:".faults" placeholder:"DIR"`
	Keep     bool          `help:"Keep the directory although nothing was found."`
	Sessions string        `env:"MNEME_TEST_DATA" help:"Folder of recorded sessions; without one those of the tests of internal/transcript are used, again and again." placeholder:"DIR"`
	Markdown string        `help:"File of the report; DIR/report.md without one." placeholder:"FILE"`
	Recovery time.Duration `help:"Within which it must recover from a fault." default:"5m"`
}

// CheckCmd checks a directory.
type CheckCmd struct {
	Dir      string `arg:"" help:"Directory of the campaign."`
	Markdown string `help:"File of the report, which is completed if the campaign was interrupted; report.md beside DIR without one." placeholder:"FILE"`
}

// eachFault is the time of a fault unless another one is asked for.
const eachFault = 12 * time.Second

// fixtures are sessions that the repository has.
const fixtures = "internal/transcript/testdata"

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var cli CLI
	exited := -1
	parser, err := kong.New(&cli, kong.Name("faults"), kong.Description("Runs mneme while everything that it runs on fails, and looks whether anything is lost, doubled or out of order.\n\n"+
		"Exit codes: 0 nothing was found, 1 failed, 2 wrong usage, 3 something was lost, doubled, out of order or wrong."),
		kong.Vars{"cache": neo4jdeploy.DefaultCache}, kong.Writers(stdout, stderr), kong.Exit(func(code int) { exited = code }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.BindTo(stdout, (*io.Writer)(nil)))
	if err != nil {
		fmt.Fprintln(stderr, "faults:", err)
		return exitFailed
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 { // --help
		return exited
	}
	if err != nil {
		fmt.Fprintln(stderr, "faults:", err)
		return exitUsage
	}
	err = parsed.Run(&cli)
	switch {
	case errors.Is(err, errViolated):
		fmt.Fprintln(stderr, "faults:", err)
		return exitViolation
	case err != nil:
		fmt.Fprintln(stderr, "faults:", err)
		return exitFailed
	}
	return exitDone
}

// errViolated says that something was found.
var errViolated = errors.New("something was found")

// jars finds Neo4j, or fetches it.
func (cli *CLI) jars(ctx context.Context, log io.Writer) (string, error) {
	if cli.Jars != "" {
		return filepath.Abs(cli.Jars)
	}
	return neo4jdeploy.Fetch(ctx, neo4jdeploy.DefaultCache, neo4jdeploy.LTS, log)
}

func sayer(out io.Writer) func(string, ...any) {
	return func(format string, args ...any) {
		fmt.Fprintf(out, time.Now().Format("15:04:05 ")+format+"\n", args...)
	}
}

// Run runs a campaign.
func (cmd *RunCmd) Run(ctx context.Context, cli *CLI, out io.Writer) error {
	jars, err := cli.jars(ctx, out)
	if err != nil {
		return err
	}
	if cmd.Duration == 0 {
		cmd.Duration = time.Duration(cmd.Faults) * eachFault
	}
	if cmd.Sessions == "" {
		cmd.Sessions = fixtures
	}
	dir, err := filepath.Abs(filepath.Join(cmd.Dir, strconv.FormatUint(cmd.Seed, 10)))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if cmd.Markdown == "" {
		cmd.Markdown = filepath.Join(filepath.Dir(dir), "report.md")
	}
	report, err := Run(ctx, Config{
		Plan: Plan{Seed: cmd.Seed, Faults: cmd.Faults, Duration: cmd.Duration}, Events: cmd.Events,
		Dir: dir, Sessions: cmd.Sessions, Jars: jars, Recovery: cmd.Recovery, Say: sayer(out),
		Report: func(r *Report) error {
			return r.write(filepath.Join(filepath.Dir(dir), reportName), cmd.Markdown)
		},
	})
	fmt.Fprintf(out, "\n%s\n%s\nreport: %s\n", report.verdict(), report.Command, cmd.Markdown)
	switch {
	case err == nil && report.Violating == 0 && !cmd.Keep:
		return os.RemoveAll(dir)
	case report.Violating > 0:
		err = errors.Join(errViolated, err)
	}
	fmt.Fprintf(out, "what it stored: %s\n", dir)
	return err
}

// Run checks a directory.
func (cmd *CheckCmd) Run(ctx context.Context, cli *CLI, out io.Writer) error {
	jars, err := cli.jars(ctx, out)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(cmd.Dir)
	if err != nil {
		return err
	}
	reportFile := filepath.Join(filepath.Dir(dir), reportName)
	if cmd.Markdown == "" {
		cmd.Markdown = filepath.Join(filepath.Dir(dir), "report.md")
	}
	report, err := readReport(reportFile)
	if err != nil {
		return err
	}
	violations, err := Check(ctx, dir, jars, report, sayer(out))
	if err != nil {
		return err
	}
	if report.Later {
		err = report.write(reportFile, cmd.Markdown)
		fmt.Fprintf(out, "\n%s\n%s\nreport: %s\n", report.verdict(), report.Command, cmd.Markdown)
	}
	if violations > 0 {
		err = errors.Join(errViolated, err)
	}
	return err
}
