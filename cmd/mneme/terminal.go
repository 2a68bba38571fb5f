package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"mneme.dev/mneme/internal/console"
)

// terminal is where a command prints: data to out, everything else to err.
//
// To a person it prints aligned tables that fit, grouped numbers and local times. To
// a pipe or a file it prints what stays the same wherever it runs: columns separated
// by tabs, plain numbers, times as they are stored, and values exactly (see
// [terminal.exact]). Scripts are better off with --json.
type terminal struct {
	out, err io.Writer
	colors   bool
}

func newTerminal(out, err io.Writer, color string) *terminal {
	return &terminal{out, err, color == "always" || (color == "auto" && isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")}
}

// isTerminal tells whether a person looks at a stream.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// isPerson tells whether a person reads the data.
func (t *terminal) isPerson() bool { return isTerminal(t.out) }

// width is that of the terminal, 0 if there is none.
func (t *terminal) width() int {
	if f, ok := t.out.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			return width
		}
	}
	return 0
}

// json prints one value on one line.
func (t *terminal) json(v any) error {
	encoder := json.NewEncoder(escapeControls{t.out, t.isPerson()})
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// rawJSON prints JSON that is there already, on one line or indented.
func (t *terminal) rawJSON(body []byte, indent bool) (err error) {
	var out bytes.Buffer
	if indent {
		err = json.Indent(&out, bytes.TrimSpace(body), "", "  ")
	} else {
		err = json.Compact(&out, body)
	}
	if err != nil {
		return fmt.Errorf("the server's answer is no JSON: %w", err)
	}
	out.WriteByte('\n')
	_, err = escapeControls{t.out, t.isPerson()}.Write(out.Bytes())
	return err
}

// text prints text of many lines. A pipe gets the bytes as they are.
func (t *terminal) text(s string) error {
	if t.isPerson() {
		s = console.Clean(s)
	}
	_, err := io.WriteString(t.out, s)
	return err
}

// painted prints text that holds colours of our own, and nothing else that was not cleaned.
func (t *terminal) painted(s string) error {
	_, err := io.WriteString(t.out, s)
	return err
}

// say prints a line that is not data.
func (t *terminal) say(format string, args ...any) {
	fmt.Fprintln(t.err, console.Clean(fmt.Sprintf(format, args...)))
}

// remark says what is wrong, in a colour if there are some, and on the next line what to
// do. It is not data.
func (t *terminal) remark(s style, what, remedy string) {
	what = t.hang(console.Clean(what), 2)
	if isTerminal(t.err) {
		what = t.paint(s, what)
	}
	fmt.Fprintln(t.err, "\n"+what)
	if remedy != "" {
		t.say("%s", t.hang("→ "+remedy, 2))
	}
}

// style is how a terminal shows a text.
type style string

const (
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

// paint marks a text, if there are colours.
func (t *terminal) paint(s style, text string) string {
	if !t.colors || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// column is a column of a table: see [console.Column].
type column = console.Column

// table prints rows under headings. A row has a cell for each column: a string, a
// number, a [when], or a list of strings.
func (t *terminal) table(columns []column, rows [][]any) error {
	return t.paintedTable(columns, rows, nil)
}

// paintedTable is a table whose rows have colours, "" for none.
func (t *terminal) paintedTable(columns []column, rows [][]any, styles []style) error {
	cells := make([][]string, len(rows))
	for i, row := range rows {
		for _, value := range row {
			cells[i] = append(cells[i], t.cell(value))
		}
	}
	var lines []string
	if t.isPerson() {
		lines = console.Layout(columns, cells, t.width())
		lines[0] = t.paint(bold, lines[0])
		for i, s := range styles {
			if s != "" {
				lines[i+1] = t.paint(s, lines[i+1])
			}
		}
	} else {
		heading := make([]string, len(columns))
		for i, c := range columns {
			heading[i] = c.Name
		}
		for _, row := range append([][]string{heading}, cells...) {
			lines = append(lines, strings.Join(row, "\t"))
		}
	}
	_, err := io.WriteString(t.out, strings.Join(lines, "\n")+"\n")
	return err
}

// card prints names with their values, one a line; what has no value is left out.
func (t *terminal) card(pairs ...any) error {
	width := 0
	for i := 0; i < len(pairs); i += 2 {
		width = max(width, len(pairs[i].(string)))
	}
	var out strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		name, value := pairs[i].(string), t.cell(pairs[i+1])
		switch {
		case value == "":
		case t.isPerson():
			out.WriteString(t.paint(dim, fmt.Sprintf("%-*s", width, name)) + "  " + t.hang(value, width+2) + "\n")
		default:
			out.WriteString(name + "\t" + value + "\n")
		}
	}
	_, err := io.WriteString(t.out, out.String())
	return err
}

// hang wraps text so that its further lines begin at an indent.
func (t *terminal) hang(s string, indent int) string {
	if w := t.width(); w > 0 {
		s = console.Wrap(s, max(w-indent, 10))
	}
	return strings.ReplaceAll(s, "\n", "\n"+strings.Repeat(" ", indent))
}

// when is a time as the API writes it, RFC 3339.
type when string

func (t *terminal) cell(value any) string {
	switch v := value.(type) {
	case when:
		if at, err := time.Parse(time.RFC3339Nano, string(v)); err == nil && t.isPerson() {
			return at.Local().Format("2006-01-02 15:04")
		}
		return t.exact(string(v))
	case []string:
		return t.exact(strings.Join(v, ", "))
	case int:
		return t.number(int64(v))
	case int64:
		return t.number(v)
	case uint64:
		return t.number(int64(v))
	}
	return t.exact(fmt.Sprint(value))
}

// exact is a text as a cell. To a person it shows control characters as pictures. In a pipe
// nothing is changed, or an id that was cut out of a table would name something else: a text
// that can't stand in a cell as it is, since it holds a tab, a line break, or another control
// or direction character, is a JSON string there, and so is one that begins with a quote.
func (t *terminal) exact(s string) string {
	line := console.OneLine(s)
	if t.isPerson() || line == s && !strings.HasPrefix(s, `"`) {
		return line
	}
	var quoted strings.Builder
	encoder := json.NewEncoder(escapeControls{&quoted, true})
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // a string can be written
	return strings.TrimSuffix(quoted.String(), "\n")
}

func (t *terminal) number(n int64) string {
	if t.isPerson() {
		return number(n)
	}
	return strconv.FormatInt(n, 10)
}

// progress is a bar over bytes on a terminal, nothing elsewhere.
func (t *terminal) progress(total int64, what string) *progressbar.ProgressBar {
	if !isTerminal(t.err) {
		return progressbar.DefaultBytesSilent(total)
	}
	return progressbar.NewOptions64(total, progressbar.OptionSetWriter(t.err), progressbar.OptionSetDescription(what),
		progressbar.OptionFullWidth(), progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish())
}

// counter is a bar over a number that grows, with what is left of the time, on a terminal.
func (t *terminal) counter(what string) *progressbar.ProgressBar {
	if !isTerminal(t.err) {
		return progressbar.DefaultSilent(1)
	}
	return progressbar.NewOptions64(1, progressbar.OptionSetWriter(t.err), progressbar.OptionSetDescription(what), progressbar.OptionShowCount(),
		progressbar.OptionFullWidth(), progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish())
}

// number prints a count with groups: 42407 → 42,407.
func number[T ~int | ~uint64 | ~int64](n T) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// counted is a number of things: 1 message, 2 messages.
func counted[T ~int | ~uint64](n T, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return number(n) + " " + thing
}

// escapeControls writes JSON. On a terminal it writes as \uXXXX what JSON may hold raw
// and a terminal obeys: DEL and what stands above it, marks of direction.
type escapeControls struct {
	io.Writer
	on bool
}

func (w escapeControls) Write(p []byte) (int, error) {
	if !w.on {
		return w.Writer.Write(p)
	}
	var out strings.Builder
	for _, r := range string(p) {
		if r >= 0x7F && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	_, err := io.WriteString(w.Writer, out.String())
	return len(p), err
}
