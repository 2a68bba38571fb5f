package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/codeindex"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mnemetest"
)

// checkout makes a repository with some files.
func checkout(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(root, ".git"), 0o755))
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return root
}

type foundCode struct {
	Indexes []httpapi.CodeIndex  `json:"indexes"`
	Scopes  []httpapi.FoundScope `json:"scopes"`
}

func TestAnIndexWaitsForTheQuotaOfItsTenant(t *testing.T) {
	t.Parallel()
	quotas := filepath.Join(t.TempDir(), "quotas.yaml")
	require.NoError(t, os.WriteFile(quotas, []byte("default: {events_per_second: 25.6}\n"), 0o600))
	s := &server{Server: mnemetest.UpWith(t, "--data", filepath.Join(t.TempDir(), "data"), "--quotas-file", quotas), t: t}
	files := map[string]string{}
	for i := range 512 { // two lots of what is published at once: the quota allows the second one ten seconds after the first
		files[fmt.Sprintf("f%03d.go", i)] = fmt.Sprintf("package f\n\nfunc F%d() {\n}\n", i)
	}
	out, stderr, code := s.mneme("index", checkout(t, files), "--state", filepath.Join(t.TempDir(), "state.json"))
	require.Zero(t, code, stderr)
	require.Contains(t, out, "indexed 512 files")
	require.Regexp(t, `^waiting, and trying again: .* is over its quota of 25.6 events per second`, stderr)
}

func TestIndexSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	root := checkout(t, map[string]string{"a.go": "package a\n\nfunc A() {\n}\n", "empty.py": "\n", "logo.png": "x", "doc/data.bin": "x"})
	for _, name := range []string{"b.go", "c.go"} {
		require.NoError(t, os.Symlink("a.go", filepath.Join(root, name)))
	}
	out, stderr, code := mneme(t, "index", root, "--dry-run")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "would index 1 file with 1 scope of "+root+"; 0 unchanged, 0 removed\nleft out: 1 empty, 2 links, 2 of kinds it can't cut; --list-skipped names them\n")
	out, stderr, code = mneme(t, "index", root, "--dry-run", "--list-skipped")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "2 of kinds it can't cut\n    b.go: link\n    c.go: link\n    doc/data.bin: unknown\n    empty.py: empty\n    logo.png: unknown\n")
	out, stderr, code = mneme(t, "index", root, "--dry-run", "--list-skipped", "--json")
	require.Zero(t, code, stderr)
	var report codeindex.Report
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	require.Equal(t, map[string]int{"empty": 1, "link": 2, "unknown": 2}, report.Skipped)
	require.Equal(t, codeindex.SkippedFile{Path: "logo.png", Reason: "unknown"}, report.SkippedFiles[4])
}

func TestAFolderThatIsGoneLeavesTheIndex(t *testing.T) {
	t.Parallel()
	s := up(t, t.TempDir())
	root := checkout(t, map[string]string{"a.go": "package a\n\nfunc A() {\n}\n", "pkg/gone/b.go": "package b\n\nfunc B() {\n}\n"})
	state := filepath.Join(t.TempDir(), "state.json")
	read[codeindex.Report](s, "index", root, "--state", state)
	require.NoError(t, os.RemoveAll(filepath.Join(root, "pkg")))
	_, stderr, code := s.mneme("index", filepath.Join(root, "pkg", "gnoe"), "--state", state)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "no such folder, and the index holds nothing of it")
	require.Equal(t, 1, read[codeindex.Report](s, "index", filepath.Join(root, "pkg", "gone"), "--state", state).Removed)
	require.Equal(t, 1, read[codeindex.Report](s, "index", root, "--state", state).Unchanged)
	_, stderr, code = s.mneme("index", filepath.Join(root, "pkg", "gone"), "--state", state)
	require.Equal(t, exitUsage, code, stderr)
}

func TestTheCodeOfAProjectIsIndexedAndFound(t *testing.T) {
	t.Parallel()
	s := up(t, t.TempDir())
	root := checkout(t, map[string]string{
		"upload/retry.go": "package upload\n\n// Retry sends a part again.\nfunc Retry(part int) error {\n\treturn send(part)\n}\n",
		"parse.py":        "def parse_header(line):\n    return line.split(':')\n",
		"build/out.go":    "package build\n\nfunc Generated() {\n}\n",
		".gitignore":      "build/\n",
	})
	state := filepath.Join(t.TempDir(), "state.json")
	first := read[codeindex.Report](s, "index", filepath.Join(root, "upload"), "--state", state)
	require.Equal(t, []int{1, 1}, []int{first.Files, first.Indexed}, "a part of the repository")
	require.Equal(t, root, first.Project)
	rest := read[codeindex.Report](s, "index", root, "--state", state)
	require.Equal(t, []int{2, 1, 1}, []int{rest.Files, rest.Indexed, rest.Unchanged})

	search := func(query string, args ...string) foundCode {
		return read[foundCode](s, append([]string{"code", "search", query, "--project", root, "--at-least", fmt.Sprint(rest.LastSeq)}, args...)...)
	}
	found := search("where is a part sent again")
	require.Equal(t, []httpapi.CodeIndex{{Project: root, Root: root, Done: true, Files: 2, Seq: rest.LastSeq}}, found.Indexes)
	require.Equal(t, "upload/retry.go", found.Scopes[0].Path)
	require.Equal(t, []any{"Retry", "function", 3, 6}, []any{found.Scopes[0].Name, found.Scopes[0].Kind, found.Scopes[0].StartLine, found.Scopes[0].EndLine})
	require.Equal(t, "parse_header", search("parse_header").Scopes[0].Name)
	require.Empty(t, search("parse_header", "--as-of", fmt.Sprint(first.LastSeq)).Indexes[0].Files-1, "as of the first run")
	out, _, code := s.mneme("code", "search", "parse_header", "--project", root, "--text", "--limit", "1")
	require.Zero(t, code)
	require.Contains(t, out, "parse.py:1-2 function parse_header\n\n    def parse_header(line):\n        return line.split(':')\n")

	require.NoError(t, os.Remove(state))
	again := read[codeindex.Report](s, "index", root, "--state", state)
	require.Equal(t, []int{0, 2}, []int{again.Indexed, again.Unchanged}, "the server knows what it holds")

	_, stderr, code := s.mneme("code", "search", "x", "--project", "/nowhere")
	require.NotZero(t, code)
	require.Contains(t, stderr, "the code of /nowhere is not indexed: run mneme index . in its folder")
	for _, what := range []string{"search", "conversations"} {
		out, stderr, code = s.mneme("code", what, "x", "--project", "/nowhere", "--json")
		require.Equal(t, exitFailed, code, "an empty list would say that it was searched")
		require.Empty(t, out)
		require.Contains(t, stderr, "mneme index .")
	}
}

func TestAnErasedIndexBeginsAgainWhenAsked(t *testing.T) {
	t.Parallel()
	s := up(t, t.TempDir())
	root := checkout(t, map[string]string{"retry.go": "package upload\n\nfunc Retry(part int) error {\n\treturn send(part)\n}\n"})
	state := filepath.Join(t.TempDir(), "state.json")
	read[codeindex.Report](s, "index", root, "--state", state)
	_, stderr, code := s.mneme("erase", "conversation", "code:"+root, "--yes")
	require.Zero(t, code, stderr)
	for _, state := range []string{state, filepath.Join(t.TempDir(), "lost.json")} {
		_, stderr, code = s.mneme("index", root, "--state", state)
		require.Equal(t, exitFailed, code)
		require.Contains(t, stderr, "was erased and accepts no more code; mneme index --again begins a new one")
	}
	for _, name := range []string{root + "#2", root + "#3"} {
		begun := read[codeindex.Report](s, "index", root, "--state", state, "--again")
		require.Equal(t, []any{name, 1}, []any{begun.Project, begun.Indexed})
		found := read[foundCode](s, "code", "search", "Retry", "--project", root, "--at-least", fmt.Sprint(begun.LastSeq))
		require.Equal(t, "retry.go", found.Scopes[0].Path)
		require.Len(t, found.Indexes, 1)
		for _, args := range [][]string{{"--state", state}, {"--state", filepath.Join(t.TempDir(), "lost.json")}, {"--state", state, "--again"}} {
			later := read[codeindex.Report](s, append([]string{"index", root}, args...)...)
			require.Equal(t, []any{name, 0, 1}, []any{later.Project, later.Indexed, later.Unchanged}, "it continues without the flag")
		}
		_, stderr, code = s.mneme("erase", "conversation", "code:"+name, "--yes")
		require.Zero(t, code, stderr)
	}
	read[codeindex.Report](s, "index", root, "--state", state, "--again")
	_, stderr, code = s.mneme("erase", "project", root, "--yes")
	require.Zero(t, code, stderr)
	_, stderr, code = s.mneme("code", "search", "Retry", "--project", root)
	require.Equal(t, exitFailed, code, stderr)
	_, stderr, code = s.mneme("verify")
	require.Zero(t, code, stderr)
}

func TestConversationsAboutAFunctionAreListed(t *testing.T) {
	t.Parallel()
	s := up(t, t.TempDir())
	root := checkout(t, map[string]string{
		"upload/retry.go": "package upload\n\n// Retry sends a part again.\nfunc Retry(part int) error {\n\treturn send(part)\n}\n",
		"log.go":          "package cli\n\nfunc (l *Log) Close() {\n}\n\nfunc (s *Store) Close() {\n}\n",
	})
	last := read[codeindex.Report](s, "index", root, "--state", filepath.Join(t.TempDir(), "state.json")).LastSeq
	said := func(id, title, text string) {
		begin := started(title)
		begin["cwd"] = root
		s.publish(id, begin, userMessage("m", text))
		last += 2
	}
	said("twice", "Parts sent twice", "Why does Retry(part) send a part twice?")
	said("loop", "An endless loop", "upload/retry.go:5 never returns")
	about := func(args ...string) (out, stderr string, code int) {
		return s.mneme(append([]string{"code", "conversations", "--project", root, "--at-least", fmt.Sprint(last)}, args...)...)
	}
	for _, args := range [][]string{{"Retry"}, {"upload/retry.go:5"}, {filepath.Join(root, "upload", "retry.go") + ":5"}} {
		out, stderr, code := about(args...)
		require.Zero(t, code, stderr)
		require.Contains(t, stderr, "upload/retry.go:3-6 function Retry")
		require.Regexp(t, `^CONVERSATION.*\nloop\t.*\tupload/retry.go:5\tAn endless loop\ntwice\t.*\tRetry\tParts sent twice\n$`, out, args)
	}
	out, _, code := about("Close", "--file", "log.go")
	require.NotZero(t, code, out)
	out, _, code = about("Log.Close", "--file", filepath.Join(root, "log.go"))
	require.Zero(t, code)
	require.Equal(t, "nothing found\n", out)
	for want, args := range map[string][]string{
		"2 places are meant": {"Close"}, "the index holds nothing named": {"Nobody"}, "lines count from 1": {"log.go:0"}, "--file says where a name is": {"log.go:3", "--file", "log.go"},
	} {
		_, stderr, code := about(args...)
		require.NotZero(t, code)
		require.Contains(t, strings.ReplaceAll(stderr, "\n", " "), want)
	}
}

func TestMistakesInIndexSayWhatToDo(t *testing.T) {
	t.Parallel()
	root := checkout(t, map[string]string{"a.go": "package a\n", "b.go": "package b\n"})
	missing := filepath.Join(t.TempDir(), "missing")
	for want, args := range map[string][]string{
		"is not a folder":            {filepath.Join(root, "a.go")},
		"no such file":               {missing},
		"is not a number of files":   {root, "--max-files", "0"},
		"raise the limit with --max": {root, "--max-files", "1", "--dry-run"},
	} {
		_, stderr, code := mneme(t, append([]string{"index"}, args...)...)
		require.NotZero(t, code)
		require.Contains(t, strings.ReplaceAll(stderr, "\n", " "), want)
	}
}
