package httpapi_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/settings"
)

// BenchmarkAnotherTenantDuringAFlood measures the contexts of one tenant while another asks for contexts in 64
// connections without a pause, with a quota of 2 requests at the same time for each, and prints the ratio of the
// 99th percentiles with the flood and without it.
func BenchmarkAnotherTenantDuringAFlood(b *testing.B) {
	path := filepath.Join(b.TempDir(), "quotas.yaml")
	require.NoError(b, os.WriteFile(path, []byte("default: {requests: 2}\n"), 0o600))
	i, err := instance.Start(b.Context(), instance.Config{
		Data: b.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler), Access: settings.Access{Quotas: path},
	})
	require.NoError(b, err)
	defer func() { require.NoError(b, i.Close()) }()
	var last uint64
	for _, tenant := range []string{"quiet", "loud"} {
		for n := range 300 {
			e, err := events.New("c", "test", fmt.Sprint(n), message(fmt.Sprint("m", n), []string{"user", "assistant"}[n%2], fmt.Sprintf("Message %d is about the checkpoint of partition %d.", n, n%7)))
			require.NoError(b, err)
			ack, err := i.Log.Publish(mnemetest.Context(b), tenant, e)
			require.NoError(b, err)
			last = ack.Seq
		}
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	get := func(tenant string) int {
		response, err := client.Get(fmt.Sprintf("%s/v1/conversations/c/context?tenant=%s&at_least=%d&query=checkpoint", i.HTTPURL(), tenant, last))
		if err != nil {
			return 0
		}
		defer func() { _ = response.Body.Close() }()
		_, _ = io.Copy(io.Discard, response.Body)
		return response.StatusCode
	}
	p99 := func() time.Duration {
		all := make([]time.Duration, 0, 2000)
		for range cap(all) {
			began := time.Now()
			require.Equal(b, http.StatusOK, get("quiet"))
			all = append(all, time.Since(began))
		}
		slices.Sort(all)
		return all[len(all)*99/100]
	}
	p99()
	for b.Loop() {
		alone := p99()
		done, flood := make(chan struct{}), sync.WaitGroup{}
		for range 64 {
			flood.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
						if get("loud") == http.StatusTooManyRequests {
							time.Sleep(50 * time.Millisecond) // far less than it is told to wait
						}
					}
				}
			})
		}
		during := p99()
		close(done)
		flood.Wait()
		b.ReportMetric(float64(alone.Microseconds())/1000, "ms-alone")
		b.ReportMetric(float64(during.Microseconds())/1000, "ms-during")
		b.ReportMetric(float64(during)/float64(alone), "ratio")
	}
}
