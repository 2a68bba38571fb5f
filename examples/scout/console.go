package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"mneme.dev/mneme/examples/scout/agent"
)

// parse reads the command line; ok is false if there is nothing more to do.
func parse(args []string, stdout, stderr io.Writer) (f flags, code int, ok bool) {
	helped := false
	parser, err := kong.New(&f, kong.Name("scout"), kong.Writers(stdout, stderr), kong.Exit(func(int) { helped = true }),
		kong.Description("Answer a question about a folder, and tell mneme what is done for it."))
	if err == nil {
		_, err = parser.Parse(args)
	}
	if helped {
		return f, 0, false
	}
	if err == nil && strings.TrimSpace(f.Question) == "" {
		err = errors.New("the question is empty")
	}
	if err != nil {
		fmt.Fprintf(stderr, "scout: %v (scout --help shows the usage)\n", err)
		return f, 2, false
	}
	return f, 0, true
}

// progress prints a line for each message and, fainter, for each result; failures are red.
// It uses colors only on terminals, unless they are disabled.
func progress(w io.Writer) func(string) {
	coloured := false
	if file, ok := w.(*os.File); ok && os.Getenv("NO_COLOR") == "" {
		info, err := file.Stat()
		coloured = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return func(line string) {
		switch {
		case !coloured || !strings.HasPrefix(line, " "):
		case strings.Contains(line, " → failed: "):
			line = "\x1b[31m" + line + "\x1b[0m"
		default:
			line = "\x1b[2m" + line + "\x1b[0m"
		}
		fmt.Fprintln(w, line)
	}
}

// show prints the answer and returns the exit code.
func show(w io.Writer, a agent.Answer, asJSON bool) int {
	var err error
	if asJSON {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		err = encoder.Encode(a)
	} else {
		_, err = fmt.Fprintf(w, "%s\n\nconversation %s, last sequence %d\n", a.Text, a.Conversation, a.Seq)
	}
	if err != nil {
		return 1
	}
	return 0
}
