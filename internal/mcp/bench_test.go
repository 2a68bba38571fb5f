package mcp_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
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

// BenchmarkStart measures how long an agent that starts mneme mcp waits for the first answer of a tool: the program starts,
// finds out where it is, connects to the server and reads the context of the project. It reports the median in milliseconds.
func BenchmarkStart(b *testing.B) {
	i, err := instance.Start(b.Context(), instance.Config{Data: b.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	defer func() { require.NoError(b, i.Close()) }()
	binary, err := mnemetest.Binary()
	require.NoError(b, err)
	var took []float64
	for b.Loop() {
		cmd := exec.CommandContext(b.Context(), binary, "mcp", "--project", "shop")
		cmd.Env = append(os.Environ(), "MNEME_URL="+i.HTTPURL())
		began := time.Now()
		agent, err := sdk.NewClient(&sdk.Implementation{Name: "bench"}, nil).Connect(b.Context(), &sdk.CommandTransport{Command: cmd}, nil)
		require.NoError(b, err)
		result, err := agent.CallTool(b.Context(), &sdk.CallToolParams{Name: "memory_context"})
		require.NoError(b, err)
		require.False(b, result.IsError)
		took = append(took, float64(time.Since(began).Microseconds())/1_000)
		require.NoError(b, agent.Close())
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "first-answer-p50-ms")
	b.ReportMetric(took[len(took)*99/100], "first-answer-p99-ms")
}
