package projects

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph/storetest"
)

// session adds what a user and an agent say in turn.
func session(h *storetest.History, id string, said ...string) {
	h.Add(id, &events.ConversationStarted{Project: "p", Cwd: "/w"})
	for i, text := range said {
		h.Add(id, &events.MessageCreated{MessageID: fmt.Sprint(i), Role: []string{"user", "assistant"}[i%2], Content: text})
	}
}

func contextOf(t *testing.T, h *storetest.History) string {
	c, err := Build(t.Context(), Source{Projects: openStore(t, t.TempDir(), h)}, Request{Tenant: "t", Project: "p"})
	require.NoError(t, err)
	return c.Markdown()
}

func TestAnEndThatSaysLittleComesWithTheReportBefore(t *testing.T) {
	t.Parallel()
	report := "The client now retries an upload three times, with a pause that doubles, and " + strings.Repeat("says so in its log ", 4)
	h := storetest.NewHistory()
	session(h, "c1", "Retry uploads.", "I look at the client first. "+report, "Then do it.", report, "Commit it.", "Committed.")
	require.Contains(t, contextOf(t, h), "  Ended: Committed.\n  Before: The client now retries")

	h = storetest.NewHistory()
	session(h, "c1", "Retry uploads.", report, "And downloads?", "Downloads are not retried: "+report)
	require.NotContains(t, contextOf(t, h), "Before:")
}

func TestATextAfterWhichTheAgentWorkedIsNoEnd(t *testing.T) {
	t.Parallel()
	h := storetest.NewHistory()
	session(h, "c1", "Retry uploads.", "Now let me run the tests:")
	h.Add("c1", &events.ToolCalled{ToolCallID: "k", ToolName: "Bash", Arguments: []byte(`{"command":"make test"}`)})
	text := contextOf(t, h)
	require.Contains(t, text, "  Last said: Now let me run the tests:")
	require.NotContains(t, text, "Ended:")
}

// Most calls of a search, a subagent or another server leave no file and no command behind.
func TestATextAfterWhichTheAgentOnlySearchedIsNoEnd(t *testing.T) {
	t.Parallel()
	report := "The client now retries an upload three times, " + strings.Repeat("and says so in its log ", 5)
	h := storetest.NewHistory()
	session(h, "c1", "Retry uploads.", report, "And downloads?", "I will look for downloads in the client.")
	h.Add("c1", &events.ToolCalled{ToolCallID: "k", ToolName: "Task", Arguments: []byte(`{"prompt":"find downloads"}`)})
	text := contextOf(t, h)
	require.Contains(t, text, "  Last said: I will look for downloads")
	require.Contains(t, text, "  Before: The client now retries", "the turn before has an answer")

	h.Add("c1", &events.MessageCreated{MessageID: "long", Role: "assistant", Content: "Now I will " + strings.Repeat("look for downloads and ", 8)})
	h.Add("c1", &events.ToolCalled{ToolCallID: "l", ToolName: "Task", Arguments: []byte(`{"prompt":"find downloads"}`)})
	h.Add("c1", &events.MessageCreated{MessageID: "2u", Role: "user", Content: "Stop. Commit."})
	h.Add("c1", &events.MessageCreated{MessageID: "2a", Role: "assistant", Content: "Committed."})
	text = contextOf(t, h)
	require.Contains(t, text, "  Ended: Committed.\n  Before: The client now retries", "an announcement is no report")
}

// The agents of OpenHands and SWE-agent end each task with such a call.
func TestACallThatEndsTheWorkIsNoWork(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"finish", "submit"} {
		h := storetest.NewHistory()
		report := "The client now retries an upload three times, " + strings.Repeat("and says so in its log ", 5)
		session(h, "c1", "Retry uploads.", report)
		h.Add("c1", &events.ToolCalled{ToolCallID: "k", ToolName: tool, Arguments: []byte(`{}`)})
		require.Contains(t, contextOf(t, h), "  Ended: The client now retries")
		h.Add("c1", &events.MessageCreated{MessageID: "2u", Role: "user", Content: "Commit."})
		h.Add("c1", &events.MessageCreated{MessageID: "2a", Role: "assistant", Content: "Committed."})
		require.Contains(t, contextOf(t, h), "  Ended: Committed.\n  Before: The client now retries")
	}
}

func TestAnAnswerIsShownWithoutItsBlocksOfCode(t *testing.T) {
	t.Parallel()
	h := storetest.NewHistory()
	session(h, "c1", "Retry uploads.", "The client retries uploads three times:\n```go\nfor range 3 {\n}\n```\nThe pause between them doubles.\n```go\npause *= 2")
	require.Contains(t, contextOf(t, h), "  Ended: The client retries uploads three times: … The pause between them doubles. …\n")

	h = storetest.NewHistory()
	session(h, "c1", "Show the retry.", "```go\nfor range 3 {\n}\n```")
	require.Contains(t, contextOf(t, h), "  Ended: ```go for range 3 {", "there is nothing else")
}

func TestABlockOfCodeThatWasAskedForIsShown(t *testing.T) {
	t.Parallel()
	h := storetest.NewHistory()
	session(h, "c1", "Write a commit message.", "Here is a message for the commit with the new limit:\n```\nRetry uploads three times\n```\n")
	require.Contains(t, contextOf(t, h), "  Ended: Here is a message for the commit with the new limit: ``` Retry uploads three times ```\n")
}

func TestWhatOnlyLeadsToAHeadingIsLeftOut(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"All tests pass. Here is what I did:\n\n## Changes\n\n- `retry.go` retries uploads three times":     "All tests pass. ## Changes - `retry.go` retries uploads three times",
		"重试已完成。更改如下：\n\n---\n## 更改\n- `retry.go` 现在重试三次上传，每次暂停时间加倍，并写入日志，下载不受影响，测试已通过":                      "重试已完成。 ## 更改 - `retry.go` 现在重试三次上传，每次暂停时间加倍，并写入日志，下载不受影响，测试已通过",
		"Uploads are retried. I moved the loop into `retry.go` and call it from:\n- upload.go\n- chunks.go": "Uploads are retried. I moved the loop into `retry.go` and call it from: - upload.go - chunks.go",
		"| When | Retries |\n|------|:-------:|\n| an upload ends early | three, with a pause |":            "| When | Retries | | an upload ends early | three, with a pause |",
		"## Summary\nI made all uploads robust:\n### 1. `retry.go`\nThey are retried three times.":          "## Summary I made all uploads robust: ### 1. `retry.go` They are retried three times.",
		"Found **3 bugs** in how ids are compared:\n## Changes\nThe id is now the whole one everywhere.":    "Found **3 bugs** in how ids are compared: ## Changes The id is now the whole one everywhere.",
		"Done:\n## Retries\nThree.": "Done: ## Retries Three.",
	} {
		h := storetest.NewHistory()
		session(h, "c1", "Retry uploads.", answer)
		require.Contains(t, contextOf(t, h), "  Ended: "+want+"\n")
	}
}

func TestAFolderIsNotListedAsAFile(t *testing.T) {
	t.Parallel()
	h := storetest.NewHistory()
	session(h, "c1", "Retry uploads.", "It is done.")
	for i, file := range []string{"/w/pkg/client", "/w/pkg/client/retry.go", "/w/pkg/clients"} {
		h.Add("c1", &events.ToolCalled{ToolCallID: fmt.Sprint("f", i), ToolName: "Read", Arguments: []byte(fmt.Sprintf(`{"file_path":%q}`, file))})
	}
	require.Contains(t, contextOf(t, h), "- pkg/: clients\n- pkg/client/: retry.go\n")
}

func TestCommandsAndFilesOfOneSessionsTrialsAreLeftOut(t *testing.T) {
	t.Parallel()
	h := storetest.NewHistory()
	for _, id := range []string{"c1", "c2"} {
		session(h, id, "Retry uploads.", "It is done.")
		for i, command := range []string{"make test", "/tmp/app enable", "python3 /tmp/try.py", "go build -o /tmp/app ./cmd/app"} {
			h.Add(id, &events.ToolCalled{ToolCallID: fmt.Sprint("b", i), ToolName: "Bash", Arguments: []byte(fmt.Sprintf(`{"command":%q}`, command))})
		}
		for i, file := range []string{"/w/retry.go", "/home/ada/notes.md", "/home/ada/plans/" + id + ".md"} {
			h.Add(id, &events.ToolCalled{ToolCallID: fmt.Sprint("f", i), ToolName: "Read", Arguments: []byte(fmt.Sprintf(`{"file_path":%q}`, file))})
		}
	}
	text := contextOf(t, h)
	for _, shown := range []string{"make test", "go build -o /tmp/app ./cmd/app", "retry.go", "notes.md"} {
		require.Contains(t, text, shown)
	}
	for _, left := range []string{"enable", "try.py", "plans"} {
		require.NotContains(t, text, left)
	}
}

func TestFilesOfASessionWithoutAFolderAreShown(t *testing.T) {
	t.Parallel()
	h := storetest.NewHistory()
	h.Add("c1", &events.ConversationStarted{Project: "p"})
	h.Add("c1", &events.MessageCreated{MessageID: "m", Role: "user", Content: "Retry uploads."})
	h.Add("c1", &events.ToolCalled{ToolCallID: "k", ToolName: "Read", Arguments: []byte(`{"file_path":"/w/retry.go"}`)})
	require.Contains(t, contextOf(t, h), "retry.go")
}

func TestAWithdrawnLineIsNotShownOfAnotherConversation(t *testing.T) {
	t.Parallel()
	const line = "Always use tabs in this project."
	h := storetest.NewHistory()
	session(h, "twice", "Retry uploads.", "It is done.", line, "I do.")
	session(h, "c1", "Retry downloads.", "It is done.", line, "I do.")
	require.Contains(t, contextOf(t, h), "User: "+line)
	h.Add("c1", &events.LessonWithdrawn{EventSource: "storetest", EventID: fmt.Sprint("e", h.Next-2)})
	require.NotContains(t, contextOf(t, h), "User: "+line)
	h.Add("twice", &events.MessageCreated{MessageID: "again", Role: "user", Content: line})
	require.Contains(t, contextOf(t, h), "User: "+line, "it was taught again")
}

// One event withdraws all that a summary found, which may repeat what the user taught. Nobody named that line.
func TestALineOfTheUserStaysWhenASummaryThatRepeatsItIsWithdrawn(t *testing.T) {
	t.Parallel()
	const line, wrong = "Always use tabs in this project.", "The retry limit is eleven."
	h := storetest.NewHistory()
	session(h, "c1", "Retry downloads.", "It is done.", line, "I do.")
	h.Add("c1", &events.SummaryWritten{SummaryID: "s", Level: 1, FirstSeq: 1, LastSeq: 5, FirstTurn: 1, LastTurn: 2, Conversation: "Retries.", Method: "llm", Findings: []string{wrong, line}})
	require.Contains(t, contextOf(t, h), "Found: "+wrong)
	require.Contains(t, contextOf(t, h), "User: "+line)
	h.Add("c1", &events.LessonWithdrawn{EventSource: "storetest", EventID: fmt.Sprint("e", h.Next-1)})
	require.NotContains(t, contextOf(t, h), wrong)
	require.Contains(t, contextOf(t, h), "User: "+line)
}

func insight(findings ...string) *events.InsightWritten {
	list, _ := json.Marshal(findings) // texts always marshal
	return &events.InsightWritten{Task: "session", Model: "m", Answer: map[string]json.RawMessage{"main_topic": json.RawMessage(`"Retries"`), "key_findings": list, "action_items": json.RawMessage(`[]`)}}
}

// A model reads a session again when it has grown, and an import into another mneme has it summarized there again.
func TestAFindingThatWasWithdrawnStaysHiddenWhenItIsFoundAgain(t *testing.T) {
	t.Parallel()
	const wrong, right = "The retry limit is eleven.", "The pause between retries doubles."
	h := storetest.NewHistory()
	session(h, "c1", "Retry downloads.", "It is done.")
	h.Add("c1", insight(wrong))
	require.Contains(t, contextOf(t, h), "Found: "+wrong)
	h.Add("c1", &events.LessonWithdrawn{EventSource: "storetest", EventID: fmt.Sprint("e", h.Next-1)})
	h.Add("c1", &events.MessageCreated{MessageID: "more", Role: "user", Content: "And uploads?"})
	h.Add("c1", insight(wrong, right))
	text := contextOf(t, h)
	require.Contains(t, text, "Found: "+right)
	require.NotContains(t, text, wrong)

	session(h, "c2", "Retry deletions.", "It is done.")
	h.Add("c2", insight(wrong))
	require.Contains(t, contextOf(t, h), "Found: "+wrong, "another session found it later")
}

// The findings are read in another mneme, which then read the session itself before the withdrawal arrives there.
func TestAFindingThatWasFoundAgainBeforeItsWithdrawalIsHidden(t *testing.T) {
	t.Parallel()
	const wrong, right, line = "The retry limit is eleven.", "The pause between retries doubles.", "Always use tabs in this project."
	summary := func(id string, findings ...string) *events.SummaryWritten {
		return &events.SummaryWritten{SummaryID: id, Level: 1, FirstSeq: 1, LastSeq: 5, FirstTurn: 1, LastTurn: 2, Conversation: "Retries.", Method: "llm", Findings: findings}
	}
	for name, again := range map[string][2]events.Payload{
		"by another insight": {insight(wrong, line), insight(wrong, right, line)}, "by another summary": {summary("a", wrong, line), summary("b", wrong, right, line)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := storetest.NewHistory()
			session(h, "c1", "Retry downloads.", "It is done.", line, "I do.")
			found := h.Add("c1", again[0])
			h.Add("c1", again[1])
			require.Contains(t, contextOf(t, h), "Found: "+wrong)
			h.Add("c1", &events.LessonWithdrawn{EventSource: "storetest", EventID: fmt.Sprint("e", found)})
			text := contextOf(t, h)
			require.Contains(t, text, "Found: "+right)
			require.Contains(t, text, "User: "+line)
			require.NotContains(t, text, wrong)
		})
	}
}

// Whoever withdraws one of several lines sees those of the event that are shown. A newer conversation that repeats another of them
// is shown in its place, and is not meant.
func TestALineThatWasRepeatedLaterStaysWhenAnotherLineOfTheFirstEventIsWithdrawn(t *testing.T) {
	t.Parallel()
	const line, wrong = "Always use tabs in this project.", "Never push to the main branch."
	h := storetest.NewHistory()
	session(h, "c1", "Retry downloads.", "It is done.", line+" "+wrong, "I do.")
	taught := h.Next - 2
	session(h, "c2", "Retry uploads.", "It is done.", line, "I do.")
	require.Contains(t, contextOf(t, h), "[c2, turn 2] User: "+line)
	require.Contains(t, contextOf(t, h), "[c1, turn 2] User: "+wrong)
	h.Add("c1", &events.LessonWithdrawn{EventSource: "storetest", EventID: fmt.Sprint("e", taught)})
	require.NotContains(t, contextOf(t, h), "User: "+wrong)
	require.Contains(t, contextOf(t, h), "[c2, turn 2] User: "+line)
}
