package service_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/llmtest"
	"mneme.dev/mneme/internal/settings"
)

func TestATenantOverItsQuotaOfModelsWaitsAndOthersGoOn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "quotas.yaml")
	require.NoError(t, os.WriteFile(path, []byte("tenants: {default: {model_calls_per_hour: 2}}\n"), 0o600))
	endpoint := llmtest.New(t)
	endpoint.Reply(llmtest.Chat(draft))
	up := settings.ForUp()
	require.NoError(t, settings.Read(up))
	up.MaxContextChars = 30_000
	model(endpoint)(&up.Summaries)
	up.Summaries.Deadline = 100 * time.Millisecond
	started, err := instance.Start(t.Context(), instance.Config{
		Data: t.TempDir(), Summaries: up.Summaries, Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler), Access: settings.Access{Quotas: path},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, started.Close()) })
	i := running{t, started}
	i.publish(long(t, "c", 0, 60))
	i.awaitSummaries("c", func(list []httpapi.Summary) bool { return len(list) == 2 })
	require.Eventually(t, func() bool {
		s := i.status("summaries")
		return s.Error == `1 conversation is waiting to be summarized: the model is not available: the tenant "default" is over its quota of 2 model calls an hour`
	}, patience, 20*time.Millisecond, "%s", i.status("summaries").Error)
	require.Contains(t, i.get("/v1/quotas"), `{"name":"model_calls_per_hour","used":2,"limit":2}`)
	require.Contains(t, i.get("/metrics"), `mneme_model_failures_total{class="over_quota"}`)

	_, err = i.Log.PublishAll(mnemetest.Context(t), "other", long(t, "c", 0, 60))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return endpoint.Calls() > 7 }, patience, 20*time.Millisecond, "another tenant goes on")
	require.Len(t, i.summaries("c", ""), 2, "no deadline ends the wait")

	require.NoError(t, os.WriteFile(path, []byte("tenants: {default: {model_calls_per_hour: 1000}}\n"), 0o600))
	require.Eventually(t, func() bool {
		status, _ := i.ask(http.MethodPost, "/v1/conversations/c/summarize?wait_ms=20000", "")
		return status == http.StatusOK
	}, patience, 200*time.Millisecond)
	for _, s := range i.summaries("c", "") {
		require.Equal(t, "llm", s.Method, fmt.Sprint(s))
	}
	require.Greater(t, len(i.summaries("c", "")), 5)
}

func TestATenantOverItsQuotaOfCostWaitsAndOneWhoseModelHasNoPriceDoesNotBegin(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	quotas, prices := filepath.Join(folder, "quotas.yaml"), filepath.Join(folder, "prices.yaml")
	require.NoError(t, os.WriteFile(quotas, []byte("tenants: {default: {model_cost_per_hour: 2}}\n"), 0o600))
	require.NoError(t, os.WriteFile(prices, fmt.Appendf(nil, "currency: EUR\nmodels: {sm*: {input: %d, output: 0}}\n", 1_000_000/llmtest.InputTokens), 0o600)) // 1 a call
	for _, c := range []struct {
		prices, says, used string
		calls              int
	}{
		{prices, `the tenant "default" is over its quota of a model cost of 2 an hour`, `{"name":"model_cost_per_hour","used":2,"limit":2}`, 2},
		{"", `the tenant "default" has a quota of model cost, and the price of the model "small" is not known`, `{"name":"model_cost_per_hour","used":0,"limit":2}`, 0},
	} {
		endpoint := llmtest.New(t)
		endpoint.Reply(llmtest.Chat(draft))
		up := settings.ForUp()
		require.NoError(t, settings.Read(up))
		up.MaxContextChars = 30_000
		model(endpoint)(&up.Summaries)
		up.Summaries.Parallel = 1
		started, err := instance.Start(t.Context(), instance.Config{
			Data: t.TempDir(), Summaries: up.Summaries, Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler), Access: settings.Access{Quotas: quotas}, Insights: settings.Insights{Prices: c.prices},
		})
		require.NoError(t, err)
		i := running{t, started}
		i.publish(long(t, "c", 0, 60))
		require.Eventually(t, func() bool {
			return i.status("summaries").Error == "1 conversation is waiting to be summarized: the model is not available: "+c.says
		}, patience, 20*time.Millisecond, "%s", i.status("summaries").Error)
		require.Equal(t, c.calls, endpoint.Calls())
		require.Contains(t, i.get("/v1/quotas"), c.used)
		require.NoError(t, started.Close())
	}
}
