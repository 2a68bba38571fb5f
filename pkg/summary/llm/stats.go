package llm

import (
	"maps"
	"sync"
)

// Stats holds the counters of a writer since it was made.
type Stats struct {
	Calls        int64           // Requests to the model, failed ones included.
	Failures     map[Class]int64 // Of calls, including those that the breaker or a cap prevented, and unusable answers.
	InputTokens  int64
	OutputTokens int64
	Cost         float64 // By the profile's prices.
	Breaker      string  // closed (all is well), half-open or open.
}

// meter counts for Stats.
type meter struct {
	mu    sync.Mutex
	stats Stats
}

func (m *meter) called() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.Calls++
}

func (m *meter) paid(got answer, cost float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.InputTokens += got.input
	m.stats.OutputTokens += got.output
	m.stats.Cost += cost
}

func (m *meter) failed(class Class) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stats.Failures == nil {
		m.stats.Failures = map[Class]int64{}
	}
	m.stats.Failures[class]++
}

// Stats returns the current counters.
func (w *Writer) Stats() Stats {
	w.meter.mu.Lock()
	defer w.meter.mu.Unlock()
	s := w.meter.stats
	s.Failures = maps.Clone(s.Failures)
	s.Breaker = w.endpoint.state()
	return s
}

// Failures returns the sum over all writers ever made, as in [Stats], for metrics. It has every
// class, with 0 until the first failure.
func (s *Endpoints) Failures() map[Class]int64 {
	total := make(map[Class]int64, len(classes))
	for _, class := range classes {
		total[class] = 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.writers {
		for class, n := range w.failures() {
			total[class] += n
		}
	}
	return total
}

func (w *Writer) failures() map[Class]int64 {
	w.meter.mu.Lock()
	defer w.meter.mu.Unlock()
	return maps.Clone(w.meter.stats.Failures)
}
