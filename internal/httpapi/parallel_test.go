package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
)

// Many concurrent clients write, wait for their writes, and read. A client that is told to
// try again does so.
func TestManyConcurrentClientsLoseNothing(t *testing.T) {
	b, _ := up(t) // not parallel: no other test may run at the same time
	const clients, rounds, shared = 200, 2, 10
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	var again atomic.Int64
	do := func(method, path string, body []byte) []byte {
		for {
			request, err := http.NewRequestWithContext(ctx, method, b.HTTPURL()+path, bytes.NewReader(body))
			if !assert.NoError(t, err) {
				return nil
			}
			request.Header.Set("Content-Type", events.ContentTypeEvent)
			response, err := client.Do(request)
			if !assert.NoError(t, err, path) {
				return nil
			}
			text, err := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if !assert.NoError(t, err, path) {
				return nil
			}
			switch response.StatusCode {
			case http.StatusOK, http.StatusCreated:
				return text
			case http.StatusServiceUnavailable, http.StatusGatewayTimeout:
				var p problem
				assert.NoError(t, json.Unmarshal(text, &p))
				assert.NotEmpty(t, p.Detail)
				again.Add(1)
			default:
				assert.Fail(t, "an answer that helps nobody", "%s %s: %d %s", method, path, response.StatusCode, text)
				return nil
			}
		}
	}
	var all sync.WaitGroup
	for n := range clients {
		all.Go(func() {
			conversation := fmt.Sprint("c", n%shared)
			for round := range rounds {
				id := fmt.Sprintf("%d-%d", n, round)
				var published publishAnswer
				if json.Unmarshal(do(http.MethodPost, "/v1/events", structured(conversation, id, message("m"+id, "user", "I am "+id))), &published) != nil {
					return
				}
				read := do(http.MethodGet, fmt.Sprintf("/v1/conversations/%s/context?format=markdown&at_least=%d", conversation, published.Seq), nil)
				assert.Contains(t, string(read), "I am "+id, "a client reads what it wrote")
				for _, path := range []string{"/v1/conversations", "/v1/conversations/" + conversation + "/files", "/v1/status", "/v1/conversations/" + conversation}[n%4 : n%4+1] {
					do(http.MethodGet, path, nil)
				}
				if n%20 == round {
					do(http.MethodGet, "/v1/conversations/"+conversation+"/export", nil)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d answers were: ask again", again.Load())
	require.EqualValues(t, clients*rounds, b.head())
	total := 0
	for n := range shared {
		var c httpapi.Conversation
		b.get(fmt.Sprintf("/v1/conversations/c%d?at_least=%d", n, b.head()), &c)
		total += c.MessageCount
	}
	require.Equal(t, clients*rounds, total)
}
