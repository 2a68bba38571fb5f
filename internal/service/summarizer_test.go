package service_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/llmtest"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/pkg/projection"
)

// summarizing starts mneme in this process with changed summary settings.
func summarizing(t *testing.T, data string, change func(s *settings.Summaries)) running {
	t.Helper()
	up := settings.ForUp()
	require.NoError(t, settings.Read(up))
	up.MaxContextChars = 30_000
	change(&up.Summaries)
	i, err := instance.Start(t.Context(), instance.Config{
		Retention: retention,
		Data:      data, Summaries: up.Summaries, Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close()) })
	return running{t, i}
}

func unchanged(*settings.Summaries) {}

// summaries lists the summaries of a conversation in the order in which they were written.
func (i running) summaries(conversation, query string) []httpapi.Summary {
	i.Helper()
	status, body := i.ask(http.MethodGet, "/v1/conversations/"+conversation+"/summaries?limit=1000&order=oldest&"+query, "")
	if status == http.StatusNotFound { // not yet
		return nil
	}
	require.Equal(i, http.StatusOK, status, "%s", body)
	var answer struct{ Summaries []httpapi.Summary }
	require.NoError(i, json.Unmarshal([]byte(body), &answer))
	return answer.Summaries
}

// awaitSummaries waits for summaries of a conversation.
func (i running) awaitSummaries(conversation string, enough func(list []httpapi.Summary) bool) (list []httpapi.Summary) {
	i.Helper()
	require.Eventually(i, func() bool {
		list = i.summaries(conversation, "")
		return enough(list)
	}, patience, 20*time.Millisecond, "only %d summaries", len(list))
	return list
}

func atLevel(n int) func([]httpapi.Summary) bool {
	return func(list []httpapi.Summary) bool {
		for _, s := range list {
			if s.Level >= n {
				return true
			}
		}
		return false
	}
}

// live waits until the summarizer handles new events. Tool results that are older are condensed only when the next
// event arrives.
func (i running) live() {
	i.Helper()
	require.Eventually(i, func() bool { return i.status("summaries").State == "live" }, patience, 10*time.Millisecond)
}

// working finds a summarizer that has something to do, in the metrics.
var working = regexp.MustCompile(`mneme_summaries_(queued|running) [1-9]`)

// settled waits until the summarizer has nothing more to do.
func (i running) settled() {
	i.Helper()
	head := func() uint64 {
		state, err := i.Log.State(mnemetest.Context(i))
		require.NoError(i, err)
		return state.Head
	}
	idle := func() bool {
		_, metrics := i.ask(http.MethodGet, "/metrics", "")
		return !working.MatchString(metrics) && !slices.ContainsFunc(i.Status(), func(s projection.Status) bool { return s.Lag > 0 })
	}
	for before := head(); ; {
		time.Sleep(2 * time.Second) // several times longer than a conversation waits before it is queued
		quiet, now := idle(), head()
		if quiet && now == before {
			return
		}
		before = now
	}
}

// verified compares the read models with a replay and returns the hashes.
func (i running) verified() map[string]string {
	i.Helper()
	status, body := i.ask(http.MethodPost, "/v1/verify", "")
	require.Equal(i, http.StatusOK, status, "%s", body)
	var v httpapi.Verification
	require.NoError(i, json.Unmarshal([]byte(body), &v))
	require.True(i, v.Equal, "%s", body)
	hashes := map[string]string{}
	for _, p := range v.Projections {
		hashes[p.Name] = p.Hash
	}
	return hashes
}

// long returns the events of a conversation whose turns are long enough to be summarized.
func long(t *testing.T, conversation string, from, to int) (list []events.Event) {
	t.Helper()
	for _, e := range turns(t, conversation, from, to) {
		if m := e.Type; m == events.TypeMessageCreated {
			n := len(list)
			role := "user"
			if strings.HasPrefix(e.ID, "a") {
				role = "assistant"
			}
			var err error
			e, err = events.New(conversation, "test", e.ID, &events.MessageCreated{MessageID: e.ID, Role: role, Content: fmt.Sprintf("Message %d says that the cache of shard %d must be warm before the deploy to cluster-%d begins. ", n, n%11, n%7) + strings.Repeat("It was measured twice and holds. ", 6)})
			require.NoError(t, err)
		}
		list = append(list, e)
	}
	return list
}

func TestALongConversationIsSummarizedOnLevelsWithoutGaps(t *testing.T) {
	t.Parallel()
	i := summarizing(t, t.TempDir(), unchanged)
	for from := 0; from < 200; from += 50 {
		i.publish(long(t, "c", from, from+50))
	}
	i.awaitSummaries("c", atLevel(2))
	i.settled()
	list := i.summaries("c", "")
	next := map[int]uint64{1: 1, 2: 1, 3: 1}
	byID := map[string]httpapi.Summary{}
	for _, s := range list {
		require.Equal(t, next[s.Level], s.FirstSeq, "%s", s.SummaryID)
		next[s.Level] = s.LastSeq + 1
		byID[s.SummaryID] = s
		require.NotEmpty(t, s.Conversation)
		require.Equal(t, "extractive", s.Method)
		require.LessOrEqual(t, s.CharsOut, 1_500)
		if s.Level == 1 {
			require.Empty(t, s.Children)
			require.Equal(t, []string{"Read"}, s.Tools)
			require.NotEmpty(t, s.Files)
			continue
		}
		first := s.FirstSeq
		for _, child := range s.Children {
			require.Equal(t, s.Level-1, byID[child].Level)
			require.Equal(t, first, byID[child].FirstSeq)
			first = byID[child].LastSeq + 1
		}
		require.Equal(t, s.LastSeq+1, first)
	}
	frontier := i.summaries("c", "frontier=true")
	require.Less(t, len(frontier), len(list))

	status, body := i.ask(http.MethodGet, "/v1/conversations/c/context?format=markdown&max_chars=30000", "")
	require.Equal(t, http.StatusOK, status)
	require.True(t, strings.Contains(body, "## Story So Far") && strings.Contains(body, ", confidence: 0.5]"), "summaries of summaries tell the story")

	var c struct{ Title string }
	_, raw := i.ask(http.MethodGet, "/v1/conversations/c", "")
	require.NoError(t, json.Unmarshal([]byte(raw), &c))
	require.NotEmpty(t, c.Title, "nobody named it, so it has a title from its first message")
	i.verified()
}

func TestRebuildsAndRestartsWriteNoSummaryTwice(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	data := t.TempDir()
	i := summarizing(t, data, unchanged)
	i.publish(long(t, "c", 0, 60))
	i.awaitSummaries("c", func(list []httpapi.Summary) bool { return len(list) > 5 })
	i.settled()
	before, hashes := i.summaries("c", ""), i.verified()
	i.rebuild("all")
	for _, name := range []string{"graph", "files", "summaries"} {
		i.became(name, "serving")
	}
	i.settled()
	require.Equal(t, before, i.summaries("c", ""))
	require.Equal(t, hashes, i.verified())

	require.NoError(t, i.Close())
	i = summarizing(t, data, unchanged)
	i.settled()
	require.Equal(t, before, i.summaries("c", ""))
	require.Equal(t, hashes, i.verified())
}

// The log has lost a summary, so a rebuild refuses the ones after it.
func TestSummariesThatARebuildLacksAreWrittenAgainAtOnce(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	i := summarizing(t, t.TempDir(), unchanged)
	i.publish(long(t, "c", 0, 20))
	lost := i.awaitSummaries("c", func(list []httpapi.Summary) bool { return len(list) > 1 })[0]
	i.settled() // else it looks again for another reason
	js, err := jetstream.New(i.Log.Conn())
	require.NoError(t, err)
	stream, err := js.Stream(mnemetest.Context(t), natsdeploy.Stream)
	require.NoError(t, err)
	require.NoError(t, stream.DeleteMsg(mnemetest.Context(t), lost.Seq))
	for _, name := range []string{"graph", "summaries"} {
		status, body := i.ask(http.MethodPost, "/v1/rebuilds", `{"projection":"`+name+`","force":true}`)
		require.Equal(t, http.StatusAccepted, status, "%s", body)
		i.became(name, "serving")
	}
	i.awaitSummaries("c", func(list []httpapi.Summary) bool {
		return len(list) > 0 && list[0].SummaryID == lost.SummaryID && list[0].Seq > lost.Seq
	})
}

func TestEventsFromBeforeTheSummarizerStartedAreSummarized(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	off := summarizing(t, data, func(s *settings.Summaries) { s.Writer = "off" })
	off.publish(long(t, "c", 0, 60))
	off.settled()
	require.Empty(t, off.summaries("c", ""))
	require.NoError(t, off.Close())

	i := summarizing(t, data, unchanged)
	i.awaitSummaries("c", func(list []httpapi.Summary) bool { return len(list) > 5 })
}

// model configures summaries to be written by the model of a test endpoint.
func model(e *llmtest.Endpoint) func(s *settings.Summaries) {
	return func(s *settings.Summaries) {
		s.Writer, s.URL, s.Name, s.Timeout, s.Titles = "openai", e.URL(), "small", patience, false
	}
}

const draft = `{"conversation": "They warmed the caches.", "actions": "Read files.", "findings": ["It holds."], "topics": ["caches"]}`

func TestARebuildDoesNotCallTheModelAgain(t *testing.T) {
	t.Parallel()
	endpoint := llmtest.New(t)
	endpoint.Reply(llmtest.Chat(draft))
	i := summarizing(t, t.TempDir(), model(endpoint))
	i.publish(long(t, "c", 0, 60))
	i.awaitSummaries("c", func(list []httpapi.Summary) bool { return len(list) > 5 })
	i.settled()
	list, hashes := i.summaries("c", ""), i.verified()
	for _, s := range list {
		require.Equal(t, "llm", s.Method)
		require.Equal(t, "small", s.Model)
		require.NotEmpty(t, s.PromptHash)
		require.Equal(t, "They warmed the caches.", s.Conversation)
	}
	calls := endpoint.Calls()
	require.Equal(t, len(list), calls)
	i.rebuild("all")
	for _, name := range []string{"graph", "files", "summaries"} {
		i.became(name, "serving")
	}
	i.settled()
	require.Equal(t, calls, endpoint.Calls())
	require.Equal(t, hashes, i.verified())
}

func TestGarbageFromAModelIsReplacedAndRewrittenLater(t *testing.T) {
	t.Parallel()
	endpoint := llmtest.New(t)
	endpoint.Reply(llmtest.Chat("I would rather not."))
	i := summarizing(t, t.TempDir(), model(endpoint))
	i.publish(long(t, "c", 0, 60))
	i.awaitSummaries("c", atLevel(2))
	i.settled()
	before := i.summaries("c", "")
	for _, s := range before {
		require.Equal(t, "extractive", s.Method)
		require.NotEmpty(t, s.Fallback)
	}
	_, metrics := i.ask(http.MethodGet, "/metrics", "")
	require.Contains(t, metrics, fmt.Sprintf("mneme_model_failures_total{class=\"invalid\"} %d\n", len(before)))
	require.Contains(t, metrics, "mneme_model_failures_total{class=\"timeout\"} 0\n")

	endpoint.Reply(llmtest.Chat(draft))
	asked := endpoint.Calls()
	status, body := i.ask(http.MethodPost, "/v1/conversations/c/resummarize?fallbacks=true", "")
	require.Equal(t, http.StatusOK, status, "%s", body)
	consolidated := 0
	for _, request := range endpoint.Requests()[asked:] {
		if strings.Contains(request.Text, "summary 1:") {
			consolidated++
			require.NotContains(t, request.Text, "must be warm", "what is written again is made of what is written again")
		}
	}
	require.NotZero(t, consolidated)
	state, err := i.Log.State(mnemetest.Context(t))
	require.NoError(t, err)
	i.applied(state.Head)
	after := i.summaries("c", "")
	require.Len(t, after, len(before))
	older := map[string]httpapi.Summary{}
	for _, s := range before {
		older[s.SummaryID] = s
	}
	for _, s := range after {
		require.Equal(t, "llm", s.Method)
		old := older[s.Supersedes]
		require.Equal(t, [3]uint64{uint64(old.Level), old.FirstSeq, old.LastSeq}, [3]uint64{uint64(s.Level), s.FirstSeq, s.LastSeq})
		require.Equal(t, old.Children, s.Children)
	}
	require.Len(t, i.summaries("c", "superseded=true"), 2*len(before), "the older ones stay")
	_, body = i.ask(http.MethodPost, "/v1/conversations/c/resummarize?fallbacks=true", "")
	require.JSONEq(t, `{"written": [], "kept": 0}`, body)
	i.verified()

	endpoint.Reply(llmtest.Hang)
	status, body = i.ask(http.MethodPost, "/v1/conversations/c/resummarize?wait_ms=100", "")
	require.Equal(t, http.StatusAccepted, status, "%s", body)
	require.JSONEq(t, `{"written": [], "kept": 0, "pending": true}`, body)

	require.Eventually(t, func() bool { // 202 if the answer came too late, on a busy machine
		status, body = i.ask(http.MethodPost, "/v1/conversations/c/resummarize?wait_ms=300", "")
		return status != http.StatusAccepted
	}, patience, time.Millisecond)
	require.Equal(t, http.StatusServiceUnavailable, status, "%s", body)
	require.Contains(t, body, "nothing else was begun")
}

func TestAModelThatIsDownDelaysSummariesUntilTheDeadline(t *testing.T) {
	t.Parallel()
	endpoint := llmtest.New(t)
	endpoint.Reply(llmtest.Failure(http.StatusUnauthorized, "invalid_api_key", "no such key"))
	data := t.TempDir()
	within := func(deadline time.Duration) running {
		return summarizing(t, data, func(s *settings.Summaries) {
			model(endpoint)(s)
			s.Deadline = deadline
		})
	}
	i := within(time.Hour)
	i.publish(long(t, "c", 0, 12)) // less than three thresholds
	require.Eventually(t, func() bool { return endpoint.Calls() > 0 }, patience, 10*time.Millisecond)
	require.Empty(t, i.summaries("c", ""), "it waits")
	require.NoError(t, i.Close())
	i = within(3 * time.Second)
	list := i.awaitSummaries("c", func(list []httpapi.Summary) bool { return len(list) > 0 })
	require.Equal(t, "extractive", list[0].Method)
	require.Contains(t, list[0].Fallback, "key")
}

func TestSummariesOnRequest(t *testing.T) {
	t.Parallel()
	i := summarizing(t, t.TempDir(), unchanged)
	last := i.publish(long(t, "c", 0, 4))
	readable, _ := i.ask(http.MethodGet, fmt.Sprintf("/v1/conversations/c/messages?at_least=%d", last), "")
	require.Equal(t, http.StatusOK, readable)
	require.Eventually(t, func() bool { // 503 until the summarizer has caught up
		status, body := i.ask(http.MethodPost, "/v1/conversations/c/summarize", "")
		require.Contains(t, []int{http.StatusOK, http.StatusServiceUnavailable}, status, "%s", body)
		return status == http.StatusOK
	}, patience, 50*time.Millisecond)
	list := i.awaitSummaries("c", func(list []httpapi.Summary) bool { return len(list) == 1 })
	require.Less(t, list[0].LastSeq, last)
	status, body := i.ask(http.MethodPost, "/v1/conversations/c/summarize", "")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"written": [], "kept": 0}`, body, "the last turns stay out")
	status, _ = i.ask(http.MethodPost, "/v1/conversations/nobody/summarize", "")
	require.Equal(t, http.StatusNotFound, status)
	status, body = i.ask(http.MethodPost, "/v1/conversations/c/condense", "")
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, body, "MNEME_SUMMARY_WRITER")
}

func TestManyWaitingConversationsGetSummarizedSoon(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	off := summarizing(t, data, func(s *settings.Summaries) { s.Writer = "off" })
	const conversations = 400
	var list []events.Event
	for n := range conversations {
		list = append(list, long(t, fmt.Sprintf("c%d", n), 0, 1)...)
	}
	last := off.publish(list)
	off.applied(last)
	require.NoError(t, off.Close())

	began := time.Now()
	i := summarizing(t, data, unchanged)
	titles := func() (n int) {
		_, body := i.ask(http.MethodGet, "/metrics", "")
		for line := range strings.Lines(body) {
			_, _ = fmt.Sscanf(line, "mneme_titles_written_total %d", &n)
		}
		return n
	}
	require.Eventually(t, func() bool { return titles() == conversations }, patience, 20*time.Millisecond)
	t.Logf("%d titles in %v", conversations, time.Since(began).Round(time.Millisecond))
}

func TestAResultThatCannotBeCondensedIsNotRetriedForEachEvent(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	endpoint := llmtest.New(t)
	endpoint.Reply(llmtest.Chat(strings.Repeat("longer than the result ", 200)))
	i := summarizing(t, t.TempDir(), func(s *settings.Summaries) {
		model(endpoint)(s)
		s.Condense = "llm"
	})
	i.live()
	i.publish(withLargeResult(t, "c"))
	require.Eventually(t, func() bool { return endpoint.Calls() == 1 }, patience, 10*time.Millisecond)
	for n := range 3 {
		e, err := events.New("c", "test", fmt.Sprint("more", n), &events.MessageCreated{MessageID: fmt.Sprint("more", n), Role: "user", Content: "and on"})
		require.NoError(t, err)
		i.publish([]events.Event{e})
		i.settled()
	}
	require.Equal(t, 1, endpoint.Calls())
	status, body := i.ask(http.MethodPost, "/v1/conversations/c/condense", "")
	require.Equal(t, http.StatusOK, status, "%s", body)
	require.JSONEq(t, `{"written": [], "kept": 1}`, body)
	require.Equal(t, 2, endpoint.Calls(), "who asks for it has it tried again")
}

func TestASeparateModelCondensesResults(t *testing.T) {
	t.Parallel()
	endpoint := llmtest.New(t)
	endpoint.Reply(llmtest.Chat("much shorter"))
	prompt := filepath.Join(t.TempDir(), "prompt.txt")
	require.NoError(t, os.WriteFile(prompt, []byte("Leave the numbers in."), 0o600))
	i := summarizing(t, t.TempDir(), func(s *settings.Summaries) { // summaries need no model
		s.Condense, s.Timeout, s.MaxCalls = "llm", patience, 1
		s.CondenseProvider, s.CondenseURL, s.CondenseName, s.CondenseKey, s.CondensePromptFile = "openai", endpoint.URL(), "tiny", "hush", prompt
	})
	list := withLargeResult(t, "c")
	i.publish(list)
	require.Eventually(t, func() bool {
		_, body := i.ask(http.MethodGet, "/v1/conversations/c/context?condense=llm&format=markdown", "")
		return strings.Contains(body, "much shorter")
	}, patience, 20*time.Millisecond)
	asked := endpoint.Requests()[0]
	require.Equal(t, "tiny", asked.Body["model"])
	require.Equal(t, "Bearer hush", asked.Header.Get("Authorization"))
	require.Contains(t, asked.Text, "Leave the numbers in.")
}

func TestCondensingIsCountedAtItsOwnPrices(t *testing.T) {
	t.Parallel()
	endpoint := llmtest.New(t)
	endpoint.Reply(llmtest.Chat("much shorter"))
	i := summarizing(t, t.TempDir(), func(s *settings.Summaries) {
		model(endpoint)(s)
		s.Condense, s.InputPrice, s.MaxCost = "llm", 1_000, 1 // the price of one call
		s.CondenseName, s.CondenseURL = "tiny", endpoint.URL()
	})
	i.live()
	i.publish(withLargeResult(t, "c"))
	require.Eventually(t, func() bool { return endpoint.Calls() == 1 }, patience, 10*time.Millisecond)
	i.publish(withLargeResult(t, "d"))
	require.Eventually(t, func() bool { return endpoint.Calls() == 2 }, patience, 10*time.Millisecond, "the cap of the writer's costs has nothing to do with it")
}

// withLargeResult returns a conversation with a large result, followed by enough messages
// for it to be condensed.
func withLargeResult(t *testing.T, conversation string) []events.Event {
	t.Helper()
	list := turns(t, conversation, 0, 1)
	add := func(id string, p events.Payload) {
		e, err := events.New(conversation, "test", id, p)
		require.NoError(t, err)
		list = append(list, e)
	}
	add("call", &events.ToolCalled{ToolCallID: "large", ToolName: "Bash", Arguments: json.RawMessage(`{}`)})
	add("result", &events.ToolReturned{ToolCallID: "large", Result: events.TextResult(strings.Repeat("x", 2_000))})
	for n := range 4 {
		add(fmt.Sprint("behind", n), &events.MessageCreated{MessageID: fmt.Sprint("behind", n), Role: "user", Content: "go on"})
	}
	return list
}

func TestSummarizingCanBeOff(t *testing.T) {
	t.Parallel()
	i := summarizing(t, t.TempDir(), func(s *settings.Summaries) { s.Writer = "off" })
	last := i.publish(long(t, "c", 0, 4))
	status, _ := i.ask(http.MethodGet, fmt.Sprintf("/v1/conversations/c/messages?at_least=%d", last), "")
	require.Equal(t, http.StatusOK, status)
	require.Eventually(t, func() bool {
		var body string
		status, body = i.ask(http.MethodPost, "/v1/conversations/c/summarize", "")
		return status == http.StatusConflict && strings.Contains(body, "MNEME_SUMMARY_WRITER")
	}, patience, 50*time.Millisecond)
	require.Empty(t, i.summaries("c", ""))
}

func TestATitleIsOfTheFirstMessageThatAsksForSomething(t *testing.T) {
	t.Parallel()
	i := summarizing(t, t.TempDir(), unchanged)
	var list []events.Event
	for n, text := range []string{"Caveat: The messages below were generated by the user.", "<command-name>/clear</command-name>",
		"<command-message>plan</command-message>\n<command-name>/plan</command-name>\n<command-args>Warm the cache of each shard.</command-args>", "It is warm."} {
		role := "user"
		if n == 3 {
			role = "assistant"
		}
		id := fmt.Sprint("m", n)
		e, err := events.New("c", "test", id, &events.MessageCreated{MessageID: id, Role: role, Content: text})
		require.NoError(t, err)
		list = append(list, e)
	}
	i.publish(list)
	var c struct{ Title string }
	require.Eventually(t, func() bool {
		status, body := i.ask(http.MethodGet, "/v1/conversations/c", "")
		return status == http.StatusOK && json.Unmarshal([]byte(body), &c) == nil && c.Title != ""
	}, patience, 20*time.Millisecond)
	require.Equal(t, "/plan Warm the cache of each shard", c.Title)
}
