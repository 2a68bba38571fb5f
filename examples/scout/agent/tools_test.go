package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func box(t *testing.T, files map[string]string) *toolbox {
	t.Helper()
	tools, err := openToolbox(folder(t, files))
	require.NoError(t, err)
	t.Cleanup(tools.close)
	return tools
}

func TestToolsGive(t *testing.T) {
	t.Parallel()
	tools := box(t, map[string]string{"a.txt": "one\ntwo\nThree\n", "sub/b.txt": "no newline: two", "empty": ""})
	for _, c := range []struct {
		call call
		want any
	}{
		{listDirectory{Path: "."}, "[FILE] a.txt\n[FILE] empty\n[DIR] sub\n"},
		{listDirectory{Path: "sub"}, "[FILE] b.txt\n"},
		{grepFiles{Pattern: "TWO", Path: "."}, []hit{{"a.txt", 2, "two"}, {"sub/b.txt", 1, "no newline: two"}}},
		{grepFiles{Pattern: "t(wo|hree)$", Path: "a.txt"}, []hit{{"a.txt", 2, "two"}, {"a.txt", 3, "Three"}}},
		{grepFiles{Pattern: "two", Path: "sub"}, []hit{{"sub/b.txt", 1, "no newline: two"}}},
		{grepFiles{Pattern: "four", Path: "."}, []hit{}},
		{readFile{Path: "a.txt", StartLine: 2, EndLine: 99}, "2\ttwo\n3\tThree\n"},
		{readFile{Path: "sub/b.txt", EndLine: 1}, "1\tno newline: two\n"},
	} {
		got, failure := tools.do(t.Context(), c.call)
		require.NoError(t, failure, c.call)
		require.Equal(t, c.want, got, c.call)
	}
}

func TestToolsFail(t *testing.T) {
	t.Parallel()
	tools := box(t, map[string]string{"a.txt": "one\n", "bin": "a\x00b", "huge": strings.Repeat("x", MaxFileBytes+1)})
	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(tools.dir, "link")))
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		call call
		says string
	}{
		{"no folder", t.Context(), listDirectory{Path: "none"}, "no such file"},
		{"no pattern", t.Context(), grepFiles{Pattern: "(", Path: "."}, "error parsing regexp"},
		{"no path", t.Context(), grepFiles{Pattern: "a", Path: "none"}, "no such file"},
		{"no file", t.Context(), readFile{Path: "none", EndLine: 1}, "no such file"},
		{"beyond the end", t.Context(), readFile{Path: "a.txt", StartLine: 5, EndLine: 9}, "beyond the end: a.txt has 1"},
		{"a folder", t.Context(), readFile{Path: ".", EndLine: 1}, "is a directory"},
		{"binary", t.Context(), readFile{Path: "bin", EndLine: 1}, "not a text"},
		{"huge", t.Context(), readFile{Path: "huge", EndLine: 1}, "too large"},
		{"out of the folder", t.Context(), readFile{Path: "../x", EndLine: 1}, "escapes"},
		{"out by a link", t.Context(), readFile{Path: "link", EndLine: 1}, "escapes"},
		{"another command", t.Context(), runCommand{Command: "rm -rf ."}, "only gofmt -l of one path is"},
		{"an option that writes", t.Context(), runCommand{Command: "gofmt -w ."}, "only gofmt -l of one path is"},
		{"an option instead of a path", t.Context(), runCommand{Command: "gofmt -l -w"}, "only gofmt -l of one path is"},
		{"interrupted search", canceled, grepFiles{Pattern: "a", Path: "."}, "context canceled"},
		{"interrupted command", canceled, runCommand{Command: "gofmt -l ."}, "interrupted"},
	} {
		got, failure := tools.do(c.ctx, c.call)
		require.ErrorContains(t, failure, c.says, c.name)
		require.Nil(t, got, c.name)
	}
}

func TestHitsAreSpreadOverAllFiles(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 10 {
		files[fmt.Sprintf("%02d.txt", i)] = strings.Repeat("word\n", 100)
	}
	files["zz.txt"] = "word\n"
	got, failure := box(t, files).do(t.Context(), grepFiles{Pattern: "word", Path: "."})
	require.NoError(t, failure)
	hits := got.([]hit)
	require.Len(t, hits, 191, "19 of each of the ten and the last")
	require.Equal(t, hit{"zz.txt", 1, "word"}, hits[190])
}

func TestLongListingIsCut(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range MaxEntries + 7 {
		files[fmt.Sprintf("%03d", i)] = ""
	}
	got, failure := box(t, files).do(t.Context(), listDirectory{Path: "."})
	require.NoError(t, failure)
	require.True(t, strings.HasSuffix(got.(string), "[FILE] 499\n… and 7 more\n"))
}

func TestAnswerSaysWhatWasNotSearched(t *testing.T) {
	t.Parallel()
	p := know("frobnicate", nil)
	p.tools.unreadable = map[string]bool{"a": true, "b": true}
	p.tools.cut = true
	require.Equal(t, `I found nothing in this folder for "frobnicate".
2 files could not be read.
The folder is larger than I search through (20000 files); the rest was not seen.`, p.answer().says)
}

func TestLongLinesAndOutputAreCut(t *testing.T) {
	t.Parallel()
	require.Equal(t, strings.Repeat("é", MaxLineChars)+"…", shorten(strings.Repeat("é", MaxLineChars+1)))
	require.Equal(t, strings.Repeat("é", MaxLineChars), shorten(strings.Repeat("é", MaxLineChars)+" \r"))
	require.Equal(t, "a�b", shorten("a\xffb"))
	var out output
	for range 3 {
		n, err := out.Write(make([]byte, MaxOutputBytes/2+1))
		require.NoError(t, err)
		require.Equal(t, MaxOutputBytes/2+1, n)
	}
	require.Len(t, out, MaxOutputBytes)
}

func TestNeededTextNeverHidesAMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern string
		known   bool
		in, out string
	}{
		{"writ", true, "a WRITer", "a reader"},
		{"a.*b|b.*a", true, "b then A", "only b"},
		{`\bwrit`, false, "write", ""},
		{"straße", false, "STRASSE", ""},
	} {
		need := neededText(c.pattern)
		require.Equal(t, c.known, need != nil, c.pattern)
		require.True(t, need.in([]byte(c.in)), c.pattern)
		if c.known {
			require.False(t, need.in([]byte(c.out)), c.pattern)
		}
	}
}
