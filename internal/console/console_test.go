package console

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestControlCharactersBecomeVisible(t *testing.T) {
	t.Parallel()
	evil := "a\x1b]0;title\x07\x1b[2Jb\r\nc\td\x7f\u009b31me\u202eflip\u2066"
	require.Equal(t, "a␛]0;title␇␛[2Jb\nc\td␡�31me�flip�", Clean(evil))
	require.Equal(t, "a␛]0;title␇␛[2Jb  c d␡�31me�flip�", OneLine(evil))
	require.Equal(t, "日本語 🦊 é", OneLine("日本語 🦊 é"), "other characters stay")
	require.Equal(t, "a����b�c�", OneLine("a\U000E0001\U000E0068\U000E0069\U000E007Fb\u200Bc\uFEFF"), "invisible ones can hide a text")
	words := "👩\u200D💻 ❤\uFE0F می\u200Cخواهم co\u00ADop \u0600۱۲"
	require.Equal(t, words, OneLine(words), "those that belong to words and emoji stay")
}

var columns = []Column{{Name: "ID", Min: 6}, {Name: "TURNS", Right: true, Drop: 1}, {Name: "CHARS", Right: true, Drop: 2}, {Name: "TITLE", Min: 6}}

func TestTableWithoutWidthIsNotCut(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"日本", "1", "1,000", "short"}, {"conversation", "12", "7", ""}}
	require.Equal(t, []string{
		"ID            TURNS  CHARS  TITLE",
		"日本              1  1,000  short",
		"conversation     12      7",
	}, Layout(columns, rows, 0))
}

func TestNarrowTableCutsCellsThenDropsColumns(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"conversation-one", "1", "1,000", "a title of some length"}}
	require.Equal(t, []string{"ID          TURNS  CHARS  TITLE", "conversat…      1  1,000  a title o…"}, Layout(columns, rows, 36))
	require.Equal(t, []string{"ID      TURNS  TITLE", "conve…      1  a tit…"}, Layout(columns, rows, 21))
	require.Equal(t, []string{"ID      TITLE", "conve…  a titl…"}, Layout(columns, rows, 15))
	require.Equal(t, []string{"ID      …", "conve…  …"}, Layout(columns, rows, 9), "columns at their minimum are cut at the edge")
	require.Equal(t, "A\ufe0f …", Cut("A\ufe0f   A", 4), "a letter with a variation selector")
}

func TestAnIDStaysWholeIfOtherColumnsCanGo(t *testing.T) {
	t.Parallel()
	columns := []Column{{Name: "ID", Min: 6, Whole: 20}, {Name: "TURNS", Right: true, Drop: 1}, {Name: "PATH", Min: 8, End: true}}
	rows := [][]string{{"conversation-one", "1", "/home/someone/a/file.go"}, {"a conversation with a long id", "2", "b"}}
	require.Equal(t, []string{
		"ID                    PATH",
		"conversation-one      …one/a/file.go",
		"a conversation with…  b",
	}, Layout(columns, rows, 36))
	require.Equal(t, []string{
		"ID         TURNS  PATH",
		"conversa…      1  …/file.go",
		"a conver…      2  b",
	}, Layout(columns, rows, 27), "otherwise all are narrowed")
}

func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.StringN(0, 30, -1)
		row := rapid.SliceOfN(cell, len(columns), len(columns))
		rows := rapid.SliceOfN(row, 0, 5).Draw(t, "rows")
		for _, r := range rows {
			for i := range r {
				r[i] = OneLine(r[i])
			}
		}
		width := rapid.IntRange(4, 120).Draw(t, "width")
		wanted := slices.Clone(columns)
		wanted[0].Whole, wanted[3].End = rapid.IntRange(0, 40).Draw(t, "whole"), rapid.Bool().Draw(t, "end")
		for _, l := range Layout(wanted, rows, width) {
			if Width(l) > width || strings.ContainsAny(l, "\n\r\x1b") {
				t.Fatalf("%q is %d wide, the terminal %d", l, Width(l), width)
			}
		}
	})
}
