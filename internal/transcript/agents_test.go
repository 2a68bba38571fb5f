package transcript

import (
	"bytes"
	"context"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

var update = flag.Bool("update", false, "write the golden files")

// fixtures are synthetic recordings, in the folder of their format and under the names that agents give them.
func fixtures(t testing.TB) (paths []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(os.DirFS("testdata/agents"), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(path, ".golden") && !strings.HasSuffix(path, ".sql") && d.Name() != "workspace.json" {
			paths = append(paths, "testdata/agents/"+path)
		}
		return err
	}))
	require.NotEmpty(t, paths)
	return paths
}

// formatOf returns the format of a fixture.
func formatOf(path string) string { return strings.Split(path, "/")[2] }

// golden compares what a recording becomes with its golden file.
func golden(t *testing.T, path string, items []Item, skips []string) {
	t.Helper()
	var text strings.Builder
	last := ""
	for _, i := range items {
		if i.Err != nil {
			text.WriteString("refused: " + i.Err.Error() + "\n")
			continue
		}
		if i.Event.Subject != last {
			last = i.Event.Subject
			text.WriteString("# " + last + " from " + i.Event.Source + "\n")
		}
		line := strings.ReplaceAll(shown(t, []Item{i})[0], last, "CONV")
		if i.Open {
			line += " (open)"
		}
		text.WriteString(line + "\n")
	}
	for _, s := range skips {
		text.WriteString("skipped: " + s + "\n")
	}
	if *update {
		require.NoError(t, os.WriteFile(path+".golden", []byte(text.String()), 0o644))
	}
	want, err := os.ReadFile(path + ".golden")
	require.NoError(t, err)
	assert.Equal(t, string(want), text.String())
}

func TestRecordingsOfEachAgentBecomeTheEventsOfTheirGoldenFiles(t *testing.T) {
	for _, path := range fixtures(t) {
		t.Run(strings.TrimPrefix(path, "testdata/agents/"), func(t *testing.T) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			var items []Item
			var skips []string
			require.NoError(t, Read(t.Context(), bytes.NewReader(data), path, Auto, func(i Item) error {
				assert.Equal(t, formatOf(path), i.Format)
				items = append(items, i)
				return nil
			}, OnSkip(func(s Skip) { skips = append(skips, s.String()) })))
			golden(t, path, items, skips)
			assert.Equal(t, items, readAll(t, data, path, formatOf(path)), "the format need not be named")
			assert.Equal(t, items, readAll(t, packed(t, string(data)), path, Auto), "compressed")
		})
	}
}

// Closed items stay as they are while an agent continues to write: the items of a recording that has grown begin with
// them.
func TestAGrownRecordingOfEachAgentBeginsWithTheSameEvents(t *testing.T) {
	for _, path := range fixtures(t) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		if filepath.Ext(path) != ".jsonl" {
			continue
		}
		whole := readAll(t, data, path, formatOf(path))
		lines := strings.SplitAfter(string(data), "\n")
		for n := range lines {
			for i, item := range readAll(t, []byte(strings.Join(lines[:n], "")), path, formatOf(path)) {
				if item.Open {
					break
				}
				require.Equal(t, whole[i], item, "%s after %d lines", path, n)
			}
		}
	}
}

func TestARecordingOfAnyAgentThatIsCutOffIsNeverAnErrorOfItsFormat(t *testing.T) {
	for _, path := range fixtures(t) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		for at := 1; at < len(data); at += 97 {
			err := Read(context.Background(), bytes.NewReader(data[:at]), path, formatOf(path), func(Item) error { return nil })
			require.NoError(t, err, "%s at %d", path, at)
		}
	}
}

func TestFindTakesTheNamesOfEachAgentInFolders(t *testing.T) {
	files, err := Find([]string{"testdata/agents"})
	require.NoError(t, err)
	var found []string
	for _, f := range files {
		found = append(found, filepath.ToSlash(f.Path))
	}
	for _, path := range fixtures(t) {
		if formatOf(path) != messagesFormat && formatOf(path) != opencodeFormat { // lists and exports have any name
			assert.Contains(t, found, path)
		}
	}
}

func TestAFolderWithAnEndlessNameIsNotRead(t *testing.T) {
	at := func(folder string) string {
		return folderIn("# Current Working Directory ("+folder+") Files\n", clineWorks)
	}
	require.Equal(t, "/w/cli", at("/w/cli"))
	require.Equal(t, strings.Repeat("a", maxFolder), at(strings.Repeat("a", maxFolder)))
	require.Empty(t, at(strings.Repeat("a", maxFolder+1)))
	require.Empty(t, folderIn("**Workspace Directories:**\n  - /"+strings.Repeat("a", maxFolder)+"\n", geminiFolder))
	require.Equal(t, "/w/cli", folderIn("**Workspace Directories:**\n  - /w/cli\n", geminiFolder))
}

func TestABlockOfCodeThatAiderDidNotEndHoldsOneAnswer(t *testing.T) {
	said := func(text string) (list []string) {
		for _, i := range readAll(t, []byte("# aider chat started at 2026-10-05 09:00:00\n\n#### one\n\n"+text), ".aider.chat.history.md", aiderFormat)[1:] {
			r, err := events.Record(i.Event)
			require.NoError(t, err)
			m := r.Payload.(*events.MessageCreated)
			list = append(list, m.Role+": "+m.Content)
		}
		return list
	}
	for _, end := range []string{"> ^C again to exit", "> Tokens: 1k sent, 20 received."} {
		require.Equal(t, []string{"user: one", "assistant: Look:\n\n```go\ntotal :=", "user: two", "assistant: Well."}, said("Look:\n\n```go\ntotal :=\n"+end+"\n\n#### two\n\nWell.\n"))
	}
	require.Equal(t, []string{"user: one", "assistant: ````md\n```go\n#### code\n```\n> code\n````", "user: two"}, said("````md\n```go\n#### code\n```\n> code\n````\n\n> Applied edit\n\n#### two\n"))
}

func TestACallThatAUserOfContinueCanceledHasFailed(t *testing.T) {
	const session = `{"sessionId":"c","title":"T","workspaceDirectory":"/shop","history":[{"message":{"role":"user","content":"Build it."}},` +
		`{"message":{"role":"assistant","content":"I build.","toolCalls":[{"id":"one","function":{"name":"Bash","arguments":"{}"}},{"id":"two","function":{"name":"Bash","arguments":"{}"}}]},` +
		`"toolCallStates":[{"toolCallId":"one","status":"canceled"},{"toolCallId":"two","status":"canceled"}]}`
	results := func(history string) (list []string) {
		for _, e := range good(t, readAll(t, []byte(session+history+"]}"), "c.json", continueFormat)) {
			if r, ok := e.Payload.(*events.ToolReturned); ok {
				list = append(list, r.ToolCallID+" "+strconv.FormatBool(*r.Success)+" "+r.Result.Text())
			}
		}
		return list
	}
	require.Empty(t, results(""), "a message of the tool may follow")
	said := `,{"message":{"role":"tool","toolCallId":"two","content":"Stopped."}}`
	require.Equal(t, []string{"two false Stopped."}, results(said))
	require.Equal(t, []string{"two false Stopped.", "one false canceled"}, results(said+`,{"message":{"role":"user","content":"Why not?"}}`))
}
