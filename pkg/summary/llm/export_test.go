package llm

import "time"

// Fast makes endpoints wait for less long. The breaker opens after so many failures and
// stays open for a while.
func Fast(failures uint32, open time.Duration) *Endpoints {
	return &Endpoints{timing: timing{tries: 3, first: time.Millisecond, longest: 10 * time.Second, failures: failures, open: open}}
}
