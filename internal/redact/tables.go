package redact

import (
	"regexp"
	"slices"
	"strings"
)

// tables adds the values in cells of tables that are secrets.
func (r *rule) tables(text string, f *findings) {
	celled(text, func(start, end int) { f.add(Finding{r.kind, start, end}) })
}

// celled calls yield for each value that a table has for the name of a secret, in the cell after the name, or under it as a heading:
//
//	| DB_PASSWORD | value |        | user | password |        user | password
//	                               |------|----------|       ------+----------
//	                               | ada  | value    |        ada  | value
//
// Lines of a box, as in │ DB_PASSWORD │ value │, are as good as bars.
func celled(text string, yield func(start, end int)) {
	if slices.ContainsFunc(boxBars, func(bar string) bool { return strings.Contains(text, bar) }) {
		text = unboxed.Replace(text)
	} else if strings.IndexByte(text, '|') < 0 {
		return
	}
	var before []cell    // the row of the line before, which is a heading if the next line is ruled
	var secret []bool    // the columns under such headings; nil above the ruled line
	var described []bool // those that say something of what is in the others
	row := func() {
		for i, c := range before {
			switch {
			case i < len(secret) && secret[i]:
				c.value(text, yield)
			case 0 < i && i+2 < len(before) && before[len(before)-1].blank() && c.names(text) && (i+1 >= len(described) || !described[i+1]): // between bars, as is the value
				before[i+1].value(text, yield)
			}
		}
		before = nil
	}
	for at := 0; at < len(text); {
		end := len(text)
		if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n
		}
		line := text[at:end]
		switch {
		case ruled(line) && secret == nil && before != nil:
			secret, described = make([]bool, len(before)), make([]bool, len(before))
			for i, c := range before {
				secret[i], described[i] = c.names(text), description.MatchString(text[c.start:c.end])
			}
			before = nil
		case ruled(line):
			row()
		default:
			if row(); strings.IndexByte(line, '|') < 0 {
				secret, described = nil, nil
			} else {
				before = cells(text, at, end)
			}
		}
		at = end + 1
	}
	row()
}

// boxBars are the bars of boxes.
var boxBars = []string{"│", "┃", "║"}

// unboxed draws boxes with bars, pluses and hyphens, each as long in bytes as what it stands for.
var unboxed = func() *strings.Replacer {
	var pairs []string
	for to, list := range map[string]string{"  |": strings.Join(boxBars, ""), "---": "─━═", "-+-": "┌┬┐├┼┤└┴┘┏┳┓┣╋┫┗┻┛╔╦╗╠╬╣╚╩╝┡╇┩╭╮╰╯╞╪╡╟╫╢╒╤╕╘╧╛"} {
		for _, c := range list {
			pairs = append(pairs, string(c), to)
		}
	}
	return strings.NewReplacer(pairs...)
}()

// description matches the heading of a column that describes what the others name.
var description = regexp.MustCompile(`(?i)^(?:(?:data ?)?types?|desc(?:ription)?|formats?|kind|class|meaning|purpose|scopes?|algorithm)$`)

// ruled reports whether a line, perhaps with its number before it, is the one under a heading, or around a table.
func ruled(line string) bool {
	line = strings.TrimLeft(line, " \t0123456789→")
	return strings.Contains(line, "--") && strings.ContainsAny(line, "|+") && strings.Trim(line, "|+-: \t\r") == ""
}

// cell is what is between two bars of a row, without what only changes its looks.
type cell struct{ start, end int }

// maxCells is how many cells the row of a table may have. A text of nothing but bars would take many times its size.
const maxCells = 1000

// cells returns the cells of a row, none if the line is too wide to be one.
func cells(text string, at, end int) (row []cell) {
	for at <= end {
		if len(row) == maxCells {
			return nil
		}
		next := end
		if n := strings.IndexByte(text[at:end], '|'); n >= 0 {
			next = at + n
		}
		const looks = " \t\r*`\"'"
		inner := strings.TrimLeft(text[at:next], looks)
		start := next - len(inner)
		row = append(row, cell{start, start + len(strings.TrimRight(inner, looks))})
		at = next + 1
	}
	return row
}

func (c cell) blank() bool { return c.start == c.end }

// names reports whether a cell is the name of a secret, also of several words as API key.
func (c cell) names(text string) bool {
	if c.end-c.start > maxName {
		return false
	}
	name := strings.ReplaceAll(text[c.start:c.end], " ", "_")
	return nameBefore(name) == name && name != "" && !strings.EqualFold(name, verdict) && ofSecret(name)
}

func (c cell) value(text string, yield func(start, end int)) {
	if v := text[c.start:c.end]; len(v) >= 8 && len(v) <= maxValue && !strings.ContainsAny(v, " \t<>(){}[]`") && bare(v) {
		yield(c.start, c.end)
	}
}
