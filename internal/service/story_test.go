package service_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest/llmtest"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/project"
)

// telling are settings under which a session is finished at once and every three make a chapter.
func telling(endpoint *llmtest.Endpoint) func(s *settings.Summaries) {
	return func(s *settings.Summaries) {
		s.Writer, s.URL, s.Name, s.Timeout, s.Titles, s.StoryAfter = "openai", endpoint.URL(), "small", time.Minute, false, time.Millisecond
		s.L1Percent = 100 // no summaries of the sessions themselves
	}
}

// storyteller answers what the requested form asks for.
func storyteller(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Format struct {
			Schema struct{ Name string } `json:"json_schema"`
		} `json:"response_format"`
		Messages []struct{ Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		panic(err)
	}
	answer := `{"main_topic":"the flaky upload","key_findings":["Retries wait for a clock."],"action_items":["Raise the limit\n## of retries."]}`
	if request.Format.Schema.Name == "write_summary" {
		said := []string{}
		for _, canary := range []string{"canary0", "canary1", "canary2", "canary3", "canary4"} {
			if strings.Contains(request.Messages[1].Content, canary) {
				said = append(said, canary)
			}
		}
		answer = fmt.Sprintf(`{"conversation":"The story of %s.","actions":"Built it.","findings":["Uploads resume."],"topics":["upload"]}`, strings.Join(said, " and "))
	}
	llmtest.Chat(answer)(w, r)
}

// session returns the events of a session that is worth a call.
func session(t *testing.T, id, project string) []events.Event {
	t.Helper()
	var list []events.Event
	for i, p := range []events.Payload{
		&events.ConversationStarted{Project: project, Agent: "test"},
		&events.MessageCreated{MessageID: "u", Role: "user", Content: "please repair " + id + strings.Repeat(" and look at the logs of the upload", 80)},
		&events.MessageCreated{MessageID: "a", Role: "assistant", Content: "repaired " + id + strings.Repeat(" by a longer wait", 60)},
	} {
		e, err := events.New(id, "test", fmt.Sprint(i), p)
		require.NoError(t, err)
		list = append(list, e)
	}
	return list
}

// of lists what the log holds of a kind.
func (i running) of(kind string) (list []events.Recorded) {
	i.Helper()
	err := i.Log.Tail(i.Context(), eventlog.Filter{Tenant: "default", Kinds: []string{events.Kind(kind)}}, eventlog.TailOptions{From: 1, ToEnd: true}, func(m eventlog.Message) error {
		e, _, err := m.Decode()
		list = append(list, e)
		return err
	})
	require.NoError(i, err)
	return list
}

func (i running) awaitOf(kind string, n int) []events.Recorded {
	i.Helper()
	require.Eventually(i, func() bool { return len(i.of(kind)) >= n }, patience, 10*time.Millisecond, "%d of %s", n, kind)
	return i.of(kind)
}

func (i running) projectContext(name, format string) string {
	i.Helper()
	status, body := i.ask(http.MethodGet, "/v1/projects/"+url.PathEscape(name)+"/context?format="+format, "")
	require.Equal(i, http.StatusOK, status, body)
	return body
}

// toldBy lists the conversations that a chapter covers.
func toldBy(e events.Recorded) (ids []string) {
	for _, told := range e.Payload.(*events.StoryWritten).Told {
		ids = append(ids, told.ID)
	}
	return ids
}

func TestFinishedSessionsAreAnalysedAndMakeTheStoryOfTheirProject(t *testing.T) {
	t.Parallel()
	endpoint := llmtest.New(t)
	endpoint.Reply(storyteller)
	data := t.TempDir()
	i := summarizing(t, data, telling(endpoint))
	for n := range 5 {
		i.publish(session(t, fmt.Sprint("canary", n), "acme"))
		i.awaitOf(events.TypeInsightWritten, n+1)
	}
	i.awaitOf(events.TypeStoryWritten, 1)
	i.settled()
	chapters := i.of(events.TypeStoryWritten)
	levels := map[int]int{}
	for _, e := range chapters {
		levels[e.Payload.(*events.StoryWritten).Level]++
	}
	t.Logf("%d calls, chapters by level: %v", endpoint.Calls(), levels)
	require.Positive(t, levels[1])
	var all []string
	for _, e := range chapters {
		if e.Payload.(*events.StoryWritten).Level == 1 {
			all = append(all, toldBy(e)...)
		}
	}
	require.Equal(t, len(all), len(slices.Compact(slices.Sorted(slices.Values(all)))), "each session is told once")

	text := i.projectContext("acme", "markdown")
	require.Contains(t, text, "## Story So Far")
	require.Contains(t, text, "The story of canary")
	require.Contains(t, text, "left to do: Raise the limit ## of retries.")
	require.Contains(t, text, "Found: Retries wait for a clock.")
	require.Contains(t, i.projectContext("acme", "json"), `"session":"story:`)
	i.verified()

	// Nothing is asked for again: not after a restart, and not by a rebuild.
	calls := endpoint.Calls()
	require.NoError(t, i.Close())
	i = summarizing(t, data, telling(endpoint))
	i.live()
	i.rebuild("projects")
	i.settled()
	require.Equal(t, calls, endpoint.Calls())
	require.Equal(t, text, i.projectContext("acme", "markdown"))
}

// The id of a chapter follows from what it covers, so anyone in the tenant can take it before the summarizer does.
func TestAChapterOfSomebodyElseDoesNotKeepAProjectFromItsStory(t *testing.T) {
	t.Parallel()
	endpoint := llmtest.New(t)
	endpoint.Reply(storyteller)
	data := t.TempDir()
	i := summarizing(t, data, func(s *settings.Summaries) {
		telling(endpoint)(s)
		s.L2Percent = 100 // no chapter yet
	})
	for n := range 3 {
		i.publish(session(t, fmt.Sprint("canary", n), "acme"))
	}
	var told []events.Told
	for _, e := range i.awaitOf(events.TypeInsightWritten, 3) {
		told = append(told, events.Told{ID: e.Subject, Chars: e.Payload.(*events.InsightWritten).Chars})
		e, err := events.New(project.ChapterID("acme", 1, told, nil, 0), "somebody", "story", &events.StoryWritten{
			Project: "acme", Names: []string{"acme"}, Level: 1, Told: []events.Told{{ID: "nothing", Chars: 1}}, Conversation: "Another story.", Method: "llm",
		})
		require.NoError(t, err)
		i.publish([]events.Event{e})
	}
	i.settled()
	require.NoError(t, i.Close())

	i = summarizing(t, data, telling(endpoint))
	i.publish(session(t, "canary3", "acme"))
	require.Eventually(t, func() bool {
		return strings.Contains(i.projectContext("acme", "markdown"), "The story of canary0 and canary1 and canary2.")
	}, patience, 20*time.Millisecond, "what is under the chapter's id is withdrawn")
}

func TestNothingOfADeletedSessionStandsInAStory(t *testing.T) {
	t.Parallel()
	endpoint := llmtest.New(t)
	endpoint.Reply(storyteller)
	i := summarizing(t, t.TempDir(), telling(endpoint))
	for n := range 4 {
		i.publish(session(t, fmt.Sprint("canary", n), "acme"))
	}
	first := i.awaitOf(events.TypeStoryWritten, 1)[0]
	i.settled()
	told := toldBy(first)[0]
	require.Contains(t, i.projectContext("acme", "markdown"), "Story So Far")

	status, body := i.ask(http.MethodDelete, "/v1/conversations/"+told, "")
	require.Less(t, status, 300, body)
	require.Eventually(t, func() bool { return !strings.Contains(i.projectContext("acme", "json"), told) }, patience, 10*time.Millisecond, "once the deletion is applied")
	require.Eventually(t, func() bool { // its chapters are withdrawn
		for _, e := range i.of(events.TypeStoryWritten) {
			if _, err := i.Log.LastOfKind(t.Context(), "default", e.Subject, events.Kind(events.TypeStoryWithdrawn)); slices.Contains(toldBy(e), told) && err != nil {
				return false
			}
		}
		return true
	}, patience, 10*time.Millisecond)
	i.settled()
	require.NotContains(t, i.projectContext("acme", "json"), told)
	i.publish(session(t, "canary4", "acme")) // enough for a chapter again
	require.Eventually(t, func() bool { return strings.Contains(i.projectContext("acme", "markdown"), "Story So Far") }, patience, 20*time.Millisecond)
	require.NotContains(t, i.projectContext("acme", "json"), told)
	i.verified()
}

func TestAModelThatFailsDelaysInsightsVisiblyAndNothingElse(t *testing.T) {
	t.Parallel()
	endpoint := llmtest.New(t)
	endpoint.Reply(llmtest.Failure(http.StatusUnauthorized, "", ""))
	i := summarizing(t, t.TempDir(), telling(endpoint))
	i.publish(session(t, "canary0", "acme"))
	require.Eventually(t, func() bool { return strings.Contains(i.status("summaries").Error, "waiting") }, patience, 20*time.Millisecond)
	require.Contains(t, i.projectContext("acme", "markdown"), "please repair canary0", "nothing else waits")
	require.NotContains(t, i.projectContext("acme", "markdown"), "left to do")

	// An answer in another form is requested once more, with the reason, and then the session is left alone.
	endpoint.Reply(llmtest.Chat(`{"main_topic":"x"}`))
	j := summarizing(t, t.TempDir(), telling(endpoint))
	before := endpoint.Calls()
	j.publish(session(t, "canary1", "acme"))
	require.Eventually(t, func() bool { return strings.Contains(j.status("summaries").Error, "could not be analyzed") }, patience, 20*time.Millisecond)
	list := endpoint.Requests()
	require.Contains(t, list[len(list)-1].Text, "the answer has no key_findings. Answer again")
	require.Less(t, endpoint.Calls()-before, 10)
	require.Empty(t, j.of(events.TypeInsightWritten))
}

func TestCapsHoldForInsights(t *testing.T) {
	t.Parallel()
	endpoint := llmtest.New(t)
	endpoint.Reply(storyteller)
	i := summarizing(t, t.TempDir(), func(s *settings.Summaries) {
		telling(endpoint)(s)
		s.MaxCalls = 2
	})
	for n := range 4 {
		i.publish(session(t, fmt.Sprint("canary", n), fmt.Sprint("project", n)))
	}
	require.Eventually(t, func() bool {
		return strings.Contains(i.status("summaries").Error, "cap") && endpoint.Calls() >= 2 // a call counts before it arrives
	}, patience, 20*time.Millisecond)
	require.Equal(t, 2, endpoint.Calls())
}

func TestWithoutAModelNothingIsAnalysed(t *testing.T) {
	t.Parallel()
	i := summarizing(t, t.TempDir(), func(s *settings.Summaries) { s.StoryAfter = time.Millisecond })
	i.publish(session(t, "canary0", "acme"))
	i.settled()
	require.Empty(t, i.of(events.TypeInsightWritten))
	require.NotContains(t, i.projectContext("acme", "json"), "story")
}

func TestASessionThatWasNotAnalysedBeforeAStopIsAnalysedOnceAfterIt(t *testing.T) {
	t.Parallel()
	endpoint := llmtest.New(t)
	endpoint.Reply(llmtest.Hang)
	data := t.TempDir()
	i := summarizing(t, data, telling(endpoint))
	i.publish(session(t, "canary0", "acme"))
	require.Eventually(t, func() bool { return endpoint.Calls() == 1 }, patience, 10*time.Millisecond)
	require.NoError(t, i.Close()) // while the model works
	endpoint.Reply(storyteller)
	i = summarizing(t, data, telling(endpoint))
	i.awaitOf(events.TypeInsightWritten, 1)
	i.settled()
	require.Equal(t, 2, endpoint.Calls())
	require.Len(t, i.of(events.TypeInsightWritten), 1)
}
