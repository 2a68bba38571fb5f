package main

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/testdata"
)

// count holds the counts of a conversation, once from mneme and once from the raw lines of
// the recording.
type count struct{ Messages, Turns, Calls, Results, Chars int }

func TestRecordedSessionsAreImportedExactly(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	dir := testdata.Dir(t)
	s := up(t, filepath.Join(t.TempDir(), "data"))
	for _, name := range []string{"claude_code", "pi", "codex", "gemini_cli", "openhands", "swe_agent"} {
		path := testdata.Recording(t, name, 2_000)
		want, lines := map[string]count{}, 0
		for e := range testdata.Lines[testdata.Event](t, path) {
			lines++
			c := want[e.ConversationID]
			switch e.Kind {
			case "message", "summary":
				c.Messages++
				c.Chars += len([]rune(e.Content))
				if e.Role == "user" {
					c.Turns++
				}
			case "tool_call":
				c.Calls++
			case "tool_result":
				c.Results++
			}
			want[e.ConversationID] = c
		}
		report := read[importer.Report](s, "import", path, "--wait", "--tenant", name)
		require.Equal(t, importer.Report{Read: lines, Published: lines, Conversations: len(want), LastSeq: report.LastSeq}, report, name)
		got := map[string]count{}
		for _, c := range read[[]httpapi.Conversation](s, "conversations", "list", "--tenant", name) {
			got[c.ID] = count{c.MessageCount, c.TurnCount, c.ToolCallCount, c.ToolResultCount, c.TotalChars}
		}
		require.Empty(t, cmp.Diff(want, got), name)
		t.Logf("%s: %d events, %d conversations, as counted independently", name, lines, len(want))
	}
	verified := read[httpapi.Verification](s, "verify")
	require.True(t, verified.Equal, "%+v", verified)

	native := filepath.Join(dir, "native", "claude-code")
	first := read[importer.Report](s, "import", native, "--wait")
	require.Zero(t, first.Rejected)
	second := read[importer.Report](s, "import", native, "--wait")
	require.Equal(t, importer.Report{Read: first.Read, Duplicate: first.Read, Conversations: first.Conversations, Redacted: first.Redacted}, second)
	t.Logf("native transcripts: %d events of %d sessions, all known the second time", first.Read, first.Conversations)
}
