package capture

import (
	"fmt"
	"testing"
	"time"

	"mneme.dev/mneme/internal/mnemetest"
)

// BenchmarkIdle follows 5,000 files that do not change, with and without the help of the system. Run it with -benchtime=1x.
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
