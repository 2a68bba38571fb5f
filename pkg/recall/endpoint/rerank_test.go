package endpoint_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/pkg/recall/endpoint"
)

const rerankKey = "sk-rerank-secret"

// reranker has a server that answers with a script, and counts its calls.
func reranker(t *testing.T, shape string, script http.HandlerFunc) (*endpoint.Reranker, *atomic.Int64) {
	t.Helper()
	return rerankerWithin(t, 20*time.Second, shape, script)
}

func rerankerWithin(t *testing.T, timeout time.Duration, shape string, script http.HandlerFunc) (*endpoint.Reranker, *atomic.Int64) {
	t.Helper()
	calls := &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		script(w, r)
	}))
	t.Cleanup(server.Close)
	r, err := endpoint.NewReranker(endpoint.RerankConfig{URL: server.URL + "/v1", Model: "some-reranker", Key: rerankKey, Shape: shape, Timeout: timeout})
	require.NoError(t, err)
	return r, calls
}

// body answers with a text.
func body(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func TestARerankerAsksInTheShapeOfItsAPI(t *testing.T) {
	t.Parallel()
	for shape, want := range map[string]string{
		endpoint.ShapeDocuments: `{"model":"some-reranker","query":"why","documents":["a","b"],"top_n":2}`,
		endpoint.ShapeTexts:     `{"query":"why","texts":["a","b"],"truncate":true}`,
	} {
		r, _ := reranker(t, shape, func(w http.ResponseWriter, r *http.Request) {
			sent, _ := io.ReadAll(r.Body)
			if r.URL.Path != "/v1/rerank" || r.Header.Get("Authorization") != "Bearer "+rerankKey || string(sent) != want {
				w.WriteHeader(http.StatusTeapot)
			}
			_, _ = io.WriteString(w, `{"results":[{"index":1,"relevance_score":0.9},{"index":0,"relevance_score":-3}]}`)
		})
		scores, err := r.Rerank(t.Context(), "why", []string{"a", "b"})
		require.NoError(t, err, shape)
		require.Equal(t, []float64{-3, 0.9}, scores)
	}
}

func TestARerankerReadsBothShapesOfAnswers(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"Cohere": `{"id":"x","results":[{"index":0,"relevance_score":0.1},{"index":1,"relevance_score":0.7}],"meta":{}}`,
		"Jina":   `{"model":"m","results":[{"index":1,"relevance_score":0.7,"document":{"text":"b"}},{"index":0,"relevance_score":0.1}],"usage":{"total_tokens":3}}`,
		"TEI":    ` [{"index":1,"score":0.7},{"index":0,"score":0.1,"text":"a"}]`,
	} {
		r, _ := reranker(t, endpoint.ShapeDocuments, body(answer))
		scores, err := r.Rerank(t.Context(), "why", []string{"a", "b"})
		require.NoError(t, err, name)
		require.Equal(t, []float64{0.1, 0.7}, scores, name)
	}
}

func TestABadAnswerOfARerankerIsAnError(t *testing.T) {
	t.Parallel()
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for name, c := range map[string]struct {
		script http.HandlerFunc
		want   string
	}{
		"nothing":              {body(""), "not what its API describes"},
		"garbage":              {body("<html>"), "not what its API describes"},
		"another object":       {body(`{"data":[]}`), "2 texts with 0 scores"},
		"an empty list":        {body(`[]`), "2 texts with 0 scores"},
		"too few":              {body(`[{"index":0,"score":1}]`), "2 texts with 1 scores"},
		"too many":             {body(`[{"index":0,"score":1},{"index":1,"score":1},{"index":1,"score":1}]`), "2 texts with 3 scores"},
		"twice the same":       {body(`[{"index":1,"score":1},{"index":1,"score":2}]`), "scores text 1 twice"},
		"beyond the end":       {body(`[{"index":0,"score":1},{"index":2,"score":2}]`), "scores text 2 of 2"},
		"below the beginning":  {body(`[{"index":0,"score":1},{"index":-1,"score":2}]`), "scores text -1 of 2"},
		"no index":             {body(`[{"index":0,"score":1},{"score":2}]`), "not what its API describes"},
		"no score":             {body(`[{"index":0,"score":1},{"index":1}]`), "not what its API describes"},
		"a score that is none": {body(`[{"index":0,"score":1},{"index":1,"score":NaN}]`), "not what its API describes"},
		"a score beyond all":   {body(`[{"index":0,"score":1},{"index":1,"score":1e999}]`), "not what its API describes"},
		"a fraction":           {body(`[{"index":0,"score":1},{"index":0.5,"score":1}]`), "not what its API describes"},
		"a huge body":          {body(`{"results":[],"x":"` + strings.Repeat("x", 5<<20) + `"}`), "not what its API describes"},
		"too many requests":    {status(http.StatusTooManyRequests), "HTTP 429"},
		"a failure":            {status(http.StatusInternalServerError), "HTTP 500"},
		"a wrong key":          {status(http.StatusUnauthorized), "check the key"},
		"a wrong URL":          {status(http.StatusNotFound), "check the URL"},
		"slow": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // the server notices a client that goes away only then
			<-r.Context().Done()
		}, "does not answer in time"},
	} {
		timeout := 20 * time.Second
		if name == "slow" {
			timeout = time.Second
		}
		r, calls := rerankerWithin(t, timeout, endpoint.ShapeDocuments, c.script)
		_, err := r.Rerank(t.Context(), "why", []string{"a", "b"})
		require.ErrorContains(t, err, c.want, name)
		require.NotContains(t, err.Error(), rerankKey, name)
		require.EqualValues(t, 1, calls.Load(), "a search does not wait for a second try")
		require.Equal(t, endpoint.RerankStats{Calls: 1, Failures: 1}, r.Stats(), name)
	}
}

func TestAServerThatTakesFewTextsIsAskedInParts(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity} {
		most := 32 // as of TEI, unless it is told otherwise
		r, calls := reranker(t, endpoint.ShapeTexts, func(w http.ResponseWriter, r *http.Request) {
			var asked struct{ Texts []string }
			_ = json.NewDecoder(r.Body).Decode(&asked)
			if len(asked.Texts) > most {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, `{"error":"batch size 100 > maximum allowed batch size 32","error_type":"Validation"}`)
				return
			}
			var answer []map[string]any
			for i, text := range asked.Texts {
				answer = append(answer, map[string]any{"index": i, "score": len(text)})
			}
			_ = json.NewEncoder(w).Encode(answer)
		})
		var list []string
		var want []float64
		for i := range 100 {
			list, want = append(list, strings.Repeat("x", i+1)), append(want, float64(i+1))
		}
		scores, err := r.Rerank(t.Context(), "why", list)
		require.NoError(t, err)
		require.Equal(t, want, scores)
		require.EqualValues(t, 2+4, calls.Load(), "100 and 50 are refused, four parts of 25 are not")
		require.EqualValues(t, 6, r.Stats().Calls)
		_, err = r.Rerank(t.Context(), "how", list)
		require.NoError(t, err)
		require.EqualValues(t, 2+4+4, calls.Load(), "now it is known")

		most = 0
		_, err = r.Rerank(t.Context(), "what", list)
		require.ErrorContains(t, err, fmt.Sprint("HTTP ", status))
		require.LessOrEqual(t, calls.Load(), int64(13), "and a server that refuses everything is not asked for every text")
	}
}

func TestARerankerThatFailsIsLeftAloneForAWhile(t *testing.T) {
	t.Parallel()
	r, calls := reranker(t, endpoint.ShapeDocuments, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	for range 5 {
		_, err := r.Rerank(t.Context(), "why", []string{"a"})
		require.ErrorContains(t, err, "HTTP 502")
	}
	_, err := r.Rerank(t.Context(), "why", []string{"a"})
	require.ErrorContains(t, err, "not asked, because it has failed: the endpoint answers HTTP 502")
	require.EqualValues(t, 5, calls.Load())
}

func TestAnAnswerOfARerankerIsKept(t *testing.T) {
	t.Parallel()
	r, calls := reranker(t, endpoint.ShapeDocuments, func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Documents []string }
		_ = json.NewDecoder(r.Body).Decode(&asked)
		results := []string{}
		for i := range asked.Documents {
			results = append(results, fmt.Sprintf(`{"index":%d,"relevance_score":%d}`, i, i))
		}
		_, _ = fmt.Fprintf(w, `{"results":[%s]}`, strings.Join(results, ","))
	})
	for range 3 {
		scores, err := r.Rerank(t.Context(), "why", []string{"a", "b"})
		require.NoError(t, err)
		require.Equal(t, []float64{0, 1}, scores)
	}
	require.EqualValues(t, 1, calls.Load())
	_, err := r.Rerank(t.Context(), "why", []string{"ab"})
	require.NoError(t, err)
	require.EqualValues(t, 2, calls.Load())
	scores, err := r.Rerank(t.Context(), "why", nil)
	require.NoError(t, err)
	require.Empty(t, scores)
	require.Equal(t, endpoint.RerankStats{Calls: 2, Kept: 2}, r.Stats())

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = r.Rerank(gone, "other", []string{"a"})
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, r.Stats().Failures, "a client that goes away says nothing of the endpoint")
	for range 10 { // more than open the breaker
		_, err = r.Rerank(tooLate(t), "other", []string{"a"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.Zero(t, r.Stats().Failures, "nor does one that has no time left")
	_, err = r.Rerank(t.Context(), "other", []string{"a"})
	require.NoError(t, err)
}

// tooLate is the context of a caller that has no time left.
func tooLate(t *testing.T) context.Context {
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	t.Cleanup(cancel)
	return ctx
}

func TestARerankerNeedsAURLAndAModel(t *testing.T) {
	t.Parallel()
	for _, c := range []endpoint.RerankConfig{
		{}, {URL: "localhost:8080", Model: "m"}, {URL: "ftp://h", Model: "m"}, {URL: "http://h"}, {URL: "http://h", Shape: endpoint.ShapeDocuments},
	} {
		_, err := endpoint.NewReranker(c)
		require.Error(t, err, "%+v", c)
	}
	_, err := endpoint.NewReranker(endpoint.RerankConfig{URL: "http://h", Shape: endpoint.ShapeTexts})
	require.NoError(t, err)
}
