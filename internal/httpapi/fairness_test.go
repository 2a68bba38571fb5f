package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
)

// silentModel returns the URL of a model that does not answer until the test ends, and a channel with its requests.
func silentModel(t *testing.T) (url string, asked chan bool) {
	t.Helper()
	asked = make(chan bool, 100)
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- true
		<-release
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	return server.URL, asked
}

// long returns a conversation of which a part is due for a summary.
func long(id string) [][]byte {
	turns := make([][]byte, 12)
	for n := range turns {
		turn := fmt.Sprint(id, "-", n)
		turns[n] = structured(id, turn, message(turn, "user", strings.Repeat("word ", 500)))
	}
	return turns
}

func TestWhoWaitsForASummaryTakesNoPlaceOfReaders(t *testing.T) {
	url, asked := silentModel(t)
	b := analyzing(t, url, "")
	const requests = 20 // there are 16 places
	for n := range requests {
		for _, line := range long(fmt.Sprint("c", n)) {
			b.publish(line)
		}
	}
	<-asked
	var waiting sync.WaitGroup
	defer waiting.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for n := range requests {
		waiting.Go(func() {
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s/v1/conversations/c%d/summarize?wait_ms=600000", b.HTTPURL(), n), nil)
			if err != nil {
				t.Error(err)
				return
			}
			if response, err := http.DefaultClient.Do(request); err == nil {
				_ = response.Body.Close()
			}
		})
	}
	time.Sleep(time.Second) // until they wait
	for n := range 3 {
		response, raw := b.send(http.MethodGet, fmt.Sprintf("/v1/conversations/c%d/context", n), nil, nil)
		require.Equal(t, http.StatusOK, response.StatusCode, "%s", raw)
	}
	cancel()
	waiting.Wait()
	var counted string
	require.Eventually(t, func() bool {
		b.get("/metrics", &counted)
		return strings.Contains(counted, `http_route="/v1/conversations/{id}/summarize",`)
	}, mnemetest.Patience, 20*time.Millisecond)
	require.NotContains(t, counted, `http_response_status_code="503"`, "nothing failed: who asked has left")
}

func TestReadinessConcealsFromThoseWithoutATokenWhatTheStatusConceals(t *testing.T) {
	t.Parallel()
	c := withModel(t, "http://127.0.0.1:1")
	c.Access.TokensFile = filepath.Join(t.TempDir(), "tokens.jsonl")
	require.NoError(t, os.WriteFile(c.Access.TokensFile, nil, 0o600))
	c.Access.Quotas = filepath.Join(t.TempDir(), "quotas.yaml") // whose price is not known, so the summaries wait
	require.NoError(t, os.WriteFile(c.Access.Quotas, []byte("tenants: {team: {model_cost_per_hour: 2}}\n"), 0o600))
	i, err := instance.Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close()) })
	g := &guarded{&bundle{t, i}, access.NewFile(c.Access.TokensFile)}
	token, _ := g.token(access.Rights{AllTenants: true, Role: access.Operate})
	header := with(bearer(token), "Content-Type", events.ContentTypeEvent)
	for _, line := range long("c") {
		response, raw := g.send(http.MethodPost, "/v1/events?tenant=team", header, line)
		require.Equal(t, http.StatusCreated, response.StatusCode, "%s", raw)
	}
	require.Eventually(t, func() bool {
		_, raw := g.send(http.MethodGet, "/v1/status", bearer(token), nil)
		return strings.Contains(string(raw), `the tenant \"team\" has a quota of model cost`)
	}, mnemetest.Patience, 20*time.Millisecond)
	response, raw := g.send(http.MethodGet, "/readyz", nil, nil)
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Contains(t, string(raw), "only a token of all tenants is told why")
	require.NotContains(t, string(raw), "team")
}

// blankLines are a body that ends with the context. It must not be silent: the answer to a request that is refused waits
// for a part of its body.
type blankLines struct{ context.Context }

func (b blankLines) Read(p []byte) (int, error) {
	select {
	case <-b.Done():
		return 0, io.EOF
	case <-time.After(10 * time.Millisecond):
		for i := range p {
			p[i] = '\n'
		}
		return len(p), nil
	}
}

func TestCallsOfToolsCountAgainstTheQuotasOfTheirTenant(t *testing.T) {
	b := limited(t, "default: {events_per_second: 0.4}\ntenants:\n  busy: {requests: 1}\n")
	call := func(tenant, body string) (*http.Response, string) {
		response, raw := b.send(http.MethodPost, "/mcp?project=shop&tenant="+tenant, map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25",
		}, []byte(body))
		return response, string(raw)
	}
	stored := 0
	for n := range 5 {
		response, answer := call("small", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_remember","arguments":{"text":"Note %d"}}}`, n))
		require.Equal(t, http.StatusOK, response.StatusCode, answer)
		if !strings.Contains(answer, `"isError":true`) {
			stored++
		} else {
			require.Contains(t, answer, "over its quota of 0.4 events per second")
		}
	}
	require.Less(t, stored, 5, "a note is two events, and ten seconds have four")
	require.Positive(t, stored)

	ctx, cancel := context.WithCancel(t.Context())
	var importing sync.WaitGroup
	defer importing.Wait()
	defer cancel()
	importing.Go(func() {
		for ctx.Err() == nil { // a call may have the place first
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.HTTPURL()+"/v1/import?tenant=busy", blankLines{ctx})
			if err != nil {
				t.Error(err)
				return
			}
			request.Header.Set("Content-Type", "application/x-ndjson")
			if response, err := http.DefaultClient.Do(request); err == nil {
				_ = response.Body.Close()
			}
		}
	})
	require.Eventually(t, func() bool {
		response, answer := call("busy", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		return response.StatusCode == http.StatusTooManyRequests && strings.Contains(answer, "1 requests at the same time")
	}, mnemetest.Patience, 20*time.Millisecond, "the import is the one request")
}

func TestARepeatedRequestCostsNoQuota(t *testing.T) {
	b := limited(t, "default: {events_per_second: 0.1}\n") // one in ten seconds
	create := func(key string) int {
		response, raw := b.send(http.MethodPost, "/v1/conversations", map[string]string{"Content-Type": "application/json", "Idempotency-Key": key}, []byte(`{"title":"Once"}`))
		if response.StatusCode == http.StatusTooManyRequests {
			require.Contains(t, string(raw), "over its quota")
		}
		return response.StatusCode
	}
	first := create("a")
	require.Equal(t, http.StatusCreated, first)
	require.Equal(t, http.StatusTooManyRequests, create("b"))
	require.Eventually(t, func() bool { return create("a") == first }, mnemetest.Patience, 20*time.Millisecond, "once the read model knows it")
	require.Equal(t, first, create("a"))
}

func TestOneTenantsImportsLeaveAPlaceForOthers(t *testing.T) {
	b := setup(t)
	for range 4 { // all places there are
		body, write := io.Pipe()
		defer func() { _ = write.Close() }()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.HTTPURL()+"/v1/import?tenant=slow", body)
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/x-ndjson")
		go func() {
			if response, err := http.DefaultClient.Do(request); err == nil {
				_ = response.Body.Close()
			}
		}()
		go func() { _, _ = write.Write([]byte("\n")) }() // it begins, and does not end
	}
	time.Sleep(500 * time.Millisecond) // until they have their places
	line := structured("c", "one", message("one", "user", "hello"))
	response, raw := b.send(http.MethodPost, "/v1/import?tenant=quick", map[string]string{"Content-Type": "application/x-ndjson"}, append(line, '\n'))
	require.Equal(t, http.StatusOK, response.StatusCode, "%s", raw)
}

func TestOneTenantsSlowCallsOfToolsLeaveAPlaceForOthers(t *testing.T) {
	held := make(chan struct{})
	b := setupHeld(t, true, held)
	call := func(ctx context.Context, tenant, method, params string) (status int, err error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.HTTPURL()+"/mcp?tenant="+tenant, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`))
		if err != nil {
			return 0, err
		}
		request.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2025-11-25"}}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		_, err = io.Copy(io.Discard, response.Body)
		return response.StatusCode, errors.Join(err, response.Body.Close())
	}
	slow, cancel := context.WithCancel(t.Context())
	var calling sync.WaitGroup
	defer calling.Wait()
	defer close(held)
	defer cancel()
	for range 40 { // more than there are places
		calling.Go(func() {
			_, _ = call(slow, "default", "tools/call", `{"name":"memory_search","arguments":{"query":"parser","conversation":"c"}}`)
		})
	}
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := call(ctx, "default", "tools/list", "{}")
		return err != nil
	}, mnemetest.Patience, 20*time.Millisecond, "the tenant has no place left")
	status, err := call(t.Context(), "quick", "tools/list", "{}") // one that finds no place is refused after ten seconds
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
}
