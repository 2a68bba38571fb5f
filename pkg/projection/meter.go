package projection

import "time"

// meterSpan is over how many whole seconds a rate is taken.
const meterSpan = 5

// meter measures how many events go by in a second. It reads the monotonic clock.
type meter struct {
	now   func() time.Duration
	began time.Duration
	last  int64              // the second that was counted last
	count [meterSpan + 1]int // by second, the one that is not over among them
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

// turn forgets the seconds that lie too far back, and returns the present one.
func (m *meter) turn() int64 {
	second := int64(m.now() / time.Second)
	for m.last = max(m.last, second-int64(len(m.count))); m.last < second; {
		m.last++
		m.count[m.last%int64(len(m.count))] = 0
	}
	return second
}

// rate is that of the last five seconds and of the one that is not over yet.
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
