package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"

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

// mistaken returns the command in which there is a mistake, as far as it was parsed.
func mistaken(err error) string {
	var bad *kong.ParseError
	if errors.As(err, &bad) {
		if node := bad.Context.Selected(); node != nil {
			return node.FullPath()
		}
	}
	return "mneme"
}

var (
	enumOf     = regexp.MustCompile(`must be one of (".*") but got `)
	wholeOf    = regexp.MustCompile(`a valid \d+ bit (u?)int `)
	missingOf  = regexp.MustCompile(`^expected "(<.+)"$`)
	endOf      = regexp.MustCompile(`expected \w+ value but got "EOL" \(<EOL>\)`)
	flagFor    = regexp.MustCompile(`expected \w+ value but got ("-.*") \((?:long|short) flag\); perhaps try (.+)\?`)
	shortFlags = regexp.MustCompile(`^(unknown flag -[^-]),? ?.*`)
)

// mistake says in plain words what is wrong with a command line.
func mistake(err error) string {
	text := missingOf.ReplaceAllString(err.Error(), "missing: $1")
	text = enumOf.ReplaceAllStringFunc(text, func(list string) string {
		return strings.ReplaceAll(strings.Replace(list, `"",`, "", 1), `","`, `", "`)
	})
	text = wholeOf.ReplaceAllStringFunc(text, func(number string) string {
		if strings.Contains(number, "uint") {
			return "a whole number from 0 on "
		}
		return "a whole number "
	})
	text = endOf.ReplaceAllString(text, "needs a value")
	text = flagFor.ReplaceAllString(text, "needs a value, and $1 looks like a flag; to give it as the value: $2")
	var bad *kong.ParseError
	if short := shortFlags.FindStringSubmatch(text); short != nil && errors.As(err, &bad) {
		text = short[1] // kong takes any other letter for a misspelt one
		if node := bad.Context.Selected(); node != nil && len(node.Positional) > 0 {
			text += "; an argument that begins with a dash comes last, after --"
		}
	}
	return text
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == completeCommand {
		complete(ctx, args[1:], stdout)
		return exitDone
	}
	if len(args) > 0 && args[0] == "hook" && !slices.Contains(args, "--help") && !slices.Contains(args, "-h") {
		ring.Main(args[1:], os.Stdin, stdout) // whatever is wrong, an agent never hears of it
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
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 { // --help
		return exited
	}
	if err != nil {
		newTerminal(stdout, stderr, "auto").say("mneme: %s (%s --help says more)", mistake(err), mistaken(err))
		return exitUsage
	}
	t := newTerminal(stdout, stderr, commands.Color)
	if parsed.Command() != "up" { // up traces the requests that it serves instead
		traced, end, err := telemetry.Command(ctx, "mneme", parsed.Command(), slog.New(slog.NewTextHandler(stderr, nil)))
		if err != nil {
			return exitCode(&program.UsageError{Err: err}, t)
		}
		defer end()
		parsed.BindTo(traced, (*context.Context)(nil))
	}
	commands.given = given(parsed)
	err = parsed.Run(&commands.Globals, t)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errInterrupted
	}
	return exitCode(err, t)
}
