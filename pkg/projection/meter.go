package projection

import "time"

// meterSpan is the number of whole seconds that a rate covers.
const meterSpan = 5

// meter measures events per second by the monotonic clock.
type meter struct {
	now   func() time.Duration
	began time.Duration
	last  int64              // the last second counted
	count [meterSpan + 1]int // events per second, including the current one
}

func newMeter() meter {
	start := time.Now()
	return newMeterOf(func() time.Duration { return time.Since(start) })
}

func newMeterOf(now func() time.Duration) meter { return meter{now: now, began: now()} }

// add counts events.
func (m *meter) add(events int) {
	second := m.turn()
	m.count[second%int64(len(m.count))] += events
}

// turn clears the counts of seconds that are too old, and returns the current second.
func (m *meter) turn() int64 {
	second := int64(m.now() / time.Second)
	for m.last = max(m.last, second-int64(len(m.count))); m.last < second; {
		m.last++
		m.count[m.last%int64(len(m.count))] = 0
	}
	return second
}

// rate returns events per second over the last five seconds and the current one.
func (m *meter) rate() float64 {
	m.turn()
	total := 0
	for _, n := range m.count {
		total += n
	}
	now := m.now()
	span := min(now-m.began, now%time.Second+meterSpan*time.Second)
	return float64(total) / max(span, time.Second).Seconds()
}
