package extractive

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/pkg/summary"
)

func message(kind summary.Kind, turn int, text string) summary.Entry {
	return summary.Entry{Kind: kind, Turn: turn, Text: text}
}

func called(tool, arguments string) summary.Entry {
	return summary.Entry{Kind: summary.KindCall, Name: tool, Text: arguments}
}

func level1(t testing.TB, entries ...summary.Entry) summary.Draft {
	return draftOf(t, summary.Input{Entries: entries})
}

// A typical agent session: two turns with steps in between.
var session = []summary.Entry{
	message(summary.KindUser, 1, "<system-reminder>Never mention this.</system-reminder>\nThe importer drops the last line of a file, please find out why."),
	message(summary.KindAssistant, 1, "Let me look at the importer:"),
	called("Read", `{"file_path": "/w/pkg/import/reader.go"}`),
	{Kind: summary.KindResult, Turn: 1, Name: "Read", Text: "func readLines() { … }"},
	called("Bash", `{"command": "cd /w && go test ./pkg/import | tail -3"}`),
	{Kind: summary.KindResult, Turn: 1, Name: "Bash", Text: "Exit code 1\n--- FAIL: TestLastLine (0.00s)", Failed: true},
	message(summary.KindAssistant, 1, "Root cause: readLines drops a line without a newline, because bufio.Scanner is given a split function that waits for one.\n\n```go\nfor scanner.Scan() {}\n```"),
	message(summary.KindUser, 2, "Fix it in reader.go and keep the limit of 64 KiB a line."),
	message(summary.KindAssistant, 2, "Now let me edit the file."),
	called("Edit", `{"file_path": "/w/pkg/import/reader.go", "old_string": "a", "new_string": "b"}`),
	{Kind: summary.KindResult, Turn: 2, Name: "Edit", Text: "ok"},
	called("Bash", `{"command": "go test ./..."}`),
	{Kind: summary.KindResult, Turn: 2, Name: "Bash", Text: "ok"},
	message(summary.KindAssistant, 2, "The last line is kept now and the limit of 64 KiB is checked by TestLongLine."),
}

func TestConversationHoldsRequestsAndConclusionsInOrder(t *testing.T) {
	got := level1(t, session...)
	assert.Equal(t, strings.Join([]string{
		"User: The importer drops the last line of a file, please find out why.",
		"Assistant: Root cause: readLines drops a line without a newline, because bufio.Scanner is given a split function that waits for one.",
		"User: Fix it in reader.go and keep the limit of 64 KiB a line.",
		"Assistant: The last line is kept now and the limit of 64 KiB is checked by TestLongLine.",
	}, "\n"), got.Conversation)
}

func TestActionsAreCountedFromTheCalls(t *testing.T) {
	got := level1(t, session...)
	assert.Equal(t, `Used Bash (2), Read, Edit. Edited reader.go. Ran go test (2). Failed: Bash "--- FAIL: TestLastLine (0.00s)". Read reader.go.`, got.Actions)
}

func TestACallThatDidNotRunHasNotFailed(t *testing.T) {
	got := level1(t, message(summary.KindUser, 1, "Build it."), called("Bash", `{"command": "go build ./..."}`),
		summary.Entry{Kind: summary.KindResult, Turn: 1, Name: "Bash", Text: "<tool_use_error>Sibling tool call errored</tool_use_error>", Failed: true})
	assert.NotContains(t, got.Actions, "Failed")
}

func TestFirstAndNewestRequestAreAlwaysKept(t *testing.T) {
	var entries []summary.Entry
	add := func(kind summary.Kind, text string) {
		entries = append(entries, message(kind, len(entries)/2+1, text))
	}
	add(summary.KindUser, "Please add a cache.")
	for i := range 200 {
		add(summary.KindAssistant, strings.Repeat("The store of part"+string(rune('a'+i%26))+" fails since the root cause is wrong configuration of limits. ", 3))
		add(summary.KindUser, "Look at shard number "+strings.Repeat("x", i%40)+" and at its neighbours, then report all 12 problems of it.")
	}
	add(summary.KindUser, "Stop, use sqlite.")
	got := level1(t, entries...)
	assert.True(t, strings.HasPrefix(got.Conversation, "User: Please add a cache."), got.Conversation)
	assert.True(t, strings.HasSuffix(got.Conversation, "User: Stop, use sqlite."), got.Conversation)
}

func TestPeopleAreNamedInAChat(t *testing.T) {
	got := level1(t,
		summary.Entry{Kind: summary.KindUser, Name: "Ann", Turn: 1, Text: "Hey Bob! I moved to Lisbon last week and work for a bakery now."},
		summary.Entry{Kind: summary.KindAssistant, Name: "Bob", Turn: 1, Text: "Wow! My brother Tom lives in Lisbon too."},
	)
	assert.Equal(t, "Ann: I moved to Lisbon last week and work for a bakery now.\nBob: My brother Tom lives in Lisbon too.", got.Conversation)
	assert.Empty(t, got.Actions)
}

func TestFindingsDoNotRepeatTheConversation(t *testing.T) {
	ranges := [][]summary.Entry{session, slices.Concat(session, session)}
	for _, entries := range ranges {
		got := level1(t, entries...)
		for _, finding := range got.Findings {
			assert.NotContains(t, got.Conversation, strings.TrimSuffix(finding, "."))
		}
	}
}

func TestRangeWithoutMessagesSaysSo(t *testing.T) {
	got := level1(t, called("Bash", `{"command": "make"}`), summary.Entry{Kind: summary.KindResult, Name: "Bash", Text: "ok"})
	assert.Equal(t, "No messages; the work went on without a word.", got.Conversation)
	assert.Equal(t, "Used Bash. Ran make.", got.Actions)
}

func TestAnnouncementsAreQuotedOnlyWhenThereIsNothingElse(t *testing.T) {
	got := level1(t, message(summary.KindAssistant, 1, "Let me check the parser."), called("Read", `{}`))
	assert.Equal(t, "Assistant: Let me check the parser.", got.Conversation)
}

func TestOverlongSentenceIsCutAfterAWord(t *testing.T) {
	got := level1(t, message(summary.KindUser, 1, strings.Repeat("word ", 500)))
	assert.LessOrEqual(t, length(got.Conversation), maxSentence+len("User: "))
	assert.True(t, strings.HasSuffix(got.Conversation, "word…"), got.Conversation)
}

func TestEmptyInputIsAnError(t *testing.T) {
	_, _, err := Writer{}.Write(context.Background(), summary.Input{})
	assert.ErrorIs(t, err, ErrEmpty)
}

func TestChildrenAreConsolidated(t *testing.T) {
	first := level1(t, session...)
	second := level1(t,
		message(summary.KindUser, 3, "Now write the release notes for version 2.4."),
		called("Write", `{"file_path": "/w/NOTES.md", "content": "…"}`),
		called("Bash", `{"command": "go test ./..."}`),
		message(summary.KindAssistant, 3, "NOTES.md describes 3 fixes and the new limit."),
	)
	first.Findings = []string{"Files of 3 customers lost their last line in June."}
	second.Findings = []string{"Files of 3 customers lost their last line in June.", "Version 2.4 needs Go 1.26, since it uses iterators."}
	first.Topics, second.Topics = []string{"importer"}, []string{"release notes", "importer"}

	got := draftOf(t, summary.Input{Children: []summary.Draft{first, second}})
	assert.Equal(t, first.Conversation+"\n"+second.Conversation, got.Conversation)
	assert.Equal(t, `Used Bash (3), Read, Edit, Write. Edited reader.go, NOTES.md. Ran go test (3). Failed: Bash "--- FAIL: TestLastLine (0.00s)". Read reader.go.`, got.Actions)
	assert.Equal(t, []string{first.Findings[0], second.Findings[1]}, got.Findings)
	assert.Equal(t, []string{"importer", "release notes"}, got.Topics)
}

func TestActionsWrittenByAModelAreKept(t *testing.T) {
	got := draftOf(t, summary.Input{Children: []summary.Draft{
		{Conversation: "The user asked for a cache.", Actions: "The agent wrote cache.go. It ran the tests twice."},
		{Conversation: "The cache was reviewed.", Actions: "Used Bash (2). Ran go test (2)."},
	}})
	assert.Equal(t, "The user asked for a cache.\nThe cache was reviewed.", got.Conversation)
	assert.Equal(t, "Used Bash (2). Ran go test (2). The agent wrote cache.go. It ran the tests twice.", got.Actions)
}

func TestSameInputGivesTheSameDraftConcurrently(t *testing.T) {
	want := level1(t, session...)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				got, _, err := Writer{}.Write(context.Background(), summary.Input{Entries: session})
				assert.NoError(t, err)
				assert.Equal(t, want, got)
			}
		})
	}
	wg.Wait()
}

// sound fails the test unless a draft keeps the promises of doc.go.
func sound(t require.TestingT, d summary.Draft, limit int) {
	require.NotEmpty(t, strings.TrimSpace(d.Conversation))
	require.LessOrEqual(t, length(rendered(d)), limit)
	require.LessOrEqual(t, len(d.Findings), maxFindings)
	require.LessOrEqual(t, len(d.Topics), maxTopics)
	require.True(t, utf8.ValidString(rendered(d)))
	require.NotContains(t, rendered(d), "\x1b")
}

func TestDraftKeepsItsLimitAndIsRepeatable(t *testing.T) {
	text := rapid.OneOf(
		rapid.String(),
		rapid.StringMatching(`([A-Z][a-z_]{1,12}( [a-z0-9./_]{1,12}){0,14}[.!?:]\n?)*`),
		rapid.SampledFrom([]string{"yes", "", "```\ncode", "<a-b>x</a-b>", strings.Repeat("長い文", 40), "# Only a heading", `{"command": "go test ./... && git commit -m x"}`, `{"file_path": "/a/b_c.go"}`}),
	)
	entry := rapid.Custom(func(t *rapid.T) summary.Entry {
		kinds := []summary.Kind{summary.KindUser, summary.KindAssistant, summary.KindSystem, summary.KindCall, summary.KindResult}
		names := []string{"", "Bash", "Read", "Ann: x", "Bob"}
		return summary.Entry{
			Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Name: rapid.SampledFrom(names).Draw(t, "name"),
			Turn: rapid.IntRange(0, 3).Draw(t, "turn"), Text: text.Draw(t, "text"), Failed: rapid.Bool().Draw(t, "failed"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(50, 1_500).Draw(t, "limit")
		write := func(in summary.Input) summary.Draft {
			d, _, err := Writer{MaxChars: limit}.Write(context.Background(), in)
			require.NoError(t, err)
			again, _, _ := Writer{MaxChars: limit}.Write(context.Background(), in)
			require.Equal(t, d, again)
			sound(t, d, limit)
			return d
		}
		var children []summary.Draft
		for range rapid.IntRange(1, 4).Draw(t, "children") {
			children = append(children, write(summary.Input{Entries: rapid.SliceOfN(entry, 1, 20).Draw(t, "entries")}))
		}
		parent := write(summary.Input{Children: children})
		write(summary.Input{Children: append(children, parent)})
	})
}

func FuzzWrite(f *testing.F) {
	f.Add("Fix the bug.", "Done.", `{"command": "ls"}`, "Error: none", "User: x\nUser: y", "Used a (2), b and others. Ran x.")
	f.Add("\x1b[31mred\x1b[0m <a-b>", "[a](b", "{", "\xff", ": ", "Failed: x \"a (3)\" (2).")
	f.Fuzz(func(t *testing.T, user, assistant, arguments, result, conversation, actions string) {
		d := level1(t, message(summary.KindUser, 1, user), message(summary.KindAssistant, 1, assistant), called("Bash", arguments),
			summary.Entry{Kind: summary.KindResult, Name: "Bash", Text: result, Failed: true})
		sound(t, d, MaxChars)
		sound(t, draftOf(t, summary.Input{Children: []summary.Draft{d, {Conversation: conversation, Actions: actions, Findings: []string{user}, Topics: []string{"a"}}}}), MaxChars)
	})
}
