package quota

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"mneme.dev/mneme/events"
)

// Use is what a tenant uses of one quota.
type Use struct {
	Name  string  // of the field in the file
	Used  float64 // for a rate, about the average of the last ten seconds
	Limit float64 // 0 for none
}

// Share is what part of the quota is used, 0 without a limit.
func (u Use) Share() float64 {
	if u.Limit == 0 {
		return 0
	}
	return u.Used / u.Limit
}

// Tenant is what one tenant uses and may use.
type Tenant struct {
	Name   string
	Listed bool // in the file; otherwise it has the default's limits
	Uses   []Use
}

func (t *Tenant) share() (most float64) {
	for _, u := range t.Uses {
		most = max(most, u.Share())
	}
	return most
}

// Report is what tenants use and may use.
type Report struct {
	// Tenants are those that the file names, that the log holds events of, or that took something a moment
	// ago. The one that is nearest to a limit is first.
	Tenants []Tenant
	// Counting says that the figures of what tenants store are lower bounds, because the log has not been read to its
	// end yet.
	Counting bool
	// Problem says why the file can't be read; "" if it can. The quotas that were read before are then in force.
	Problem string
}

// Report returns what tenants use now. It leaves out what they store while no quota bounds that.
func (q *Quotas) Report() Report {
	var report Report
	if q == nil {
		return report
	}
	counts := q.meter != nil && q.counts()
	stored := map[string]Stored{}
	if counts {
		stored, report.Counting = q.meter.tenants()
	}
	q.lock.Lock()
	defer q.lock.Unlock()
	if q.wrong != nil {
		report.Problem = inOneLine(q.wrong)
	}
	names, now := map[string]bool{}, time.Now()
	for name := range q.limits.Tenants {
		names[name] = true
	}
	for name, t := range q.tenants {
		if t.taken(now) != (taking{}) {
			names[name] = true
		}
	}
	for name, budget := range q.models {
		if calls, tokens, _ := budget.Used(); calls > 0 || tokens > 0 {
			names[name] = true
		}
	}
	for name := range stored {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		limits := q.of(name)
		_, listed := q.limits.Tenants[name]
		t := Tenant{Name: name, Listed: listed}
		add := func(field string, used, limit float64) {
			if limit > 0 || used > 0 {
				t.Uses = append(t.Uses, Use{field, used, limit})
			}
		}
		taken := q.tenants[name].taken(now)
		if limits.Requests > 0 {
			add("requests", taken.requests, float64(limits.Requests))
		}
		if limits.Reads > 0 {
			add("reads", taken.reads, float64(limits.Reads))
		}
		add("events_per_second", taken.events, limits.Events)
		add("bytes_per_second", taken.bytes, limits.Bytes)
		if counts {
			add("max_events", float64(stored[name].Events), float64(limits.MaxEvents))
			add("max_bytes", float64(stored[name].Bytes), float64(limits.MaxBytes))
		}
		if q.models != nil {
			var calls int
			var tokens int64
			var cost float64
			if budget := q.models[name]; budget != nil {
				calls, tokens, cost = budget.Used()
			}
			add("model_calls_per_hour", float64(calls), float64(limits.Calls))
			add("model_tokens_per_hour", float64(tokens), float64(limits.Tokens))
			add("model_cost_per_hour", cost, limits.Cost)
		}
		report.Tenants = append(report.Tenants, t)
	}
	slices.SortStableFunc(report.Tenants, func(a, b Tenant) int { return cmp.Compare(b.share(), a.share()) })
	return report
}

// taking is what a tenant takes at a moment.
type taking struct{ requests, reads, events, bytes float64 }

func (t *tenant) taken(now time.Time) taking {
	if t == nil {
		return taking{}
	}
	return taking{float64(t.requests), float64(t.reads), average(t.events, now), average(t.bytes, now)}
}

// average is how much of a limiter was taken per second.
func average(l *rate.Limiter, now time.Time) float64 {
	if l == nil {
		return 0
	}
	return max(0, float64(l.Burst())-l.TokensAt(now)) / burst
}

// tenants returns what every tenant stores, and whether part of the log is still to be read.
func (m *Meter) tenants() (all map[string]Stored, counting bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	all = map[string]Stored{}
	for escaped, s := range m.counted {
		if name, err := events.Unescape(escaped); err == nil { // otherwise no tenant of the API has this name
			all[name] = s
		}
	}
	for name := range m.held {
		all[name] = m.used(name)
	}
	return all, !m.complete
}
