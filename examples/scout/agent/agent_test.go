package agent

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/files"
)

func TestAnswersAndRecordsWhatItDid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	answer := b.ask(folder(t, repository()), question)

	require.NotEmpty(t, answer.Places)
	best := answer.Places[0]
	require.Equal(t, "store/position.go:7", best.String())
	require.Equal(t, "func (f *File) KeepLantern(seq byte) {", best.Text)
	require.Equal(t, "KeepLantern", best.Name)
	require.Contains(t, answer.Text, "gofmt -l ./store/position.go finds nothing to change")
	require.Equal(t, 7, answer.Steps)

	list := b.recorded()
	requirePaired(t, list)
	require.Equal(t, []string{
		"started: " + question,
		"user: " + question,
		`assistant: I look at what is in the folder.`,
		`list_directory {"path":"."}`, `→ true`,
		`assistant: I search all files for "lantern" and "painted".`,
		`grep_files {"pattern":"lantern","path":"."}`, `→ true`,
		`grep_files {"pattern":"paint","path":"."}`, `→ true`,
		`assistant: I look for lines that hold two of "lantern" and "painted".`,
		`grep_files {"pattern":"lantern.*paint|paint.*lantern","path":"."}`, `→ true`,
		`assistant: I read store/position.go, store/use.go and README.md around the best hits.`,
		`read_file {"path":"store/position.go","start_line":1,"end_line":28}`, `→ true`,
		`read_file {"path":"store/use.go","start_line":1,"end_line":25}`, `→ true`,
		`read_file {"path":"README.md","start_line":1,"end_line":23}`, `→ true`,
		`assistant: I look once more, for "KeepLantern".`,
		`grep_files {"pattern":"KeepLantern","path":"."}`, `→ true`,
		`assistant: I check that ./store/position.go is Go, with gofmt.`,
		`run_command {"command":"gofmt -l ./store/position.go"}`, `→ true`,
		"assistant: " + answer.Text,
	}, lines(list))

	last := list[len(list)-1]
	require.Equal(t, last.Seq, answer.Seq)
	message := last.Payload.(*events.MessageCreated)
	require.NotEmpty(t, message.Reasoning)
	require.Len(t, message.References, len(answer.Places))
	require.Equal(t, events.Reference{File: "store/position.go", StartLine: 7, EndLine: 7, Name: "KeepLantern"}, message.References[0])
}

func TestFileTrackerReadsTheResults(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ask(folder(t, repository()), question)
	list := b.recorded()
	table := files.DefaultTable()

	found := map[string]files.Kind{}
	calls := map[string]files.Call{}
	for _, e := range list {
		switch p := e.Payload.(type) {
		case *events.ToolCalled:
			c := files.Call{Tool: p.ToolName, Arguments: p.Arguments}
			calls[p.ToolCallID] = c
			for _, a := range table.FromCall(c) {
				found[string(a.Kind)+" "+a.Path] = a.Kind
			}
		case *events.ToolReturned:
			for _, a := range table.FromResult(calls[p.ToolCallID], p.Text(), p.Files) {
				found[string(a.Kind)+" "+a.Path] = a.Kind
			}
		}
	}
	for _, want := range []string{"list main.go", "search store/position.go", "search store/use.go", "read store/position.go"} {
		require.Contains(t, found, want)
	}
	for _, hits := range results(list, "grep_files") {
		var parsed []hit
		require.NoError(t, json.Unmarshal([]byte(hits.Text()), &parsed))
		for _, h := range parsed {
			require.NotContains(t, h.File, "node_modules")
			require.NotContains(t, h.File, "vendor")
			require.NotContains(t, h.File, ".git")
			require.NotContains(t, h.File, "testdata", "one is binary, the other huge")
		}
	}
}

func TestSecondQuestionContinuesTheConversation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := folder(t, repository())
	first := b.ask(dir, question)
	again := NewRecorder(b.log, b.rec.Tenant, b.rec.Conversation) // like another process
	second, err := Run(t.Context(), Options{Dir: dir, Question: "who applies the sequence?", Recorder: again})
	require.NoError(t, err)

	require.Equal(t, first.Conversation, second.Conversation)
	require.Equal(t, "store/use.go", second.Places[0].File)
	list := b.recorded()
	requirePaired(t, list)
	require.Equal(t, second.Seq, list[len(list)-1].Seq)
	started, users, sessions, ids := 0, 0, map[string]bool{}, map[string]bool{}
	for _, e := range list {
		require.False(t, ids[e.ID], "the id %s is given twice", e.ID)
		ids[e.ID] = true
		switch p := e.Payload.(type) {
		case *events.ConversationStarted:
			started++
		case *events.MessageCreated:
			sessions[p.Session] = true
			if p.Role == "user" {
				users++
			}
		}
	}
	require.Equal(t, 1, started)
	require.Equal(t, 2, users)
	require.Len(t, sessions, 2)
}

func TestSaysThatNothingWasFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, question, says string }{
		{"no file has the words", "how is a frobnicator defenestrated?", `I found nothing in this folder for "frobnicator" and "defenestrated".`},
		{"no words", "where is it?", "I found nothing: the question holds no word that I could search for."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			answer := b.ask(folder(t, repository()), c.question)
			require.Equal(t, c.says, answer.Text)
			require.NotNil(t, answer.Places, "JSON shows an empty list")
			require.Empty(t, answer.Places)
			requirePaired(t, b.recorded())
		})
	}
}

func TestSearchesForPrefixesBeforeGivingUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	answer := b.ask(folder(t, map[string]string{"notes.txt": "a reconfiguration\nthe configs are read at start\n"}), "where is the configuration?")
	require.Equal(t, "notes.txt:2", answer.Places[0].String())
}

func TestQuestionOfOneWord(t *testing.T) {
	t.Parallel()
	b := setup(t)
	answer := b.ask(folder(t, repository()), "KeepLantern")
	require.Equal(t, "store/position.go:7", answer.Places[0].String())
}

func TestFolderWithoutGo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	answer := b.ask(folder(t, map[string]string{
		"app/worker.py": "import json\n\nclass Worker:\n    def keep_lantern(self, n):\n        with open(self.path, 'w') as f:\n            json.dump(n, f)  # the lantern is painted whole\n",
		"index.html":    "<p>nothing</p>\n",
	}), question)
	require.Equal(t, "app/worker.py:6", answer.Places[0].String())
	require.Equal(t, "keep_lantern", answer.Places[0].Name)
	require.Empty(t, results(b.recorded(), "run_command"))
}

func TestACommandThatFailsIsAResult(t *testing.T) {
	t.Parallel()
	b := setup(t)
	files := repository()
	files["store/position.go"] += "\nvar broken =\n"
	files["store/testdata/other.go"] = "package" // is broken on purpose, and nobody's business
	answer := b.ask(folder(t, files), question)

	require.Equal(t, "store/position.go", answer.Places[0].File)
	require.Contains(t, answer.Text, "gofmt -l ./store/position.go fails: ")
	require.Contains(t, answer.Text, "expected operand")
	run := results(b.recorded(), "run_command")
	require.Len(t, run, 1)
	require.False(t, *run[0].Success)
	require.Contains(t, run[0].Text(), "expected operand")
	require.Equal(t, "exit status 2", run[0].Error)
}

func TestFileDeletedBeforeItIsRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := folder(t, repository())
	answer, err := Run(t.Context(), Options{Dir: dir, Question: question, Recorder: b.rec, Progress: func(line string) {
		if strings.HasPrefix(line, "I read ") {
			require.NoError(t, os.Remove(filepath.Join(dir, "store/position.go")))
		}
	}})
	require.NoError(t, err)
	require.NotEmpty(t, answer.Places)
	list := b.recorded()
	requirePaired(t, list)
	read := results(list, "read_file")
	require.False(t, *read[0].Success)
	require.Contains(t, read[0].Text(), "no such file")
	require.True(t, *read[1].Success)
}

// The run is ended at each line of progress in turn. The log must then hold the beginning
// of a complete run, with no call left open.
func TestCancelLeavesWholeEvents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := folder(t, repository())
	b.ask(dir, question)
	whole := lines(b.recorded())

	for stop := 1; ; stop++ {
		b.rec = NewRecorder(b.log, "default", "")
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		_, err := Run(ctx, Options{Dir: dir, Question: question, Recorder: b.rec, Progress: func(string) {
			if n++; n == stop {
				cancel()
			}
		}})
		cancel()
		if n < stop { // the run had finished before
			require.NoError(t, err)
			require.Greater(t, stop, 10)
			return
		}
		require.ErrorIs(t, err, context.Canceled)
		list := b.recorded()
		requirePaired(t, list)
		require.Equal(t, whole[:len(list)], lines(list))
	}
}

func TestLosingTheLogEndsTheRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, cancel := context.WithTimeout(t.Context(), mnemetest.Patience)
	defer cancel()
	_, err := Run(ctx, Options{Dir: folder(t, repository()), Question: question, Recorder: b.rec, Progress: func(line string) {
		if strings.HasPrefix(line, "I read ") {
			b.rec.Log.Conn().Close()
		}
	}})
	require.ErrorContains(t, err, "record dev.mneme.tool.called.v1: ")
	require.NoError(t, ctx.Err(), "it did not wait for anything")
}

func TestRefusesInvalidOptions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct{ name, dir, question, says string }{
		{"no question", t.TempDir(), " ", "the question is empty"},
		{"no folder", filepath.Join(t.TempDir(), "none"), question, "folder: "},
	} {
		_, err := Run(t.Context(), Options{Dir: c.dir, Question: c.question, Recorder: b.rec})
		require.ErrorContains(t, err, c.says, c.name)
	}
	require.Empty(t, b.recorded(), "a run that cannot begin says nothing")
}

func TestAnswersAboutThisRepository(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	b := setup(t)
	answer := b.ask("../../..", "where is the checkpoint written?")
	best := answer.Places[0]
	require.Truef(t, strings.HasSuffix(best.File, "store/engine.go") && strings.Contains(best.Text, "checkpoint"), "as the README shows, a store does: %s", answer.Text)
	require.NotContains(t, answer.Text, "examples/scout", "who asks the question does not answer it")
}
