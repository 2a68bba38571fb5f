package hook

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/hook/ring"
)

func TestWhatFitsAPromptNamesTheSame(t *testing.T) {
	for prompt, want := range map[string]bool{
		"uploadQueue.go fails again, look at it":                      true,
		"why does retryUpload loop forever?":                          true,
		"look at app/uploadQueue.go":                                  true,
		"the part that is lost when a lease expires during an upload": false, // shares words, but no name
		"go on":                            false,
		"what time is it in Lisbon today?": false,
		"please rewrite readQueue.go and its tests": false,
		"Bitte behebe den Fehler in uploadQueue.go": true,
		"修复uploadQueue.go中的问题":                      true, // no spaces around the name
		"uploadQueue.goのテストを修正してください":               true,
		"uploadQueue.go를 수정해 주세요":                   true,
		"修复上传队列中的问题":                                false,
	} {
		p := Passage{Text: "When the lease expires during an upload, retryUpload loses the last part.", Files: []string{"/src/app/uploadQueue.go"}}
		require.Equal(t, want, fits(namesOf(prompt), p), prompt)
	}
}

func TestOfALongPassageThePartAroundANameIsShown(t *testing.T) {
	names := namesOf("why does retryUpload loop forever?")
	long := strings.Repeat("wörter ohne namen ", 40)
	for text, want := range map[string]string{
		"retryUpload loops":                       "retryUpload loops",
		"retryUpload loops. " + long:              "retryUpload loops. wörter",
		long + "so retryUpload loops for ever.":   "namen so retryUpload loops for ever.",
		long + "says nothing of it":               "wörter ohne namen wörter",
		strings.Repeat("x", 500) + "/retryUpload": "… xxx", // a word that is longer than what is shown
	} {
		shown := line(Passage{Label: "[c, turn 1] User", Text: text}, names)
		require.True(t, utf8.ValidString(shown), shown)
		require.LessOrEqual(t, utf8.RuneCountInString(shown), maxChars+30)
		require.Contains(t, shown, want)
	}
}

func TestAConversationBelongsToTheAgentOfItsPrefix(t *testing.T) {
	for conversation, want := range map[string][2]string{
		"claude_code:1:2": {"claude-code", "1:2"},
		"codex:a":         {"codex", "a"},
	} {
		agent, session := Of(conversation)
		require.Equal(t, want, [2]string{agent.Name, session})
		require.Equal(t, conversation, agent.Prefix+session)
	}
	agent, _ := Of("aider:a")
	require.Nil(t, agent)
	for _, a := range Agents {
		require.NotEmpty(t, a.PromptEvent())
		require.Equal(t, asks, a.moment(a.PromptEvent(), ""))
	}
}

func TestEachAgentIsAnsweredInItsOwnForm(t *testing.T) {
	for agent, want := range map[string]string{
		"claude-code": `{"suppressOutput": true, "hookSpecificOutput": {"hookEventName": "E", "additionalContext": "<t>"}}`,
		"cursor":      `{"continue": true, "additional_context": "<t>"}`,
		"copilot-cli": `{"additionalContext": "<t>"}`,
		"openhands":   `{"additionalContext": "<t>"}`,
		"kimi-code":   `{"message": "<t>"}`,
		"hermes":      `{"context": "<t>"}`,
	} {
		require.JSONEq(t, want, string(Find(agent).Answer("E", "<t>")))
		require.Empty(t, Find(agent).Answer("E", ""))
	}
}

// OpenHands writes the id of a session with dashes to its hooks, and without them in the names of its folders.
func TestASessionHasTheConversationOfItsTranscript(t *testing.T) {
	require.Equal(t, "openhands:0123abcd", Find("openhands").conversation("0123-ab-cd"))
	require.Equal(t, "copilot_cli:0123-ab-cd", Find("copilot-cli").conversation("0123-ab-cd"))
}

// past is a memory that has something for each question.
type past struct{}

func (past) Project(context.Context, string, string, string, int) (Text, error) {
	return Text{"project", 7}, nil
}
func (past) Story(context.Context, string, string, int) (Text, error) { return Text{"story", 5}, nil }
func (past) Said(context.Context, string, string, string, string, int) ([]Passage, uint64, error) {
	return []Passage{{Conversation: "c", Seq: 3, Label: "[c]", Text: "see cart.go"}}, 9, nil
}

func TestAnAgentThatAcceptsNothingAtAStartIsShownItWithTheNextPrompt(t *testing.T) {
	d, a := NewDesk(nil), Find("kimi-code")
	take := func(e ring.Event, late bool) string {
		e.Session, e.Folder = "s", "/shop"
		text, err := d.Take(t.Context(), past{}, "default", a, e, late)
		require.NoError(t, err)
		return text
	}
	require.Empty(t, take(ring.Event{Name: "UserPromptSubmit", Prompt: "hello"}, false), "nothing has begun")
	require.Empty(t, take(ring.Event{Name: "SessionStart", Source: "startup"}, false))
	require.Empty(t, take(ring.Event{Name: "UserPromptSubmit", Prompt: "hello"}, true), "it is over")
	text := take(ring.Event{Name: "UserPromptSubmit", Prompt: "what is in cart.go"}, false)
	require.Contains(t, text, "\n\nproject\n\nEarlier sessions in this project, found by names in the prompt:\n- [c]: see cart.go")
	require.Contains(t, text, `seq="9"`)
	require.Empty(t, take(ring.Event{Name: "UserPromptSubmit", Prompt: "what is in cart.go"}, false), "both were shown")

	require.Empty(t, take(ring.Event{Name: "PostCompact"}, false))
	require.Contains(t, take(ring.Event{Name: "UserPromptSubmit", Prompt: "go on"}, false), "\n\nstory\n\nproject\n")
	require.Empty(t, take(ring.Event{Name: "SessionStart", Source: "resume"}, false))
	require.Contains(t, take(ring.Event{Name: "UserPromptSubmit", Prompt: "go on"}, false), "story")
	require.Empty(t, take(ring.Event{Name: "SessionStart", Source: "startup"}, true))
	require.Contains(t, take(ring.Event{Name: "UserPromptSubmit", Prompt: "go on"}, false), "project", "the server was away when the session began")
}

// continued is a past with a session that was continued as another one, which repeats its messages.
type continued struct{ past }

func (continued) Said(context.Context, string, string, string, string, int) ([]Passage, uint64, error) {
	return []Passage{
		{Conversation: "c", Seq: 1, Label: "[c]", Text: "see cart.go"}, {Conversation: "d", Seq: 2, Label: "[d]", Text: "see cart.go"}, {Conversation: "e", Seq: 3, Label: "[e]", Text: "cart.go is slow"},
	}, 9, nil
}

func TestWhatTwoConversationsRepeatIsShownOnce(t *testing.T) {
	t.Parallel()
	text, err := NewDesk(nil).Take(t.Context(), continued{}, "default", Find("claude-code"), ring.Event{Name: "UserPromptSubmit", Session: "s", Folder: "/shop", Prompt: "what is in cart.go"}, false)
	require.NoError(t, err)
	require.Contains(t, text, "- [c]: see cart.go\n- [e]: cart.go is slow")
	require.NotContains(t, text, "[d]")
}

// stories is a past whose stories say which conversation they are about.
type stories struct{ past }

func (stories) Story(_ context.Context, _, conversation string, _ int) (Text, error) {
	return Text{"story of " + conversation, 5}, nil
}

// Factory Droid continues in a new session when its user has it compact the context. Its subagents have sessions of their own.
func TestFactoryDroidSeesTheStoryOfTheSessionThatItHasCompacted(t *testing.T) {
	d, a := NewDesk(nil), Find("droid")
	take := func(e ring.Event) string {
		e.Name, e.Session, e.Folder = "SessionStart", "s", "/shop"
		text, err := d.Take(t.Context(), stories{}, "default", a, e, false)
		require.NoError(t, err)
		return text
	}
	require.Contains(t, take(ring.Event{Source: "compact", Previous: "r"}), "story of droid:r")
	require.Contains(t, take(ring.Event{Source: "compact"}), "story of droid:s")
	require.Contains(t, take(ring.Event{Source: "resume", Previous: "r"}), "story of droid:s")
	require.Empty(t, take(ring.Event{Source: "startup", Subagent: "r"}))
}

func TestAfterACompactionCopilotCLISeesItsStoryAtTheNextPrompt(t *testing.T) {
	d, a := NewDesk(nil), Find("copilot-cli")
	take := func(e ring.Event) string {
		e.Session, e.Folder = "s", "/shop"
		text, err := d.Take(t.Context(), past{}, "default", a, e, false)
		require.NoError(t, err)
		return text
	}
	require.Contains(t, take(ring.Event{Name: "SessionStart", Source: "new"}), "project")
	asks := ring.Event{Name: "UserPromptSubmit", Prompt: "what is in cart.go"}
	require.Contains(t, take(asks), "see cart.go")
	require.Empty(t, take(asks), "it was shown")
	require.Empty(t, take(ring.Event{Name: "PreCompact"}))
	text := take(asks)
	require.Contains(t, text, "story\n\nproject")
	require.Contains(t, text, "see cart.go", "and what the compaction has taken away again")
}

// failing is a past whose search can fail, after it has called meanwhile.
type failing struct {
	past
	err       error
	meanwhile func()
}

func (f *failing) Said(ctx context.Context, tenant, folder, except, prompt string, limit int) ([]Passage, uint64, error) {
	if f.meanwhile != nil {
		f.meanwhile()
	}
	list, seq, _ := f.past.Said(ctx, tenant, folder, except, prompt, limit)
	return list, seq, f.err
}

func TestAStartThatAPromptCouldNotBeShownIsShownWithTheNextOne(t *testing.T) {
	d, a := NewDesk(nil), Find("kimi-code")
	slow := &failing{err: context.DeadlineExceeded}
	take := func(e ring.Event) (string, error) {
		e.Session, e.Folder = "s", "/shop"
		return d.Take(t.Context(), slow, "default", a, e, false)
	}
	_, err := take(ring.Event{Name: "SessionStart", Source: "resume"})
	require.NoError(t, err)
	_, err = take(ring.Event{Name: "UserPromptSubmit", Prompt: "what is in cart.go"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	slow.err = nil
	text, err := take(ring.Event{Name: "UserPromptSubmit", Prompt: "go on"})
	require.NoError(t, err)
	require.Contains(t, text, "story\n\nproject")
}

func TestAPromptThatFailsLeavesTheStartOfACompaction(t *testing.T) {
	d, a := NewDesk(nil), Find("kimi-code")
	slow := &failing{err: context.DeadlineExceeded}
	take := func(e ring.Event) string {
		e.Session, e.Folder = "s", "/shop"
		text, _ := d.Take(t.Context(), slow, "default", a, e, false)
		return text
	}
	slow.meanwhile = func() { take(ring.Event{Name: "PostCompact"}) }
	take(ring.Event{Name: "SessionStart", Source: "startup"})
	require.Empty(t, take(ring.Event{Name: "UserPromptSubmit", Prompt: "what is in cart.go"}))
	slow.err, slow.meanwhile = nil, nil
	require.Contains(t, take(ring.Event{Name: "UserPromptSubmit", Prompt: "go on"}), "story")
}

func TestTheEndOfATurnIsTold(t *testing.T) {
	for _, c := range []struct {
		agent             string
		event             ring.Event
		late              bool
		session, subagent Turn
	}{
		{"claude-code", ring.Event{Name: "Stop"}, false, Ended, Goes},
		{"claude-code", ring.Event{Name: "SessionEnd"}, false, Ended, Goes},
		{"claude-code", ring.Event{Name: "Stop"}, true, Goes, Goes},
		{"claude-code", ring.Event{Name: "Stop", Subagent: "a"}, false, Goes, Goes},
		{"claude-code", ring.Event{Name: "SubagentStop", Subagent: "a"}, false, Goes, Ended},
		{"claude-code", ring.Event{Name: "SubagentStop", Subagent: "a"}, true, Goes, Goes},
		{"claude-code", ring.Event{Name: "UserPromptSubmit"}, false, Began, Goes},
		{"claude-code", ring.Event{Name: "SessionStart", Source: "compact"}, false, Began, Goes},
		{"claude-code", ring.Event{Name: "PostToolUse"}, false, Goes, Goes},
		{"gemini-cli", ring.Event{Name: "AfterAgent"}, false, Ended, Goes},
	} {
		session, subagent := Find(c.agent).turns(c.event, c.late)
		require.Equal(t, [2]Turn{c.session, c.subagent}, [2]Turn{session, subagent}, "%+v", c)
	}
}

func TestMemoryIsBoundedAndKeepsTheNewest(t *testing.T) {
	m := memory{}
	at := func(n int) place { return place{"t", "claude-code", fmt.Sprint(n)} }
	for n := range maxSessions + 10 {
		m.fired(at(n), Fired{Session: fmt.Sprint(n)})
	}
	list := m.list("t")
	require.Len(t, list, maxSessions)
	require.Empty(t, m.list("other"))
	require.False(t, m.was(at(0), passage{"c", 1}))

	newest := at(maxSessions + 9)
	for n := range maxShown + 1 {
		require.True(t, m.claim(newest, passage{"c", uint64(n)}))
	}
	require.False(t, m.was(newest, passage{"c", 0}), "the oldest is forgotten")
	require.True(t, m.was(newest, passage{"c", maxShown}))
	m.forget(newest)
	require.False(t, m.was(newest, passage{"c", maxShown}))
}

func TestOfEventsAtOnceOnlyOneShowsAPassage(t *testing.T) {
	m := memory{}
	var shown atomic.Int64
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if m.claim(place{"t", "claude-code", "s"}, passage{"c", 7}) {
				shown.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, shown.Load())
}

// bell notes the files for which it was rung.
type bell struct{ paths []string }

func (b *bell) Ring(_, _, _, path string, _ Turn) { b.paths = append(b.paths, path) }

// Cursor's hooks name a file that lacks the results of calls.
func TestADoorbellNamesNoFileThatIsNotRead(t *testing.T) {
	for agent, want := range map[string]string{"cursor": "", "claude-code": "/t.jsonl"} {
		var rung bell
		_, err := NewDesk(&rung).Take(t.Context(), past{}, "default", Find(agent), ring.Event{Name: "sessionStart", Session: "s", Transcript: "/t.jsonl"}, false)
		require.NoError(t, err)
		require.Equal(t, []string{want}, rung.paths, agent)
	}
}
