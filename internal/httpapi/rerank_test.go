package httpapi_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/pkg/window"
)

// reranking is a server whose model prefers texts with one word, until it fails.
type reranking struct {
	*bundle
	failing atomic.Bool
	calls   atomic.Int64
	held    <-chan struct{} // if not nil, the model answers once this is closed
}

func setupReranking(t *testing.T, always bool) *reranking { return setupHeld(t, always, nil) }

func setupHeld(t *testing.T, always bool, held <-chan struct{}) *reranking {
	t.Helper()
	t.Parallel()
	r := &reranking{held: held}
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.calls.Add(1)
		if r.held != nil {
			<-r.held
		}
		if r.failing.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var asked struct{ Documents []string }
		_ = json.NewDecoder(request.Body).Decode(&asked)
		var results []string
		for i, text := range asked.Documents {
			results = append(results, fmt.Sprintf(`{"index":%d,"relevance_score":%d}`, i, strings.Count(text, "zebra")))
		}
		_, _ = fmt.Fprintf(w, `{"results":[%s]}`, strings.Join(results, ","))
	}))
	t.Cleanup(model.Close)
	c := instance.Config{Data: t.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)}
	c.Searching.Reranking = settings.Reranking{Rerank: "cohere", RerankURL: model.URL, RerankModel: "some-reranker", RerankTimeout: time.Minute, RerankAlways: always}
	i, err := instance.Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close()) })
	r.bundle = &bundle{t, i}
	filler := strings.Repeat(" And more of it.", 40)
	list := []events.Payload{message("m1", "user", "The parser fails."+filler), message("m2", "assistant", "Why does the parser fail on quotes?"+filler),
		message("m3", "user", "A zebra parser."+filler), message("m4", "assistant", "It fails with a zebra and another zebra."+filler),
	}
	for n := range 10 {
		list = append(list, message(fmt.Sprint("u", n), "user", fmt.Sprintf("Why does the parser fail in step %d?", n)+filler), message(fmt.Sprint("a", n), "assistant", "The parser fails."+filler))
	}
	list = append(list, message("m5", "user", "Lunch?"), message("m6", "assistant", "At noon."))
	last := r.batch("c", list...)
	r.get(fmt.Sprintf("/v1/conversations/c?at_least=%d", last), nil)
	return r
}

type rerankedAnswer struct {
	Messages []httpapi.Found
	Reranked *window.Reranked
}

func (r *reranking) search(parameters string) (ids []string, a rerankedAnswer) {
	r.t.Helper()
	r.get("/v1/conversations/c/search?limit=50&query=why+does+the+parser+fail"+parameters, &a)
	for _, m := range a.Messages {
		require.InDelta(r.t, m.Score, m.Parts.Sum()+m.Rerank, 1e-9)
		ids = append(ids, m.MessageID)
	}
	return ids, a
}

func TestASearchIsRerankedIfAsked(t *testing.T) {
	r := setupReranking(t, false)
	own, a := r.search("")
	require.NotContains(t, own[:2], "m4")
	require.Nil(t, a.Reranked)
	require.Zero(t, r.calls.Load(), "only if asked")

	ids, a := r.search("&rerank=true")
	require.Equal(t, []string{"m4", "m3"}, ids[:2])
	require.ElementsMatch(t, own, ids)
	require.Equal(t, "some-reranker", a.Reranked.Model)
	require.Equal(t, 1.0, a.Messages[0].Relevance)
	require.Positive(t, a.Messages[0].Rerank)
	var first rerankedAnswer
	r.get("/v1/conversations/c/search?limit=1&query=why+does+the+parser+fail&rerank=true", &first)
	require.Equal(t, a.Messages[:1], first.Messages, "a page has its place in the same order")
	require.EqualValues(t, 1, r.calls.Load(), "the same question was asked")

	var order []string
	for _, seq := range a.Reranked.Order {
		order = append(order, fmt.Sprint(seq))
	}
	r.failing.Store(true)
	again, b := r.search("&reranked=" + strings.Join(order, ","))
	require.Equal(t, ids, again, "an order is repeated without the model")
	require.Empty(t, b.Reranked.Model)

	var other rerankedAnswer
	r.get("/v1/conversations/c/search?query=fails&rerank=true", &other)
	require.NotEmpty(t, other.Messages)
	require.Equal(t, &window.Reranked{Missing: "the endpoint answers HTTP 503"}, other.Reranked)
	response, text := r.send(http.MethodGet, "/metrics", nil, nil)
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Contains(t, string(text), "mneme_rerank_failures_total 1")
	require.Contains(t, string(text), "mneme_rerank_kept_total 1")
}

func TestAServedContextThatWasRerankedIsMadeAgainWithoutTheModel(t *testing.T) {
	r := setupReranking(t, true)
	const path = "/v1/conversations/c"
	read := func(parameters string) (markdown, recorded string, manifest window.Manifest) {
		t.Helper()
		response, body := r.send(http.MethodGet, path+"/context?max_chars=4000&strategy=relevant&explain=true&include_markdown=true&query=why+does+the+parser+fail"+parameters, nil, nil)
		require.Equal(t, http.StatusOK, response.StatusCode, "%s", body)
		var c struct {
			Markdown string
			Manifest window.Manifest
		}
		require.NoError(t, json.Unmarshal(body, &c))
		return c.Markdown, response.Header.Get("Mneme-Context-Seq"), c.Manifest
	}
	plain, _, manifest := read("&rerank=false")
	require.Nil(t, manifest.Search.Reranked)
	markdown, seq, manifest := read("&record=true")
	require.NotEqual(t, plain, markdown)
	require.NotEmpty(t, manifest.Search.Reranked.Order)

	r.failing.Store(true)
	var again httpapi.RemadeContext
	r.get(path+"/contexts/"+seq, &again)
	require.True(t, again.Equal)
	require.Equal(t, markdown, again.Markdown)
	require.Equal(t, manifest.Search.Reranked.Order, again.Served.Reranked)

	// Without an order the context is the one of the search alone, and says why.
	late, seq, manifest := read("+now&record=true")
	require.Equal(t, "the endpoint answers HTTP 503", manifest.Search.Reranked.Missing)
	require.NotContains(t, late, "HTTP 503")
	r.get(path+"/contexts/"+seq, &again)
	require.True(t, again.Equal)
}

func TestWithoutARerankerNobodyMayAskForIt(t *testing.T) {
	b := setup(t)
	last := b.batch("c", message("m1", "user", "hello"))
	for _, path := range []string{"/v1/conversations/c/search?query=hello&rerank=true", "/v1/conversations/c/context?rerank=true"} {
		p := b.refused(http.StatusUnprocessableEntity, http.MethodGet, path, nil, "")
		require.Equal(t, "query.rerank", p.Errors[0].Location)
		require.Contains(t, p.Detail, "MNEME_RERANK")
	}
	b.get(fmt.Sprint("/v1/conversations/c/search?query=hello&rerank=false&at_least=", last), nil)
}
