package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	"github.com/alecthomas/kong"

	"mneme.dev/mneme/internal/hook/ring"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/telemetry"
)

// Exit codes.
const (
	exitDone = iota
	exitFailed
	exitUsage
	exitDifference
)

// errDifference is returned by a check that found a difference; it has printed it.
var errDifference = errors.New("a check found a difference")

// errInterrupted is the error of a command that its user ended, unless it has more to say.
var errInterrupted = errors.New("interrupted")

// asUsual returns arguments with the spellings of other programs replaced: mneme --version is mneme version, and mneme
// help COMMAND is mneme COMMAND --help.
func asUsual(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "--version":
		return append([]string{"version"}, args[1:]...)
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	}
	return args
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == completeCommand {
		complete(ctx, args[1:], stdout)
		return exitDone
	}
	if len(args) > 0 && args[0] == "hook" && !slices.Contains(args, "--help") && !slices.Contains(args, "-h") {
		ring.Main(args[1:], os.Stdin, stdout) // whatever is wrong, the agent must not notice
		return exitDone
	}
	var commands CLI
	exited := -1
	parser, err := newParser(&commands, kong.Writers(stdout, stderr), kong.Exit(func(code int) { exited = code }),
		kong.BindTo(ctx, (*context.Context)(nil)))
	if err != nil {
		fmt.Fprintln(stderr, "mneme:", err)
		return exitFailed
	}
	parsed, err := parser.Parse(asUsual(args))
	if exited >= 0 { // --help
		return exited
	}
	if err != nil {
		newTerminal(stdout, stderr, "auto").say("mneme: %s (%s --help says more)", mistakes(asUsual(args), err), mistaken(err))
		return exitUsage
	}
	t := newTerminal(stdout, stderr, commands.Color)
	ended, end := context.WithCancel(ctx)
	defer end()
	commands.end = end
	if parsed.Command() != "up" { // up traces the requests that it serves instead
		traced, end, err := telemetry.Command(ended, "mneme", parsed.Command(), slog.New(slog.NewTextHandler(stderr, nil)))
		if err != nil {
			return exitCode(&program.UsageError{Err: err}, t)
		}
		defer end()
		parsed.BindTo(traced, (*context.Context)(nil))
	}
	commands.given = given(parsed)
	if err = parsed.BindToProvider(commands.client); err != nil {
		return exitCode(err, t)
	}
	err = parsed.Run(&commands.Globals, t)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errInterrupted
	}
	return exitCode(commands.explained(err), t)
}
