package main

import (
	"cmp"
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
	Check CheckCmd `cmd:"" help:"Check the directory of a campaign, even of an interrupted one."`

	Jars string `env:"MNEME_TEST_NEO4J_JARS" help:"Folder of Neo4j's jars; by default they are downloaded into ${cache}." placeholder:"DIR"`
}

// RunCmd runs a campaign.
type RunCmd struct {
	Seed     uint64        `help:"Seed of the schedule and the events." default:"1"`
	Faults   int           `help:"How many." default:"300"`
	Events   int           `help:"How many events to publish; repeats do not count. A million take about 12 GB of disk during the run." default:"1000000"`
	Duration time.Duration `help:"Approximate duration without the final checks; by default 12 s for each fault." placeholder:"TIME"`
	Dir      string        `help:"Directory for all stored data, which must not exist yet." default:".faults" placeholder:"DIR"`
	Keep     bool          `help:"Keep the directory even without a violation."`
	Sessions string        `env:"MNEME_TEST_DATA" help:"Folder of recorded sessions; by default the sessions from the tests of internal/transcript, repeated." placeholder:"DIR"`
	Markdown string        `help:"File of the report; by default DIR/report.md." placeholder:"FILE"`
	Recovery time.Duration `help:"Longest time allowed for recovery from a fault." default:"5m"`
}

// CheckCmd checks a directory.
type CheckCmd struct {
	Dir      string `arg:"" help:"Directory of the campaign."`
	Markdown string `help:"File of the report, which is completed if the campaign was interrupted; by default report.md next to DIR." placeholder:"FILE"`
}

// eachFault is the default time for one fault.
const eachFault = 12 * time.Second

// fixtures are the sessions in this repository.
const fixtures = "internal/transcript/testdata"

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var cli CLI
	exited := -1
	parser, err := kong.New(&cli, kong.Name("faults"), kong.Description("Runs mneme while the systems it depends on fail, and checks whether anything is lost, doubled or out of order.\n\n"+
		"Exit codes: 0 no violation, 1 failed, 2 wrong usage, 3 something was lost, doubled, out of order or wrong."),
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

// errViolated means that a violation was found.
var errViolated = errors.New("something was found")

// jars finds Neo4j, or downloads it.
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
	cmd.Duration = cmp.Or(cmd.Duration, time.Duration(cmd.Faults)*eachFault)
	cmd.Sessions = cmp.Or(cmd.Sessions, fixtures)
	dir, err := filepath.Abs(filepath.Join(cmd.Dir, strconv.FormatUint(cmd.Seed, 10)))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	cmd.Markdown = cmp.Or(cmd.Markdown, filepath.Join(filepath.Dir(dir), "report.md"))
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
	fmt.Fprintf(out, "stored data: %s\n", dir)
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
	cmd.Markdown = cmp.Or(cmd.Markdown, filepath.Join(filepath.Dir(dir), "report.md"))
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
