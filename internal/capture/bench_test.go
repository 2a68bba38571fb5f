package capture

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/mnemetest"
)

// BenchmarkFollowing measures how long a line of a followed transcript takes from the disk to the log.
func BenchmarkFollowing(b *testing.B) {
	on := newBench(b)
	path := on.path("project/s.jsonl")
	add(b, path, line("s", 0))
	on.follower(Config{}, usual)
	on.awaitEvents(2)
	var took []time.Duration
	for b.Loop() {
		time.Sleep(100 * time.Millisecond)
		n := len(took)
		began := time.Now()
		add(b, path, line("s", n+1))
		for on.events(b, "t") < n+3 {
			time.Sleep(100 * time.Microsecond)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// BenchmarkIdle follows 5,000 files that do not change. Run it with -benchtime=1x.
func BenchmarkIdle(b *testing.B) {
	const files, watched = 5000, 30 * time.Second
	for _, notify := range []bool{true, false} {
		b.Run(fmt.Sprintf("notify=%t", notify), func(b *testing.B) {
			on := newBench(b)
			for i := range files { // empty, or else it takes minutes until they are read
				add(b, on.path(fmt.Sprintf("project%d/s%d.jsonl", i%100, i)), "")
			}
			p := usual
			p.notify = notify
			r := on.follower(Config{}, p)
			await(b, r, done)
			cpu := mnemetest.ReportCPU(b)
			for b.Loop() {
				time.Sleep(watched)
			}
			cpu()
		})
	}
}

// BenchmarkHistory reads 30 sessions of 1 MB each that the log does not know.
func BenchmarkHistory(b *testing.B) {
	const files, size = 30, 1 << 20 // the log of a bench holds 64 MB
	for b.Loop() {
		b.StopTimer()
		on := newBench(b)
		for i, path := range on.sessions(files) {
			var text strings.Builder
			for n := 1; text.Len() < size; n++ {
				text.WriteString(strings.Replace(line(fmt.Sprint("s", i), n), "prompt", strings.Repeat("The parser skips blank lines. ", 1+n%58), 1))
			}
			add(b, path, text.String())
			b.SetBytes(int64(files * text.Len()))
		}
		b.StartTimer()
		r := on.follower(Config{StillWritten: time.Nanosecond, Lookup: func(_ context.Context, list []events.Event) ([]importer.Known, error) {
			return make([]importer.Known, len(list)), nil
		}}, usual)
		await(b, r, done)
		b.StopTimer()
		require.Empty(b, r.Status().LastError)
		r.Close()
		b.StartTimer()
	}
}
