package console

import (
	"slices"
	"strings"
)

// Column is a column of a table.
type Column struct {
	Name  string
	Right bool // aligned to the right, for numbers
	// Min is the width that cells may be cut to; 0 means never cut.
	Min int
	// Drop is the order in which a narrow table loses columns: highest first. Columns with
	// 0 always stay.
	Drop int
}

// gap separates two columns.
const gap = "  "

// Layout aligns rows under their headings to fit a terminal of the given width; 0 means no
// limit. It narrows columns, then drops some, then cuts the line: a row always takes one
// line. The first line holds the headings.
func Layout(columns []Column, rows [][]string, width int) []string {
	shown := make([]int, len(columns))
	for i := range shown {
		shown[i] = i
	}
	widths := measure(columns, rows)
	fitted := fit(columns, shown, widths, width)
	for fitted == nil {
		last := -1
		for at, i := range shown {
			if columns[i].Drop > 0 && (last < 0 || columns[i].Drop >= columns[shown[last]].Drop) {
				last = at
			}
		}
		if last < 0 {
			fitted = narrowest(columns, widths)
			break
		}
		shown = slices.Delete(shown, last, last+1)
		fitted = fit(columns, shown, widths, width)
	}
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	lines := []string{line(columns, shown, fitted, names, width)}
	for _, row := range rows {
		lines = append(lines, line(columns, shown, fitted, row, width))
	}
	return lines
}

func measure(columns []Column, rows [][]string) []int {
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = Width(c.Name)
		for _, row := range rows {
			widths[i] = max(widths[i], Width(row[i]))
		}
	}
	return widths
}

// fit narrows the widest of the columns that may be cut until the row fits; nil if it
// can't.
func fit(columns []Column, shown, natural []int, width int) []int {
	widths := slices.Clone(natural)
	total := len(gap) * (len(shown) - 1)
	for _, i := range shown {
		total += widths[i]
	}
	for ; width > 0 && total > width; total-- {
		widest := -1
		for _, i := range shown {
			if columns[i].Min > 0 && widths[i] > columns[i].Min && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return nil
		}
		widths[widest]--
	}
	return widths
}

// narrowest cuts every column as far as allowed.
func narrowest(columns []Column, natural []int) []int {
	widths := slices.Clone(natural)
	for i, c := range columns {
		if c.Min > 0 {
			widths[i] = min(widths[i], c.Min)
		}
	}
	return widths
}

func line(columns []Column, shown, widths []int, cells []string, width int) string {
	var out strings.Builder
	for at, i := range shown {
		if at > 0 {
			out.WriteString(gap)
		}
		cell := Cut(cells[i], widths[i])
		padding := strings.Repeat(" ", widths[i]-Width(cell))
		if columns[i].Right {
			cell = padding + cell
		} else {
			cell += padding
		}
		out.WriteString(cell)
	}
	text := strings.TrimRight(out.String(), " ")
	if width > 0 {
		text = Cut(text, width)
	}
	return text
}
