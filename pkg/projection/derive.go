package projection

import (
	"runtime"
	"sync"

	"github.com/sourcegraph/conc/iter"

	"mneme.dev/mneme/events"
)

// deriver is [Projection.Derive] of any projection.
type deriver struct {
	name   string // a fingerprint: equal declarations derive the same
	types  map[string]bool
	derive func(*events.Recorded) any // a func(U), or nil
}

type derivers []*deriver

func (list derivers) of(name string) *deriver {
	for _, d := range list {
		if d.name == name {
			return d
		}
	}
	return nil
}

// deriver returns the projection's own, or nil.
func (p *Projection[U]) deriver() *deriver {
	if p.Derive == nil {
		return nil
	}
	types := map[string]bool{}
	for t := range p.Reducers {
		types[t] = true
	}
	return &deriver{p.Fingerprint(), types, func(e *events.Recorded) any {
		if give := p.Derive(e); give != nil {
			return give
		}
		return nil
	}}
}

// derivation is what a projection derives from one event, once.
type derivation struct {
	by    *deriver
	once  sync.Once
	value any
}

// of returns the derived value. The first call derives it; a call at the same time waits for that.
func (d *derivation) of(e *events.Recorded) any {
	d.once.Do(func() {
		defer func() {
			if recover() != nil { // ignore the panic: the reducer repeats the work, and its panic fails this event alone
				d.value = nil
			}
		}()
		d.value = d.by.derive(e)
	})
	return d.value
}

// derive returns what a batch's events give to the unit. It waits for what was begun and does the
// rest, on several goroutines.
func (p *Projection[U]) derive(entries []*entry) (gives []func(U)) {
	if p.Derive == nil {
		return nil
	}
	var by *deriver
	var open []*entry
	for _, e := range entries {
		if e.invalid != nil || !e.reduced {
			continue
		}
		if e.derivation == nil {
			if by == nil {
				by = p.deriver()
			}
			if e.derivation = e.derivationBy(by.name); e.derivation == nil {
				e.derivation = &derivation{by: by}
			}
		}
		open = append(open, e)
	}
	values := make([]any, len(open))
	iter.ForEachIdx(open, func(i int, e **entry) { values[i] = (*e).derivation.of(&(*e).event) })
	for _, value := range values {
		if give, ok := value.(func(U)); ok {
			gives = append(gives, give)
		}
	}
	return gives
}

func (d *decoded) derivationBy(name string) *derivation {
	for _, of := range d.derived {
		if of.by.name == name {
			return of
		}
	}
	return nil
}

// ahead is how many events wait for the workers of a reader. If there is no room for an event, the projector derives
// from it when it needs the result, so nothing is lost.
const ahead = 256

// work derives from events until the channel is closed.
func work(list <-chan *decoded, ended *sync.WaitGroup) {
	for range max(1, runtime.GOMAXPROCS(0)-1) {
		ended.Go(func() {
			for d := range list {
				for _, of := range d.derived {
					of.of(&d.event)
				}
			}
		})
	}
}
