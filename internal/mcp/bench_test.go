package mcp_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/instance"
)

// BenchmarkContext compares a call of memory_context with the same context over HTTP, in turn. It
// reports medians and 99th percentiles in milliseconds.
func BenchmarkContext(b *testing.B) {
	i, err := instance.Start(b.Context(), instance.Config{Data: b.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	defer func() { require.NoError(b, i.Close()) }()
	list := []events.Event{}
	for n := range 2_000 {
		e, err := events.New("c", "test", fmt.Sprint(n), said(fmt.Sprint("m", n), []string{"user", "assistant"}[n%2], fmt.Sprintf("message %d about the cart, its vouchers and the total of the order", n)))
		require.NoError(b, err)
		list = append(list, e)
	}
	for part := range slices.Chunk(list, 500) {
		_, err = i.Log.PublishAll(b.Context(), "default", part)
		require.NoError(b, err)
	}
	url := i.HTTPURL() + "/v1/conversations/c/context?format=markdown&max_chars=11680&query=voucher"
	read := func(url string) {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
		require.NoError(b, err)
		response, err := http.DefaultClient.Do(r)
		require.NoError(b, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(b, err)
		require.NoError(b, response.Body.Close())
		require.Equal(b, http.StatusOK, response.StatusCode)
	}
	read(url + fmt.Sprint("&wait_ms=60000&at_least=", len(list)))
	agent, err := sdk.NewClient(&sdk.Implementation{Name: "bench"}, nil).Connect(b.Context(), &sdk.StreamableClientTransport{Endpoint: i.HTTPURL() + "/mcp?project=p", DisableStandaloneSSE: true}, nil)
	require.NoError(b, err)
	defer func() { _ = agent.Close() }()
	var overHTTP, overMCP []float64
	took := func(do func()) float64 {
		began := time.Now()
		do()
		return float64(time.Since(began).Microseconds()) / 1_000
	}
	for b.Loop() {
		overHTTP = append(overHTTP, took(func() { read(url) }))
		overMCP = append(overMCP, took(func() {
			result, err := agent.CallTool(b.Context(), &sdk.CallToolParams{Name: "memory_context", Arguments: arguments{"conversation": "c", "query": "voucher"}})
			require.NoError(b, err)
			require.False(b, result.IsError)
		}))
	}
	for name, list := range map[string][]float64{"http": overHTTP, "mcp": overMCP} {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2], name+"-p50-ms")
		b.ReportMetric(list[len(list)*99/100], name+"-p99-ms")
	}
}
