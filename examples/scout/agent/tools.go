package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Limits of one call.
const (
	MaxEntries     = 500             // names that list_directory returns
	MaxHits        = 200             // lines that grep_files returns, spread over all files with hits
	MaxReadLines   = 400             // lines that read_file returns
	MaxLineChars   = 240             // per line, in hits and in files that are read
	MaxOutputBytes = 16 << 10        // of a command's output; the rest is dropped
	CommandTimeout = 1 * time.Minute // for one command
)

// call is a tool call, which encodes as its JSON arguments.
type call interface {
	tool() string
	fmt.Stringer // one line of progress
}

type (
	listDirectory struct {
		Path string `json:"path"`
	}
	grepFiles struct {
		Pattern string `json:"pattern"` // a regular expression, case-insensitive
		Path    string `json:"path"`
	}
	readFile struct {
		Path      string `json:"path"`
		StartLine int    `json:"start_line"`
		EndLine   int    `json:"end_line"`
	}
	runCommand struct {
		Command string `json:"command"`
	}
)

func (listDirectory) tool() string { return "list_directory" }
func (grepFiles) tool() string     { return "grep_files" }
func (readFile) tool() string      { return "read_file" }
func (runCommand) tool() string    { return "run_command" }

func (c listDirectory) String() string { return c.tool() + " " + c.Path }
func (c grepFiles) String() string     { return c.tool() + " " + c.Pattern }
func (c readFile) String() string {
	return fmt.Sprintf("%s %s:%d-%d", c.tool(), c.Path, c.StartLine, c.EndLine)
}
func (c runCommand) String() string { return c.tool() + " " + c.Command }

// hit is one line that grep_files found.
type hit struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// toolbox executes calls inside one folder, which no path or link can leave.
type toolbox struct {
	dir        string // absolute
	root       *os.Root
	unreadable map[string]bool // files that could not be read
	cut        bool            // a limit ended a search early
}

func openToolbox(dir string) (*toolbox, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("folder: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("folder: %w", err)
	}
	return &toolbox{dir: dir, root: root, unreadable: map[string]bool{}}, nil
}

func (t *toolbox) close() { _ = t.root.Close() }

// do makes a call. A failure may have a result too, such as the output of a failed
// command.
func (t *toolbox) do(ctx context.Context, c call) (result any, failure error) {
	switch c := c.(type) {
	case listDirectory:
		return text(t.list(c))
	case grepFiles:
		pattern, err := regexp.Compile("(?i)" + c.Pattern)
		if err != nil {
			return nil, err
		}
		hits, err := t.grep(ctx, pattern, neededText(c.Pattern), c.Path)
		if err != nil {
			return nil, err
		}
		return hits, nil
	case readFile:
		return text(t.read(c))
	case runCommand:
		return text(t.run(ctx, c))
	}
	return nil, fmt.Errorf("there is no tool %s", c.tool())
}

// text drops the result of a failed call that has none.
func text(s string, failure error) (any, error) {
	if failure != nil && s == "" {
		return nil, failure
	}
	return s, failure
}

func (t *toolbox) list(c listDirectory) (string, error) {
	entries, err := fs.ReadDir(t.root.FS(), c.Path)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i, e := range entries {
		if i == MaxEntries {
			fmt.Fprintf(&b, "… and %d more\n", len(entries)-i)
			break
		}
		kind := "[FILE]"
		if e.IsDir() {
			kind = "[DIR]"
		}
		fmt.Fprintf(&b, "%s %s\n", kind, strings.ToValidUTF8(e.Name(), "�"))
	}
	return b.String(), nil
}

// read returns lines, each preceded by its number and a tab.
func (t *toolbox) read(c readFile) (string, error) {
	content, err := t.content(c.Path)
	if err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	first, last := max(c.StartLine, 1), min(c.EndLine, len(lines))
	if first > last {
		return "", fmt.Errorf("lines %d to %d are beyond the end: %s has %d", c.StartLine, c.EndLine, c.Path, len(lines))
	}
	var b strings.Builder
	for n := first; n <= min(last, first+MaxReadLines-1); n++ {
		fmt.Fprintf(&b, "%d\t%s\n", n, shorten(lines[n-1]))
	}
	return b.String(), nil
}

// run runs gofmt -l on one path and nothing else. Unlike go vet and go build it needs no dependency of the code, which a
// machine that has just cloned it may lack.
func (t *toolbox) run(ctx context.Context, c runCommand) (string, error) {
	words := strings.Fields(c.Command)
	if len(words) != 3 || words[0] != "gofmt" || words[1] != "-l" || strings.HasPrefix(words[2], "-") {
		return "", fmt.Errorf("%q is not allowed: only gofmt -l of one path is", c.Command)
	}
	limited, cancel := context.WithTimeout(ctx, CommandTimeout)
	defer cancel()
	var out output
	cmd := exec.CommandContext(limited, words[0], words[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.dir, &out, &out
	cmd.WaitDelay = 2 * time.Second // for child processes of a stopped command
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("interrupted: %w", ctx.Err())
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("stopped after %s", CommandTimeout)
	}
	return strings.ToValidUTF8(string(out), "�"), err
}

// output keeps the first bytes written to it.
type output []byte

func (o *output) Write(p []byte) (int, error) {
	*o = append(*o, p[:min(len(p), MaxOutputBytes-len(*o))]...)
	return len(p), nil
}

// outcome summarizes the result of a call in a few words.
func outcome(result any, failure error) string {
	switch r := result.(type) {
	case []hit:
		if failure == nil {
			return fmt.Sprintf("%s in %s", count(len(r), "hit"), count(len(filesOf(r)), "file"))
		}
	case string:
		if failure == nil {
			return count(strings.Count(r, "\n"), "line")
		}
	}
	if failure != nil {
		return "failed: " + firstLine(failure.Error())
	}
	return "nothing"
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// filesOf returns the files of hits, each once, in order.
func filesOf(hits []hit) []string {
	var list []string
	for _, h := range hits {
		if len(list) == 0 || list[len(list)-1] != h.File {
			list = append(list, h.File)
		}
	}
	return list
}
