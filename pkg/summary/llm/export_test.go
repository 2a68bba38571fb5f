package llm

import "time"

// Fast shortens the waits of endpoints. The breaker opens after this many failures and stays open
// for a while.
func Fast(failures uint32, open time.Duration) *Endpoints {
	return &Endpoints{timing: timing{tries: 3, first: time.Millisecond, longest: 10 * time.Second, failures: failures, open: open}}
}
