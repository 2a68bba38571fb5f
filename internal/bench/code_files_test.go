package bench

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/pkg/files"
)

// fiveLines are distinctive lines.
func fiveLines() (lines []string) {
	for i := range 5 {
		lines = append(lines, fmt.Sprintf("a line of its own, number %d", i+1))
	}
	return lines
}

func text(lines ...string) string { return strings.Join(lines, "\n") }

func TestAFileIsKnownAsFarAsCallsShowedIt(t *testing.T) {
	l := fiveLines()
	read := func(f *codeFile, first int, lines ...string) *codeFile {
		return f.after(&codeFact{kind: files.KindRead, first: first, text: text(lines...)})
	}
	var f *codeFile
	f = read(f, 3, l[2], l[3])
	require.Equal(t, []string{"", "", l[2], l[3]}, f.lines)
	require.Equal(t, []bool{false, false, true, true}, f.shown)
	f = read(f, 1, l[0], l[1])
	require.Equal(t, l[:4], f.lines)

	moved := read(f, 4, l[1], "inserted by somebody else", l[2])
	require.Equal(t, []string{l[0], l[1], "inserted by somebody else", l[2], l[3]}, moved.lines, "its lines are where the file had them")
	require.Equal(t, l[:4], f.lines, "a version never changes")

	edit := codeFact{kind: files.KindWrite, old: []string{l[1] + "\n" + l[2]}, change: []string{"one line for two"}}
	require.Equal(t, []string{l[0], "one line for two", l[3]}, f.after(&edit).lines)
	unknown := codeFact{kind: files.KindWrite, old: []string{"never seen"}, change: []string{"x"}}
	require.Equal(t, f, f.after(&unknown))
	require.Nil(t, (*codeFile)(nil).after(&edit))

	require.Equal(t, []string{"new"}, f.after(&codeFact{kind: files.KindWrite, text: "new\n"}).lines)
	require.Equal(t, l, f.after(&codeFact{kind: files.KindRead, first: 1, whole: true, text: text(l...)}).lines)
}

func TestAFunctionIsNeededIfItsLinesAreReadOrReplaced(t *testing.T) {
	source := text("package p", "", "func First() {", "\tfirst := compute(\"something\")", "\tprintln(first)", "}", "",
		"func Second() {", "\tsecond := compute(\"nothing at all\")", "\tprintln(second)", "}")
	f := newCodeFile(source)
	names := func(fact codeFact) (list []string) {
		fact.path = "p.go"
		for _, fn := range f.touched(&fact) {
			list = append(list, fn.name)
		}
		return list
	}
	require.Equal(t, []string{"Second"}, names(codeFact{kind: files.KindWrite, old: []string{`second := compute("nothing at all")`}, change: []string{"x"}}))
	require.Equal(t, []string{"First"}, names(codeFact{kind: files.KindRead, first: 3, text: text(strings.Split(source, "\n")[2:6]...)}))
	require.Equal(t, []string{"First", "Second"}, names(codeFact{kind: files.KindRead, first: 1, whole: true, text: source}))
	require.Empty(t, names(codeFact{kind: files.KindWrite, text: source}), "what a call writes anew was not needed before")
	require.Empty(t, names(codeFact{kind: files.KindWrite, old: []string{"never seen"}}))
}
