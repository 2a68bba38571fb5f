package service_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest/llmtest"
	"mneme.dev/mneme/internal/settings"
)

// embedding starts mneme in this process with an embedding endpoint.
func embedding(t *testing.T, data, url string, models settings.Models, change ...func(*settings.Embedding)) running {
	t.Helper()
	up := settings.ForUp()
	up.Searching.Embedding = settings.Embedding{
		Embeddings: "openai", EmbeddingsURL: url, EmbeddingsModel: "some-model", EmbeddingsBatch: 64,
		EmbeddingsTimeout: patience, EmbeddingsQueryTimeout: patience, EmbeddingsMinCosine: 0.3,
	}
	up.Searching.IndexMemory = 64
	for _, f := range change {
		f(&up.Searching.Embedding)
	}
	i, err := instance.Start(t.Context(), instance.Config{
		Retention: retention,
		Data:      data, Models: models, Searching: up.Searching, Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close()) })
	return running{t, i}
}

// said returns user messages.
func said(t *testing.T, conversation string, texts ...string) (list []events.Event) {
	t.Helper()
	for n, text := range texts {
		id := fmt.Sprintf("%s-%d", conversation, n)
		e, err := events.New(conversation, "test", id, &events.MessageCreated{MessageID: id, Role: "user", Content: text})
		require.NoError(t, err)
		list = append(list, e)
	}
	return list
}

// searched is the answer of a search in a conversation.
type searched struct {
	Messages []struct{ Text string }
	Model    string `json:"embedding_model"`
	Missing  string `json:"embedding_missing"`
}

func (i running) search(conversation, query string) (s searched) {
	i.Helper()
	status, body := i.ask(http.MethodGet, "/v1/conversations/"+conversation+"/search?query="+url.QueryEscape(query), "")
	require.Equal(i, http.StatusOK, status, "%s", body)
	require.NoError(i, json.Unmarshal([]byte(body), &s))
	return s
}

// embeddings returns the status of the projection once wanted accepts it and the graph
// has caught up.
func (i running) embeddings(wanted func(httpapi.ProjectionStatus) bool) (found httpapi.ProjectionStatus) {
	i.Helper()
	require.Eventually(i, func() bool {
		_, body := i.ask(http.MethodGet, "/v1/status", "")
		var s httpapi.Status
		require.NoError(i, json.Unmarshal([]byte(body), &s))
		graph := uint64(0)
		for _, p := range s.Projections {
			switch p.Name {
			case "embeddings":
				found = p
			case "graph":
				graph = p.Checkpoint
			}
		}
		return wanted(found) && graph >= found.Checkpoint
	}, patience, 10*time.Millisecond)
	return found
}

func withVectors(seq uint64) func(httpapi.ProjectionStatus) bool {
	return func(p httpapi.ProjectionStatus) bool { return p.State == "live" && p.Checkpoint >= seq }
}

var zoo = []string{"The zebra sleeps under a tree.", "Lunch is at noon.", "Which car did the engineer repair?", "The train to Rome leaves at nine."}

func TestAnEndpointEmbedsMessagesForSearch(t *testing.T) {
	messagesAreEmbedded(t, settings.Models{Store: "sqlite"})
}

// messagesAreEmbeddedInNeo4j is run by [TestOnNeo4j].
func messagesAreEmbeddedInNeo4j(t *testing.T, uri string) {
	messagesAreEmbedded(t, settings.Models{Store: "neo4j", Neo4j: settings.Neo4j{URI: uri}})
}

func messagesAreEmbedded(t *testing.T, models settings.Models) {
	e := llmtest.Embedding(t)
	i := embedding(t, t.TempDir(), e.URL(), models)
	last := i.publish(said(t, "c", zoo...))
	i.embeddings(withVectors(last))
	found := i.search("c", "automobile mechanic")
	require.Equal(t, "some-model", found.Model)
	require.Empty(t, found.Missing)
	require.Equal(t, zoo[2], found.Messages[0].Text, "no word of it is in the query")
	paid := e.Calls()
	i.rebuild("embeddings")
	i.became("embeddings", "serving")
	require.Equal(t, found, i.search("c", "automobile mechanic"))
	require.Equal(t, paid, e.Calls(), "nothing is paid for twice")
}

func TestWithoutItsEndpointAnswersSayWhatIsMissing(t *testing.T) {
	e, data := llmtest.Embedding(t), t.TempDir()
	i := embedding(t, data, e.URL(), settings.Models{Store: "sqlite"})
	last := i.publish(said(t, "c", zoo...))
	i.embeddings(withVectors(last))
	require.Empty(t, i.search("c", "zebra").Missing)

	e.Reply(llmtest.Failure(http.StatusServiceUnavailable, "x", "out of order"))
	last = i.publish(said(t, "d", "The lion sleeps too.", "Dinner is at eight."))
	p := i.embeddings(func(p httpapi.ProjectionStatus) bool { return p.Error != "" })
	require.Contains(t, p.Error, "HTTP 503")
	found := i.search("d", "who sleeps?")
	require.Empty(t, found.Model)
	require.Contains(t, found.Missing, "the query could not be embedded")
	require.Equal(t, "The lion sleeps too.", found.Messages[0].Text)
	require.Equal(t, "some-model", i.search("c", "zebra").Model, "its query is known")
	status, body := i.ask(http.MethodGet, "/v1/conversations/d/context?explain=true&query=sleeps", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, `"embedding_missing":"the query could not be embedded: `)

	e.Reply(e.Pass())
	i.embeddings(withVectors(last))
	require.Eventually(t, func() bool { return i.search("d", "who sleeps?").Model != "" }, patience, 100*time.Millisecond)
	require.Empty(t, i.search("d", "who sleeps?").Missing)
}

func TestEmbeddedUpToRepeatsAnEarlierAnswer(t *testing.T) {
	e := llmtest.Embedding(t)
	i := embedding(t, t.TempDir(), e.URL(), settings.Models{Store: "sqlite"})
	first := i.publish(said(t, "c", zoo...))
	i.embeddings(withVectors(first))
	e.Reply(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(e.Requests()[e.Calls()-1].Text, "garage") {
			llmtest.Failure(http.StatusServiceUnavailable, "x", "not this now")(w, r)
			return
		}
		e.Pass()(w, r)
	})
	// With an id that differs from the earlier ones.
	late, err := events.New("c", "test", "late", &events.MessageCreated{MessageID: "late", Role: "user", Content: "The garage is closed today."})
	require.NoError(t, err)
	last := i.publish([]events.Event{late})
	i.embeddings(func(p httpapi.ProjectionStatus) bool { return p.Error != "" })
	path := "/v1/conversations/c/search?query=automobile+mechanic&at_least=" + fmt.Sprint(last)
	then := i.get(path)
	require.Contains(t, then, "1 of 5 messages have no vectors")
	require.Contains(t, then, fmt.Sprintf(`"embedded_up_to":%d`, first))

	e.Reply(e.Pass())
	i.embeddings(withVectors(last))
	now := i.get(path)
	require.Contains(t, now, fmt.Sprintf(`"embedded_up_to":%d`, last))
	found := func(answer string) string { return answer[:strings.Index(answer, `],"embedding_model"`)] }
	require.NotEqual(t, found(then), found(now))
	require.Equal(t, found(then), found(i.get(path+fmt.Sprintf("&as_of=%d&embedded_up_to=%d", last, first))))
}

func TestARefusedMessageFailsAloneAndCanBeRetried(t *testing.T) {
	e := llmtest.Embedding(t)
	e.Reply(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(e.Requests()[e.Calls()-1].Text, "Rome") {
			llmtest.Failure(http.StatusRequestEntityTooLarge, "x", "too long")(w, r)
			return
		}
		e.Pass()(w, r)
	})
	i := embedding(t, t.TempDir(), e.URL(), settings.Models{Store: "sqlite"})
	last := i.publish(said(t, "c", zoo...))
	i.embeddings(withVectors(last))
	_, body := i.ask(http.MethodGet, "/v1/failed?projection=embeddings", "")
	require.Contains(t, body, "HTTP 413")
	require.Equal(t, "1 of 4 messages have no vectors", i.search("c", "zebra").Missing)

	e.Reply(e.Pass())
	status, body := i.ask(http.MethodPost, "/v1/retries", `{"projection":"embeddings","all":true}`)
	require.Equal(t, http.StatusOK, status, "%s", body)
	_, body = i.ask(http.MethodGet, "/v1/failed?projection=embeddings", "")
	require.NotContains(t, body, "HTTP 413")
	require.Empty(t, i.search("c", "zebra").Missing)
}

func TestAChangedModelNeedsARebuildAndWordsRankMeanwhile(t *testing.T) {
	e, data := llmtest.Embedding(t), t.TempDir()
	i := embedding(t, data, e.URL(), settings.Models{Store: "sqlite"})
	i.embeddings(withVectors(i.publish(said(t, "c", zoo...))))
	require.NoError(t, i.Close())

	i = embedding(t, data, e.URL(), settings.Models{Store: "sqlite"}, func(s *settings.Embedding) { s.EmbeddingsModel = "another-model" })
	p := i.embeddings(func(p httpapi.ProjectionStatus) bool { return p.State == "halted" })
	require.Contains(t, p.Error, "mneme rebuild embeddings")
	found := i.search("c", "zebra")
	require.Empty(t, found.Model)
	require.Contains(t, found.Missing, "mneme rebuild embeddings")
	i.rebuild("embeddings")
	i.became("embeddings", "serving")
	require.Equal(t, "another-model", i.search("c", "zebra").Model)
}
