package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/testdata"
	"mneme.dev/mneme/internal/transcript"
)

// ofRecording is the number of events of a recording that are checked.
const ofRecording = 3_000

// counts are the totals of a conversation's lists.
type counts struct{ Messages, Steps, Calls, Results, Chars int }

func TestListsAddUpToTheConversationsCounts(t *testing.T) {
	b := setup(t)
	agents := []string{"pi", "codex", "gemini_cli", "openhands", "swe_agent"}
	if !testing.Short() {
		agents = append(agents, "claude_code")
	}
	for _, agent := range agents {
		found, err := transcript.Find([]string{testdata.Recording(t, agent, ofRecording)})
		require.NoError(t, err)
		report, err := importer.Import(t.Context(), b.Log, found, importer.Options{Tenant: agent, Format: "neutral"})
		require.NoError(t, err)
		conversations := all[httpapi.Conversation](b, fmt.Sprintf("/v1/conversations?limit=7&wait_ms=60000&at_least=%d&tenant=%s", report.LastSeq, agent), "conversations")
		require.Len(t, conversations, report.Conversations)
		begin, turns, orphans := time.Now(), 0, 0
		for _, c := range conversations {
			of := func(list string) string {
				return "/v1/conversations/" + url.PathEscape(c.ID) + "/" + list + "?tenant=" + agent
			}
			want := counts{c.MessageCount, c.StepCount, c.ToolCallCount, c.ToolResultCount, c.TotalChars}
			var sum, inSteps counts
			numbered := map[int]int{} // calls by turn
			for _, turn := range all[httpapi.Turn](b, of("turns")+"&limit=3", "turns") {
				sum = counts{sum.Messages + turn.MessageCount, sum.Steps + turn.StepCount, sum.Calls + turn.ToolCallCount, sum.Results + turn.ToolResultCount, sum.Chars + turn.TotalChars}
				require.NotContains(t, numbered, turn.Number)
				numbered[turn.Number] = turn.ToolCallCount
				turns++
			}
			require.Equal(t, want, sum, "turns of %s", c.ID)

			seen := map[string]bool{}
			for _, s := range all[httpapi.Step](b, of("steps")+"&limit=100&order=oldest", "steps") {
				if s.Message != nil {
					inSteps.Steps++
				}
				for _, call := range s.ToolCalls {
					require.False(t, seen[call.ToolCallID], "twice: %s", call.ToolCallID)
					seen[call.ToolCallID] = true
					numbered[s.Turn]--
					if inSteps.Calls++; call.Result != nil {
						inSteps.Results++
					}
				}
				inSteps.Results += len(s.Results)
				orphans += len(s.Results)
			}
			require.Equal(t, counts{Steps: c.StepCount, Calls: c.ToolCallCount, Results: c.ToolResultCount}, inSteps, "steps of %s", c.ID)
			for turn, left := range numbered {
				require.Zero(t, left, "calls of turn %d of %s that are in no step of it", turn, c.ID)
			}

			for _, call := range all[httpapi.ToolCall](b, of("tool-calls")+"&limit=100", "tool_calls") {
				require.True(t, seen[call.ToolCallID])
				delete(seen, call.ToolCallID)
			}
			require.Empty(t, seen, "calls of steps that are not listed")
			require.Len(t, all[httpapi.Message](b, of("messages")+"&limit=50&include_tool_calls=true", "messages"), c.MessageCount)
		}
		t.Logf("%s: %d conversations, %d turns, %d results without a call, in %v", agent, len(conversations), turns, orphans, time.Since(begin).Round(time.Millisecond))
	}
	if !testing.Short() {
		t.Run("sessions are found by the files that they edited", func(t *testing.T) { foundByFiles(t, b, "claude_code") })
	}
}

func foundByFiles(t *testing.T, b *bundle, agent string) {
	edits, editors := map[[2]string]string{}, map[string]map[string]bool{} // by call; by path
	for e := range testdata.Lines[testdata.Event](t, testdata.Recording(t, agent, ofRecording)) {
		switch {
		case e.Kind == "tool_call" && (e.ToolName == "Edit" || e.ToolName == "Write"):
			var arguments struct {
				Path string `json:"file_path"`
			}
			require.NoError(t, json.Unmarshal(e.Arguments, &arguments))
			edits[[2]string{e.ConversationID, e.ID}] = arguments.Path
		case e.Kind == "tool_result" && len(e.ParentIDs) > 0 && e.Success != nil && *e.Success:
			if path := edits[[2]string{e.ConversationID, e.ParentIDs[0]}]; path != "" {
				if editors[path] == nil {
					editors[path] = map[string]bool{}
				}
				editors[path][e.ConversationID] = true
			}
		}
	}
	require.Greater(t, len(editors), 40)
	begin := time.Now()
	for file, sessions := range editors {
		for _, asked := range []string{file, path.Join(path.Base(path.Dir(file)), path.Base(file))} {
			_, list, more := b.aboutCode("limit=100&tenant=" + agent + "&file=" + url.QueryEscape(asked))
			require.False(t, more, asked)
			wrote := map[string]bool{}
			for _, c := range list {
				for _, a := range c.Accesses {
					require.True(t, a.Path == file || asked != file && strings.HasSuffix(a.Path, "/"+asked), "%s is not %s", a.Path, asked)
					wrote[c.ID] = wrote[c.ID] || a.Path == file && a.Kind == "write"
				}
			}
			for session := range sessions {
				require.True(t, wrote[session] || asked != file, "%s edited %s", session, file)
				require.Contains(t, wrote, session, "%s edited %s", session, file)
			}
		}
	}
	t.Logf("%d files that sessions edited, %s a question", len(editors), time.Since(begin)/time.Duration(2*len(editors)))
}
