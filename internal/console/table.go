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
	// Whole is the width up to which cells are cut only if the table does not fit without its other columns either: for
	// ids, which are of no use to the next command when they are cut.
	Whole int
	// End keeps the end of a cell that is cut, instead of its beginning: for paths, which begin alike.
	End bool
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
	natural := measure(columns, rows)
	least := make([]int, len(columns)) // widths, 0 for what is never cut
	for i, c := range columns {
		least[i] = max(c.Min, min(natural[i], c.Whole))
	}
	shown, fitted := arrange(columns, least, natural, width)
	if fitted == nil {
		for i, c := range columns {
			least[i] = c.Min
		}
		shown, fitted = arrange(columns, least, natural, width)
	}
	if fitted == nil {
		fitted = narrowest(least, natural)
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

// arrange returns the columns that are shown, and their widths; these are nil if the columns that always stay don't fit.
func arrange(columns []Column, least, natural []int, width int) (shown, fitted []int) {
	for i := range columns {
		shown = append(shown, i)
	}
	for {
		if fitted = fit(least, shown, natural, width); fitted != nil {
			return shown, fitted
		}
		last := -1
		for at, i := range shown {
			if columns[i].Drop > 0 && (last < 0 || columns[i].Drop >= columns[shown[last]].Drop) {
				last = at
			}
		}
		if last < 0 {
			return shown, nil
		}
		shown = slices.Delete(shown, last, last+1)
	}
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
func fit(least, shown, natural []int, width int) []int {
	widths := slices.Clone(natural)
	total := len(gap) * (len(shown) - 1)
	for _, i := range shown {
		total += widths[i]
	}
	for ; width > 0 && total > width; total-- {
		widest := -1
		for _, i := range shown {
			if least[i] > 0 && widths[i] > least[i] && (widest < 0 || widths[i] > widths[widest]) {
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
func narrowest(least, natural []int) []int {
	widths := slices.Clone(natural)
	for i, to := range least {
		if to > 0 {
			widths[i] = min(widths[i], to)
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
		cell := cells[i]
		if columns[i].End {
			cell = cutStart(cell, widths[i])
		}
		cell = Cut(cell, widths[i])
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
