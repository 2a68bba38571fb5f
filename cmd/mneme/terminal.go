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

	"golang.org/x/term"

	"mneme.dev/mneme/internal/console"
)

// terminal is where a command prints: data to out, everything else to err.
//
// For a person it prints aligned tables that fit, grouped numbers and local times. To a
// pipe or a file it prints a form that does not depend on the environment: columns
// separated by tabs, plain numbers, times as stored, and exact values (see
// [terminal.exact]). Scripts should use --json.
type terminal struct {
	out, err io.Writer
	colors   bool
}

func newTerminal(out, err io.Writer, color string) *terminal {
	return &terminal{out, err, color == "always" || (color == "auto" && isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")}
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// isPerson reports whether a person reads the data.
func (t *terminal) isPerson() bool { return isTerminal(t.out) }

// width returns the width of the terminal, 0 if there is none.
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

// rawJSON prints existing JSON, on one line or indented.
func (t *terminal) rawJSON(body []byte, indent bool) (err error) {
	var out bytes.Buffer
	if indent {
		err = json.Indent(&out, bytes.TrimSpace(body), "", "  ")
	} else {
		err = json.Compact(&out, body)
	}
	if err != nil {
		return fmt.Errorf("the server's answer is not JSON: %w", err)
	}
	out.WriteByte('\n')
	_, err = escapeControls{t.out, t.isPerson()}.Write(out.Bytes())
	return err
}

// text prints text of several lines. A pipe gets the unchanged bytes.
func (t *terminal) text(s string) error {
	if t.isPerson() {
		s = console.Clean(s)
	}
	_, err := io.WriteString(t.out, s)
	return err
}

// painted prints text that has our own colors and is otherwise clean already.
func (t *terminal) painted(s string) error {
	_, err := io.WriteString(t.out, s)
	return err
}

// say prints a line that is not data.
func (t *terminal) say(format string, args ...any) {
	fmt.Fprintln(t.err, console.Clean(fmt.Sprintf(format, args...)))
}

// remark prints what is wrong, in color if colors are on, and on the next line what to do.
// It is not data.
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

// paint colors a text if colors are on.
func (t *terminal) paint(s style, text string) string {
	if !t.colors || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// column is a column of a table: see [console.Column].
type column = console.Column

// conversationColumn has the ids of conversations. No agent makes one of more than 60 letters. One that is cut keeps its end,
// which commands accept as its short name.
var conversationColumn = column{Name: "CONVERSATION", Min: 16, Whole: 60, End: true}

// table prints rows under headings. A row has a cell for each column: a string, a
// number, a [when], or a list of strings.
func (t *terminal) table(columns []column, rows [][]any) error {
	return t.paintedTable(columns, rows, nil)
}

// paintedTable prints a table whose rows have colors, "" for none.
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

// card prints names with their values, one per line; it leaves out names without a value.
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

// hang wraps text and indents all lines after the first.
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

// exact returns a text as a cell. For a person it shows control characters as pictures. In
// a pipe the value must not change, so that an id cut from a table still names the same
// thing: a text that contains a tab, a line break, or another control or direction
// character, or begins with a quote, becomes a JSON string there.
func (t *terminal) exact(s string) string {
	line := console.OneLine(s)
	if t.isPerson() || line == s && !strings.HasPrefix(s, `"`) {
		return line
	}
	var quoted strings.Builder
	encoder := json.NewEncoder(escapeControls{&quoted, true})
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // cannot fail for a string
	return strings.TrimSuffix(quoted.String(), "\n")
}

func (t *terminal) number(n int64) string {
	if t.isPerson() {
		return number(n)
	}
	return strconv.FormatInt(n, 10)
}

// number formats a count with groups: 42407 → 42,407.
func number[T ~int | ~uint64 | ~int64](n T) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// counted formats a number of things: 1 message, 2 messages.
func counted[T ~int | ~uint64](n T, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return number(n) + " " + thing
}

// escapeControls writes JSON or CSV. For a terminal it escapes the characters that these allow raw but a terminal obeys, such
// as \u001b: control characters other than line feeds and tabs, and direction marks. Each Write must have whole characters.
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
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	_, err := io.WriteString(w.Writer, out.String())
	return len(p), err
}
