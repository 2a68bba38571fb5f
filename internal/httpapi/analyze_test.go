package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/llmtest"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/pkg/eventlog"
)

const insightAnswer = `{"main_topic":"Parsers.","key_findings":["The cache lies."],"action_items":["Fix it."]}`

// withModel configures a server with a model at a URL.
func withModel(t *testing.T, url string) instance.Config {
	return instance.Config{
		Data: t.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler),
		Summaries: settings.Summaries{MaxContextChars: 100_000, L1Percent: 10, L2Percent: 10, Writer: "openai", Model: settings.Model{URL: url, Name: "canned", Timeout: time.Minute, MaxTokens: 200}},
	}
}

// analyzing starts mneme with a model at this URL and a file of quotas.
func analyzing(t *testing.T, url, quotas string) *bundle {
	t.Helper()
	t.Parallel()
	c := withModel(t, url)
	if quotas != "" {
		c.Access.Quotas = filepath.Join(c.Data, "quotas.yaml")
		require.NoError(t, os.WriteFile(c.Access.Quotas, []byte(quotas), 0o600))
	}
	i, err := instance.Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close()) })
	return &bundle{t, i}
}

// say publishes a short conversation in a tenant, and waits until it can be analyzed.
func (b *bundle) say(tenant, id, text string) {
	b.t.Helper()
	var answer publishAnswer
	b.do(http.StatusCreated, http.MethodPost, "/v1/events?tenant="+tenant, map[string]string{"Content-Type": events.ContentTypeEvent}, structured(id, text, message(text, "user", text)), &answer)
	b.get(fmt.Sprintf("/v1/conversations/%s?wait_ms=60000&tenant=%s&at_least=%d", id, tenant, answer.Seq), nil)
	require.Eventually(b.t, func() bool {
		var page httpapi.Analyses
		b.get("/v1/conversations/"+id+"/analyses?tenant="+tenant, &page)
		var c httpapi.Conversation
		b.get("/v1/conversations/"+id+"?tenant="+tenant, &c)
		return page.Turns == c.TurnCount
	}, mnemetest.Patience, 20*time.Millisecond)
}

func (b *bundle) analyze(tenant, body string) (r httpapi.AnalysisResult) {
	b.t.Helper()
	b.do(http.StatusOK, http.MethodPost, "/v1/analyses?tenant="+tenant, map[string]string{"Content-Type": "application/json"}, []byte(body), &r)
	return r
}

// A conversation can be deleted, and erased, while the model reads it.
func TestAnAnswerAboutADeletedConversationIsNotStored(t *testing.T) {
	e := llmtest.New(t)
	b := analyzing(t, e.URL(), "")
	b.say("default", "c", "Write a parser.")
	e.Reply(func(w http.ResponseWriter, r *http.Request) {
		b.do(http.StatusOK, http.MethodDelete, "/v1/conversations/c", nil, nil, nil)
		llmtest.Chat(insightAnswer)(w, r)
	})
	result := b.analyze("default", `{"conversations":["c"]}`)
	require.Len(t, result.Conversations, 1)
	require.Contains(t, result.Conversations[0].Error, "deleted")
	require.Empty(t, result.Stopped, "others could still be asked about")
	last, err := b.Log.LastOfKind(mnemetest.Context(t), "default", "c", events.Kind(events.TypeInsightWritten))
	require.ErrorIs(t, err, eventlog.ErrNotFound, "%d", last.Seq)
}

func TestAnAnalysisAsksAboutEachConversationOnce(t *testing.T) {
	e := llmtest.New(t)
	e.Reply(llmtest.Chat(insightAnswer))
	b := analyzing(t, e.URL(), "")
	for i := range 3 {
		b.say("default", fmt.Sprint("c", i), "Write a parser.")
	}
	b.say("other", "secret", "Nobody may read this.")

	r := b.analyze("default", `{"dry_run":true,"map_reduce":true}`)
	require.Equal(t, [3]int{3, 0, 4}, [3]int{r.Estimate.Conversations, r.Estimate.Known, r.Estimate.Calls})
	require.Positive(t, r.Estimate.InputTokens)
	require.Zero(t, e.Calls())

	r = b.analyze("default", `{}`)
	require.Equal(t, 3, r.Calls)
	require.Len(t, r.Conversations, 3)
	require.JSONEq(t, `["The cache lies."]`, string(r.Conversations[0].Answer["key_findings"]))
	require.NotZero(t, r.Conversations[0].Seq)
	require.Equal(t, "session", r.Task)
	require.Equal(t, "canned", r.Model)
	require.Empty(t, r.Stopped)
	for _, request := range e.Requests() {
		require.Contains(t, request.Text, "Write a parser.")
		require.NotContains(t, request.Text, "Nobody may read this.")
	}

	// The answers are events, so only what has grown is asked about.
	require.Zero(t, b.analyze("default", `{}`).Calls)
	b.say("default", "c1", "What else?")
	r = b.analyze("default", `{"limit":2}`)
	require.Equal(t, 1, r.Calls)
	require.True(t, r.More)
	require.Equal(t, []bool{false, true}, []bool{r.Conversations[0].Known, r.Conversations[1].Known})

	// What one tenant has, another can't name.
	p := b.refused(http.StatusNotFound, http.MethodPost, "/v1/analyses", map[string]string{"Content-Type": "application/json"}, `{"conversations":["secret"]}`)
	require.Contains(t, p.Detail, "not found")
	require.Empty(t, b.analyze("default", `{"project":"nothing"}`).Conversations)
}

func TestAnAnalysisOfNamedConversationsTakesNoMorePlacesThanThereAre(t *testing.T) {
	b := analyzing(t, llmtest.New(t).URL(), "")
	ids := make([]string, 40) // more than can be read at the same time
	for n := range ids {
		ids[n] = fmt.Sprint("c", n)
		b.say("default", ids[n], "Write a parser.")
	}
	body, err := json.Marshal(map[string]any{"dry_run": true, "conversations": ids})
	require.NoError(t, err)
	require.Equal(t, 40, b.analyze("default", string(body)).Estimate.Calls)
	p := b.refused(http.StatusUnprocessableEntity, http.MethodPost, "/v1/analyses", map[string]string{"Content-Type": "application/json"}, `{"conversations":[]}`)
	require.Contains(t, p.Detail, "body.conversations: expected array length >= 1", "an empty list is not all conversations")
}

func TestAnAnalysisListsWhatHasNoUsableAnswer(t *testing.T) {
	e := llmtest.New(t)
	b := analyzing(t, e.URL(), "")
	b.say("default", "c1", "Write a parser.")
	b.say("default", "c2", "Write a parser.")
	task := `{"task":"Count the caches.","schema":{"topic":{"type":"string","default":null},"count":{"type":"integer","maximum":2.5}},"map_reduce":true,"parallel":1}`
	fits := llmtest.Chat(`{"topic":"caches","count":2}`)
	e.Reply(llmtest.Chat("There are two."), llmtest.Chat(`{"topic":"caches","count":"two"}`), fits)
	r := b.analyze("default", task)
	require.Contains(t, r.Conversations[0].Error, "the answer does not fit the schema")
	require.Nil(t, r.Conversations[0].Answer)
	require.NotNil(t, r.Conversations[1].Answer)
	require.JSONEq(t, `2`, string(r.Over["count"]))
	require.Equal(t, 4, r.Calls)
	require.Contains(t, e.Requests()[0].Text, "Count the caches.")

	e.Reply(fits)
	r = b.analyze("default", task)
	require.Equal(t, 2, r.Calls, "the one that failed, and the answer over all")
	// A schema that nothing satisfies ends too.
	r = b.analyze("default", `{"task":"x","schema":{"type":"object","properties":{"a":{"type":"string"}},"not":{}}}`)
	require.Equal(t, 4, r.Calls)
	require.Contains(t, r.Conversations[1].Error, "the answer does not fit the schema")

	for body, location := range map[string]string{
		`{"task":"x","schema":{"type":"array"}}`: "body.schema", `{"task":"x","schema":5}`: "body.schema", `{"schema":{"a":{"type":"string"}}}`: "body.schema",
		`{"task":"  "}`: "body.task", `{"limit":1001}`: "body.limit", `{"since":"yesterday"}`: "body.since", `{"tasks":"x"}`: "body.tasks",
	} {
		p := b.refused(http.StatusUnprocessableEntity, http.MethodPost, "/v1/analyses", map[string]string{"Content-Type": "application/json"}, body)
		require.Equal(t, location, p.Errors[0].Location, "%s: %+v", body, p)
	}
}

func TestAnAnalysisStopsAtItsCapAndGoesOn(t *testing.T) {
	e := llmtest.New(t)
	e.Reply(llmtest.Chat(insightAnswer))
	b := analyzing(t, e.URL(), "")
	for i := range 3 {
		b.say("default", fmt.Sprint("c", i), "Write a parser.")
	}
	r := b.analyze("default", `{"max_calls":2,"parallel":1,"map_reduce":true}`)
	require.Equal(t, 2, r.Calls)
	require.Contains(t, r.Stopped, "the cap of 2 calls is reached")
	require.Contains(t, r.Conversations[2].Error, "the cap of 2 calls is reached")
	require.Contains(t, r.OverError, "not asked")
	r = b.analyze("default", `{"max_tokens":1,"parallel":1}`)
	require.Equal(t, 1, r.Calls, "only the rest")
	require.Empty(t, r.Stopped)
	e.Reply(llmtest.Failure(http.StatusUnauthorized, "invalid_api_key", ""))
	r = b.analyze("default", `{"task":"x","parallel":1}`)
	require.Contains(t, r.Stopped, "check the key")
	require.Equal(t, 1, r.Calls)
	require.Contains(t, r.Conversations[1].Error, "not asked")
}

func TestAnAnalysisKeepsToTheQuotaOfItsTenant(t *testing.T) {
	e := llmtest.New(t)
	e.Reply(llmtest.Chat(insightAnswer))
	b := analyzing(t, e.URL(), "tenants:\n  small: {model_calls_per_hour: 1}\n  costly: {model_cost_per_hour: 1}\n  full: {max_events: 1}\n")
	for _, tenant := range []string{"small", "default"} {
		b.say(tenant, "c1", "Write a parser.")
		b.say(tenant, "c2", "Write a parser.")
	}
	b.say("full", "c1", "Write a parser.")
	r := b.analyze("small", `{"parallel":1}`)
	require.Equal(t, 1, r.Calls)
	require.Contains(t, r.Stopped, `the tenant "small" is over its quota of 1 model calls an hour`)
	response, raw := b.send(http.MethodPost, "/v1/analyses?tenant=small", map[string]string{"Content-Type": "application/json"}, []byte(`{}`))
	require.Equal(t, http.StatusTooManyRequests, response.StatusCode, "%s", raw)
	require.NotEmpty(t, response.Header.Get("Retry-After"))
	b.say("costly", "c1", "Write a parser.")
	response, raw = b.send(http.MethodPost, "/v1/analyses?tenant=costly", map[string]string{"Content-Type": "application/json"}, []byte(`{}`))
	require.Equal(t, http.StatusTooManyRequests, response.StatusCode, "%s", raw)
	require.Contains(t, string(raw), `the price of the model \"canned\" is not known`)
	require.Equal(t, "60", response.Header.Get("Retry-After"))
	require.Equal(t, 2, b.analyze("default", `{}`).Calls, "another tenant has its own")
	// An answer that can't be stored is not asked for again and again.
	r = b.analyze("full", `{}`)
	require.Contains(t, r.Stopped, "max_events")
	require.Equal(t, 4, e.Calls())
}

func TestAnAnalysisEndsWithItsClientAndGoesOn(t *testing.T) {
	e := llmtest.New(t)
	b := analyzing(t, e.URL(), "")
	for i := range 3 {
		b.say("default", fmt.Sprint("c", i), "Write a parser.")
	}
	e.Reply(llmtest.Chat(insightAnswer), llmtest.Hang)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.HTTPURL()+"/v1/analyses/stream", strings.NewReader(`{"parallel":1}`))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	next := func(event string, data any) {
		t.Helper()
		for lines.Scan() {
			if lines.Text() != "event: "+event {
				continue
			}
			require.True(t, lines.Scan())
			require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "data: ")), data))
			return
		}
		t.Fatalf("the stream ended before %s: %v", event, lines.Err())
	}
	var estimate struct{ Calls int }
	next("estimate", &estimate)
	require.Equal(t, 3, estimate.Calls)
	var progress httpapi.AnalysisProgress
	next("progress", &progress)
	require.Equal(t, [2]int{1, 3}, [2]int{progress.Done, progress.Of})
	require.NotNil(t, progress.Conversation.Answer)

	list, _ := b.entries("", "action=watch-analyze")
	require.Equal(t, []string{"default watch-analyze begun"}, list, "it has not ended")

	// While one analysis runs, there is no place for another one of this tenant.
	refused, _ := b.send(http.MethodPost, "/v1/analyses", map[string]string{"Content-Type": "application/json"}, []byte(`{}`))
	require.Equal(t, http.StatusTooManyRequests, refused.StatusCode)
	require.NotEmpty(t, refused.Header.Get("Retry-After"))
	require.Empty(t, b.analyze("other", `{}`).Conversations)
	leave()
	e.Reply(llmtest.Chat(insightAnswer))
	require.Eventually(t, func() bool {
		response, raw := b.send(http.MethodPost, "/v1/analyses/stream", map[string]string{"Content-Type": "application/json"}, []byte(`{}`))
		if response.StatusCode == http.StatusTooManyRequests {
			return false
		}
		require.Contains(t, string(raw), "event: analyzed\n")
		require.Contains(t, string(raw), `"calls":2,`, "what was answered is kept")
		return true
	}, mnemetest.Patience, 20*time.Millisecond)
}

func TestWithoutAModelAnAnalysisSaysWhatToSet(t *testing.T) {
	b := setup(t)
	p := b.refused(http.StatusConflict, http.MethodPost, "/v1/analyses", map[string]string{"Content-Type": "application/json"}, `{}`)
	require.Contains(t, p.Detail, "no model is configured: set MNEME_SUMMARY_WRITER")
}

func TestAnAnalysisWithARealModel(t *testing.T) {
	e := llmtest.InFrontOf(t, llmtest.Model(t))
	b := analyzing(t, e.URL(), "")
	b.say("default", "c1", "Write a parser for dates.")
	r := b.analyze("default", `{"task":"Say in a few words what it is about.","schema":{"topic":{"type":"string","maxLength":40}}}`)
	require.Positive(t, r.Calls)
	require.Positive(t, r.OutputTokens)
	require.True(t, (r.Conversations[0].Answer != nil) != (r.Conversations[0].Error != ""), "%+v", r.Conversations[0])
}
