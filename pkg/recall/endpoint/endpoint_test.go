package endpoint_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest/llmtest"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/recall/endpoint"
	"mneme.dev/mneme/pkg/recall/static"
)

// key must appear only in the header of a request.
const key = "sk-a-very-secret-key"

// memory is a cache that ends with the test.
type memory struct {
	mu   sync.Mutex
	held map[graph.EmbeddingKey][]byte
}

func (m *memory) Load(_ context.Context, keys []graph.EmbeddingKey) ([][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([][]byte, len(keys))
	for i, k := range keys {
		list[i] = m.held[k]
	}
	return list, nil
}

func (m *memory) Close() error { return nil }

func (m *memory) Store(_ context.Context, keys []graph.EmbeddingKey, vectors [][]byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held == nil {
		m.held = map[graph.EmbeddingKey][]byte{}
	}
	for i, k := range keys {
		m.held[k] = vectors[i]
	}
	return nil
}

func model(t *testing.T, e *llmtest.Endpoint, cache graph.EmbeddingsCache, change ...func(*endpoint.Config)) *endpoint.Embedder {
	t.Helper()
	c := endpoint.Config{URL: e.URL(), Model: "some-model", Key: key, Timeout: 30 * time.Second, QueryTimeout: 30 * time.Second}
	for _, f := range change {
		f(&c)
	}
	m, err := endpoint.New(c, cache)
	require.NoError(t, err)
	return m
}

func want(texts ...string) (list []recall.Vector) {
	for _, text := range texts {
		list = append(list, recall.Quantize(static.Embed(text)))
	}
	return list
}

func texts(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("The parser of file %d fails.", i))
	}
	return list
}

func TestTextsAreEmbeddedInOrderAndPaidForOnce(t *testing.T) {
	e, cache := llmtest.Embedding(t), &memory{}
	m := model(t, e, cache, func(c *endpoint.Config) { c.Batch = 10 })
	list := append(texts(25), texts(3)...)
	got, err := m.Embed(t.Context(), "t", list)
	require.NoError(t, err)
	require.Equal(t, want(list...), got)
	require.Equal(t, 3, e.Calls())
	require.Equal(t, "Bearer "+key, e.Requests()[0].Header.Get("Authorization"))
	require.Equal(t, "some-model", e.Requests()[0].Body["model"])

	again := model(t, e, cache)
	got, err = again.Embed(t.Context(), "t", append(texts(26), "new"))
	require.NoError(t, err)
	require.Equal(t, want(append(texts(26), "new")...), got)
	require.Equal(t, 4, e.Calls())
	require.Equal(t, endpoint.Stats{Texts: 2, Cached: 25, Calls: 1, Tokens: 20}, again.Stats())
}

func TestTenantsAndModelsShareNoVectors(t *testing.T) {
	e, cache := llmtest.Embedding(t), &memory{}
	for i, one := range []struct{ tenant, model string }{{"t", "a"}, {"u", "a"}, {"t", "b"}, {"t", "a"}} {
		_, err := model(t, e, cache, func(c *endpoint.Config) { c.Model = one.model }).Embed(t.Context(), one.tenant, []string{"hello"})
		require.NoError(t, err)
		require.Equal(t, min(i+1, 3), e.Calls())
	}
}

func TestARepeatedQueryIsEmbeddedOnce(t *testing.T) {
	e := llmtest.Embedding(t)
	m := model(t, e, nil)
	for range 3 {
		v, err := m.Query(t.Context(), "the parser")
		require.NoError(t, err)
		require.Equal(t, want("the parser")[0], v)
	}
	require.Equal(t, 1, e.Calls())
	for i := range 1000 { // older ones are evicted, which only saves memory
		_, err := m.Query(t.Context(), fmt.Sprint("query ", i%300))
		require.NoError(t, err)
	}
	_, err := m.Query(t.Context(), strings.Repeat("long ", 100_000))
	require.NoError(t, err)
	require.Less(t, len(e.Requests()[e.Calls()-1].Text), 3_000)
}

func TestARefusedTextIsFoundAmongTheOthers(t *testing.T) {
	e, cache := llmtest.Embedding(t), &memory{}
	refusing := func(w http.ResponseWriter, r *http.Request) {
		last := e.Requests()[e.Calls()-1]
		if strings.Contains(last.Text, "file 7 ") {
			llmtest.Failure(http.StatusBadRequest, "invalid_request_error", "too long")(w, r)
			return
		}
		e.Pass()(w, r)
	}
	e.Reply(refusing)
	m := model(t, e, cache)
	_, err := m.Embed(t.Context(), "t", texts(16))
	require.ErrorIs(t, err, projection.ErrRejected)
	require.ErrorContains(t, err, "HTTP 400")
	_, err = m.Embed(t.Context(), "t", []string{texts(8)[7]})
	require.ErrorIs(t, err, projection.ErrRejected)
	_, err = m.Embed(t.Context(), "t", texts(7))
	require.NoError(t, err)
}

func TestNoTextIsSkippedIfTheEndpointRefusesAll(t *testing.T) {
	e := llmtest.Embedding(t)
	e.Reply(llmtest.Failure(http.StatusBadRequest, "invalid_request_error", "no such model: secret"))
	_, err := model(t, e, &memory{}).Embed(t.Context(), "t", texts(3))
	require.NotErrorIs(t, err, projection.ErrRejected)
	require.ErrorContains(t, err, "the model's name")
	require.NotContains(t, err.Error(), "secret")
}

func TestErrorsOfAnEndpointContainNeitherKeyNorTexts(t *testing.T) {
	for name, c := range map[string]struct {
		reply llmtest.Reply
		says  string
	}{
		"key":  {llmtest.Failure(http.StatusUnauthorized, "x", "bad key "+key), "HTTP 401: check the key"},
		"path": {llmtest.Failure(http.StatusNotFound, "x", "not here"), "HTTP 404: check the URL and the model"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, "HTTP 302: check the URL and the model"},
		"page":       {llmtest.HTML, "not what its API describes"},
		"fewer":      {llmtest.Vectors([]float32{1, 2}), "answers 2 texts with 1 vectors"},
		"none":       {llmtest.Raw(`{"data":[]}`), "with 0 vectors"},
		"empty":      {llmtest.Vectors(nil, nil), "not what its API describes"},
		"dimensions": {llmtest.Vectors([]float32{1, 2}, []float32{1, 2, 3}), "answers with 3 dimensions instead of 2"},
		"hangs":      {llmtest.Hang, "in time"},
		"breaks":     {llmtest.Break, "the endpoint can't be reached: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := llmtest.Embedding(t)
			e.Reply(c.reply)
			m := model(t, e, &memory{}, func(c *endpoint.Config) {
				if name == "hangs" {
					c.Timeout = 100 * time.Millisecond
				}
			})
			_, err := m.Embed(t.Context(), "t", texts(2))
			require.ErrorContains(t, err, c.says)
			require.NotErrorIs(t, err, projection.ErrRejected)
			require.NotContains(t, err.Error(), key)
			require.NotContains(t, err.Error(), "parser")
			e.Reply(e.Pass())
			got, err := m.Embed(t.Context(), "t", texts(2))
			if name != "dimensions" && name != "hangs" {
				require.NoError(t, err)
				require.Equal(t, want(texts(2)...), got)
			}
		})
	}
}

func TestAVectorWithTheWrongDimensionsIsRefused(t *testing.T) {
	e := llmtest.Embedding(t)
	m := model(t, e, &memory{}, func(c *endpoint.Config) { c.Dimensions = 64 })
	_, err := m.Query(t.Context(), "hello")
	require.ErrorContains(t, err, "128 dimensions instead of 64")
	require.EqualValues(t, 64, e.Requests()[0].Body["dimensions"])
	require.Equal(t, "some-model/64", m.Model())
}

func TestAnAnswerWithVectorsOfDifferentLengthsTeachesNothing(t *testing.T) {
	e := llmtest.Embedding(t)
	e.Reply(llmtest.Vectors([]float32{1, 2, 3}, []float32{1, 2, 3, 4}), e.Pass())
	m := model(t, e, &memory{})
	_, err := m.Embed(t.Context(), "t", texts(2))
	require.ErrorContains(t, err, "4 dimensions instead of 3")
	got, err := m.Embed(t.Context(), "t", texts(2))
	require.NoError(t, err, "the endpoint is in order again")
	require.Equal(t, want(texts(2)...), got)
}

func TestFiveFailuresPauseTheEndpoint(t *testing.T) {
	e := llmtest.Embedding(t)
	e.Reply(llmtest.Failure(http.StatusInternalServerError, "x", "out of order"))
	m := model(t, e, &memory{})
	for i := range 8 {
		_, err := m.Query(t.Context(), fmt.Sprint("query ", i))
		require.ErrorContains(t, err, "HTTP 500")
		require.Equal(t, min(i+1, 5), e.Calls())
		if i >= 5 {
			require.ErrorContains(t, err, "not asked")
		}
	}
}

func TestAPausedEndpointSaysWhatFailed(t *testing.T) {
	e := llmtest.Embedding(t)
	held := make(chan struct{})
	e.Reply(
		func(_ http.ResponseWriter, r *http.Request) { close(held); <-r.Context().Done() },
		func(w http.ResponseWriter, r *http.Request) {
			<-held
			llmtest.Refused(http.StatusUnauthorized, "")(w, r)
		},
		llmtest.Refused(http.StatusUnauthorized, ""),
	)
	m := model(t, e, &memory{}, func(c *endpoint.Config) { c.Batch = 1 })
	_, err := m.Embed(t.Context(), "t", texts(2)) // the second call fails, which cancels the first
	require.ErrorContains(t, err, "check the key")
	require.EqualValues(t, 1, m.Stats().Failures)
	for i := range 4 {
		_, err = m.Query(t.Context(), fmt.Sprint("query ", i))
		require.ErrorContains(t, err, "check the key")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = m.Query(ctx, "a search that its caller left")
	_, err = m.Query(t.Context(), "hello")
	require.EqualError(t, err, "not asked, because it has failed: the endpoint answers HTTP 401: check the key")
}

func TestASearchDoesNotWaitLongForItsQuery(t *testing.T) {
	e := llmtest.Embedding(t)
	e.Reply(llmtest.Hang)
	m := model(t, e, nil, func(c *endpoint.Config) { c.QueryTimeout = 50 * time.Millisecond })
	_, err := m.Query(t.Context(), "hello")
	require.ErrorContains(t, err, "in time")
}

func TestCallersWithoutTimeSayNothingOfTheEndpoint(t *testing.T) {
	e := llmtest.Embedding(t)
	m := model(t, e, nil)
	for range 10 { // more than open the breaker
		_, err := m.Query(tooLate(t), "hello")
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	_, err := m.Query(t.Context(), "hello")
	require.NoError(t, err)
	require.Zero(t, m.Stats().Failures)
}

func TestAModelNeedsANameAndAURL(t *testing.T) {
	for _, c := range []endpoint.Config{{}, {URL: "localhost:1/v1", Model: "m"}, {URL: "ftp://localhost/v1", Model: "m"}, {URL: "http://localhost/v1"}} {
		_, err := endpoint.New(c, nil)
		require.Error(t, err, "%+v", c)
	}
}

func TestACallForMessagesIsRetriedAfterTransientFailures(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]llmtest.Reply{
		"server error": llmtest.Failure(http.StatusServiceUnavailable, "x", ""),
		"conflict":     llmtest.Failure(http.StatusConflict, "x", ""),
		"broken":       llmtest.Break,
		"asked to wait": func(w http.ResponseWriter, r *http.Request) {
			llmtest.Busy(http.StatusTooManyRequests, "1")(w, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := llmtest.Embedding(t)
			e.Reply(first, e.Pass())
			began := time.Now()
			_, err := model(t, e, &memory{}).Embed(t.Context(), "t", texts(2))
			require.NoError(t, err)
			require.Equal(t, 2, e.Calls())
			if name == "asked to wait" {
				require.GreaterOrEqual(t, time.Since(began), time.Second)
			}
		})
	}
	t.Run("not if time is too short", func(t *testing.T) {
		t.Parallel()
		e := llmtest.Embedding(t)
		e.Reply(llmtest.Busy(http.StatusTooManyRequests, "60"))
		began := time.Now()
		_, err := model(t, e, &memory{}).Embed(t.Context(), "t", texts(2))
		require.ErrorContains(t, err, "HTTP 429: too many requests")
		require.Equal(t, 1, e.Calls())
		require.Less(t, time.Since(began), 25*time.Second, "its time is 30 s")
	})
	t.Run("a wrong configuration is not retried", func(t *testing.T) {
		t.Parallel()
		e := llmtest.Embedding(t)
		e.Reply(llmtest.Failure(http.StatusUnauthorized, "x", ""))
		_, err := model(t, e, &memory{}).Embed(t.Context(), "t", texts(2))
		require.ErrorContains(t, err, "check the key")
		require.Equal(t, 1, e.Calls())
	})
}
