package bench

import (
	"math"
	"slices"
	"time"
)

// Latencies are repeated measurements of one thing, in milliseconds.
type Latencies struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

func latencies(took []time.Duration) Latencies {
	sorted := slices.Sorted(slices.Values(took))
	at := func(share float64) float64 { // the nearest rank
		if len(sorted) == 0 {
			return 0
		}
		rank := max(int(math.Ceil(share*float64(len(sorted)))), 1)
		return milliseconds(sorted[rank-1])
	}
	return Latencies{Count: len(sorted), P50: at(0.50), P90: at(0.90), P99: at(0.99), Max: at(1)}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// median returns the median of at least one value.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}
