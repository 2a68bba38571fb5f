package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/hook"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
)

// hook sends an event of Claude Code and returns the text that it is answered with.
func (b *bundle) hook(query string, event map[string]string) string {
	b.t.Helper()
	body, err := json.Marshal(event)
	require.NoError(b.t, err)
	var raw string
	b.do(http.StatusOK, http.MethodPost, "/v1/hooks/claude-code"+query, map[string]string{"Content-Type": "application/json"}, body, &raw)
	if raw == "" {
		return ""
	}
	var answer struct {
		Specific struct{ HookEventName, AdditionalContext string } `json:"hookSpecificOutput"`
	}
	require.NoError(b.t, json.Unmarshal([]byte(raw), &answer), raw)
	require.Equal(b.t, event["hook_event_name"], answer.Specific.HookEventName)
	return answer.Specific.AdditionalContext
}

// remembered publishes what an earlier session said, and waits until it can be found.
func (b *bundle) remembered(conversation, text string) {
	b.t.Helper()
	seq := b.batch(conversation, &events.ConversationStarted{Cwd: "/src/app"}, message("u", "user", text), message("a", "assistant", "Done: "+text))
	b.get(fmt.Sprintf("/v1/projects?at_least=%d", seq), nil)
	b.get(fmt.Sprintf("/v1/conversations?at_least=%d", seq), nil)
}

func prompt(session, text string) map[string]string {
	return map[string]string{"hook_event_name": "UserPromptSubmit", "session_id": session, "cwd": "/src/app", "prompt": text}
}

func TestAPromptIsAnsweredWithWhatFitsAndNeverTwiceWithAPassage(t *testing.T) {
	b := setup(t)
	b.remembered("claude_code:old", "the retry in uploadQueue.go loses the last part when the lease expires")
	require.Empty(t, b.hook("", prompt("new", "what time is it in Lisbon today?")))
	text := b.hook("", prompt("new", "uploadQueue.go fails again, look at it"))
	require.Contains(t, text, "loses the last part")
	require.Contains(t, text, "<mneme-context id=")
	require.Equal(t, 1, strings.Count(text, "loses the last part"), "one passage of a conversation")
	require.LessOrEqual(t, utf8.RuneCountInString(text), hook.MaxAtPrompt)
	other := b.hook("", prompt("new", "uploadQueue.go fails again, look at it"))
	require.Contains(t, other, "loses the last part")
	require.NotEqual(t, text, other)
	require.Empty(t, b.hook("", prompt("new", "uploadQueue.go fails again, look at it")), "both passages were shown")
	require.NotEmpty(t, b.hook("", prompt("third", "uploadQueue.go fails again, look at it")))
}

// An id is any text, and the line that names it is mneme's own.
func TestAnIdOfAConversationBeginsNoLineInWhatAPromptIsAnsweredWith(t *testing.T) {
	b := setup(t)
	b.remembered("old\n\n# Obey", "the retry in uploadQueue.go loses the last part when the lease expires")
	text := b.hook("", prompt("new", "uploadQueue.go fails again, look at it"))
	require.Contains(t, text, "loses the last part")
	require.NotContains(t, text, "\n# Obey")
}

func TestASessionIsNeverToldWhatItSaidItself(t *testing.T) {
	b := setup(t)
	b.remembered("claude_code:own", "the retry in uploadQueue.go loses the last part when the lease expires")
	require.Empty(t, b.hook("", prompt("own", "uploadQueue.go fails again, look at it")))
}

// The agent has it in its context.
func TestASessionIsNotToldWhatItInherits(t *testing.T) {
	b := setup(t)
	b.remembered("claude_code:old", "the retry in uploadQueue.go loses the last part when the lease expires")
	seq := b.batch("claude_code:fork", &events.ConversationStarted{Cwd: "/src/app", BranchedFrom: &events.BranchedAt{ConversationID: "claude_code:old", MessageID: "a"}},
		message("f", "user", "Try another way"))
	b.get(fmt.Sprintf("/v1/conversations?at_least=%d", seq), nil)
	require.Empty(t, b.hook("", prompt("fork", "uploadQueue.go fails again, look at it")))
	b.remembered("claude_code:other", "uploadQueue.go also keeps the lease too long")
	text := b.hook("", prompt("fork", "uploadQueue.go fails again, look at it"))
	require.Contains(t, text, "keeps the lease too long")
	require.NotContains(t, text, "loses the last part")
}

func TestANewSessionSeesItsProjectAndAResumedOneItsStoryToo(t *testing.T) {
	b := setup(t)
	start := map[string]string{"hook_event_name": "SessionStart", "session_id": "own", "cwd": "/src/app", "source": "startup"}
	require.Empty(t, b.hook("", start))
	b.remembered("claude_code:old", "the canary of the older session")
	b.remembered("claude_code:own", "the canary of this session")
	text := b.hook("", start)
	require.Contains(t, text, "canary of the older")
	require.NotContains(t, text, "canary of this")
	for _, source := range []string{"resume", "compact"} {
		start["source"] = source
		text = b.hook("", start)
		require.Contains(t, text, "canary of the older")
		require.Contains(t, text, "canary of this")
		require.LessOrEqual(t, utf8.RuneCountInString(text), hook.MaxAtStart)
	}
	require.Empty(t, b.hook("?late=true", start))
	start["agent_id"] = "a1"
	require.Empty(t, b.hook("", start), "inside of a subagent")
}

// Codex records what it tells its model as messages of a developer, and tells it again by itself after a compaction.
func TestTheStoryOfASessionHasNothingThatTheAgentsProgramSaid(t *testing.T) {
	b := setup(t)
	list := []events.Payload{&events.ConversationStarted{Cwd: "/src/app"}, message("u", "user", "the canary of the user")}
	for i := range 40 { // more than a page of a transcript
		told := message(fmt.Sprint("d", i), "system", "permissions and sandbox "+strings.Repeat("x", 100))
		told.Origin = "meta"
		list = append(list, told)
	}
	env := message("e", "user", "<environment_context>folders</environment_context>")
	news := message("n", "user", "the canary of a subagent")
	news.Origin, news.Speaker = "meta", "reviewer"
	seq := b.batch("claude_code:own", append(list, env, news, message("a", "assistant", "the canary of the agent"))...)
	b.get(fmt.Sprintf("/v1/projects?at_least=%d", seq), nil)
	b.get(fmt.Sprintf("/v1/conversations?at_least=%d", seq), nil)
	text := b.hook("", map[string]string{"hook_event_name": "SessionStart", "session_id": "own", "cwd": "/src/app", "source": "compact"})
	require.Contains(t, text, "canary of the user")
	require.Contains(t, text, "canary of a subagent")
	require.Contains(t, text, "canary of the agent")
	require.NotContains(t, text, "sandbox")
	require.NotContains(t, text, "environment_context")
}

func TestTheSessionsWhoseHooksFiredAreListed(t *testing.T) {
	b := setup(t)
	for range 2 {
		b.hook("", map[string]string{"hook_event_name": "Stop", "session_id": "s", "transcript_path": "/t.jsonl"})
	}
	var listed struct{ Sessions []hook.Fired }
	b.get("/v1/hooks", &listed)
	require.Len(t, listed.Sessions, 1)
	require.Equal(t, 2, listed.Sessions[0].Events)
	require.Equal(t, "/t.jsonl", listed.Sessions[0].Transcript)
	b.get("/v1/hooks?tenant=other", &listed)
	require.Empty(t, listed.Sessions)
}

func TestABodyThatIsNoEventOfAHookIsRefused(t *testing.T) {
	b := setup(t)
	p := b.refused(http.StatusUnprocessableEntity, http.MethodPost, "/v1/hooks/codex", map[string]string{"Content-Type": "application/json"}, `{"session_id":"s"}`)
	require.Contains(t, p.Detail, "hook_event_name")
	b.refused(http.StatusUnprocessableEntity, http.MethodPost, "/v1/hooks/nobody", map[string]string{"Content-Type": "application/json"}, `{}`)
}

// silent are read models whose store does not answer.
type silent struct{ httpapi.Models }

func (silent) Graph(ctx context.Context) (view.Pinned[graph.Reader], error) {
	<-ctx.Done()
	return view.Pinned[graph.Reader]{}, ctx.Err()
}

func TestAnAgentIsNotHeldUpWhenTheReadModelsDoNotAnswer(t *testing.T) {
	rung := make(chan string, 1)
	f := setupFront(t, func(c *httpapi.Config) { c.Models, c.Doorbell = silent{c.Models}, doorbell(rung) })
	body, err := json.Marshal(map[string]string{"hook_event_name": "SessionStart", "session_id": "s", "cwd": "/src/app", "transcript_path": "/t.jsonl"})
	require.NoError(t, err)
	response, err := http.Post(f.HTTPURL()+"/v1/hooks/claude-code", "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s", text)
	require.Empty(t, text)
	require.Equal(t, "/t.jsonl", <-rung)
}

type doorbell chan string

func (d doorbell) Ring(_, _, _, path string, _ hook.Turn) { d <- path }
