package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// terminal is where a command prints: data to out, everything else to err.
type terminal struct{ out, err io.Writer }

// isTerminal tells whether a person looks at a stream.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// json prints one value on one line.
func (t *terminal) json(v any) error {
	encoder := json.NewEncoder(t.out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// say prints a line that is not data.
func (t *terminal) say(format string, args ...any) { fmt.Fprintf(t.err, format+"\n", args...) }

// bold marks a heading, on a terminal only.
func (t *terminal) bold(s string) string {
	if !isTerminal(t.out) || os.Getenv("NO_COLOR") != "" {
		return s
	}
	return "\x1b[1m" + s + "\x1b[0m"
}

// table prints rows under headings, each row on one line of the terminal. The last
// column takes what is left and is cut if it must be.
func (t *terminal) table(headings []string, rows [][]string) error {
	width := 0
	if f, ok := t.out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil {
			width = w
		}
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(headings, "\t"))
	for _, row := range rows {
		for i, cell := range row {
			row[i] = oneLine(cell)
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i, line := range strings.Split(strings.TrimRight(text.String(), "\n"), "\n") {
		line = cut(line, width)
		if i == 0 {
			line = t.bold(line)
		}
		if _, err := fmt.Fprintln(t.out, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}

// oneLine makes a cell of any text: control characters would break the table.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7F {
			return ' '
		}
		return r
	}, s)
}

func cut(s string, width int) string {
	if width <= 1 || utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}

// progress is a bar over bytes on a terminal, nothing elsewhere.
func (t *terminal) progress(total int64, what string) *progressbar.ProgressBar {
	if !isTerminal(t.err) {
		return progressbar.DefaultBytesSilent(total)
	}
	return progressbar.NewOptions64(total, progressbar.OptionSetWriter(t.err), progressbar.OptionSetDescription(what),
		progressbar.OptionFullWidth(), progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish())
}

// number prints a count with thin groups: 42407 → 42,407.
func number[T ~int | ~uint64 | ~int64](n T) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
