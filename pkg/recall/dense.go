package recall

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// dense ranks by meaning: it compares the query with the vectors of the given number of messages, from the
// first one on. Later messages count as not embedded.
func (r *ranking) dense(query Vector, messages int) {
	x, total := r.x, min(r.passages(), len(r.x.norms))
	if messages < len(x.messages) {
		total = min(total, int(x.firsts[messages]))
	}
	if r.byMeaning = false; query == nil || len(query) != x.width || total == 0 {
		return
	}
	r.cosines, r.topCos = sized(r.cosines, r.passages()), sized(r.topCos, r.n)
	r.byMeaning = r.compare(query, total)
}

// lends returns the most that a neighbor lends a message of its meaning.
func (r *ranking) lends(i int) float64 {
	x := r.x
	var near [reach]float64 // the best neighbor at each distance
	for at, d := x.near[i].before, 0; d < len(near) && at >= 0; at, d = x.near[at].before, d+1 {
		near[d] = r.topCos[at]
	}
	for at, d := x.near[i].after, 0; d < len(near) && at >= 0 && int(at) < r.n; at, d = x.near[at].after, d+1 {
		near[d] = max(near[d], r.topCos[at])
	}
	most := 0.0
	for d, cosine := range near {
		most = max(most, float64(r.w.nearness[d]*(cosine-r.topCos[i])))
	}
	return most
}

// compare computes the cosines and the best one of each message. A passage that is not among
// the first embedded ones, or has no vector, counts as the average of the others. compare
// reports whether there are others.
func (r *ranking) compare(query Vector, embedded int) bool {
	x, norm, wide := r.x, query.norm(), widened(query)
	var missing atomic.Bool
	missing.Store(embedded < len(r.cosines))
	inParts(r.n, func(from, to int) {
		var products [256]int32 // so few that they stay in the processor's cache
		end := min(embedded, int(x.firsts[to]))
		for first := int(x.firsts[from]); first < end; first += len(products) {
			some := products[:min(len(products), end-first)]
			dots(wide, x.vectors[first*x.width:(first+len(some))*x.width], some)
			for k, product := range some {
				p := first + k
				if x.norms[p] == 0 {
					missing.Store(true)
					continue
				}
				r.cosines[p] = float64(product) / float64(norm*x.norms[p])
			}
		}
		if !missing.Load() {
			r.top(from, to)
		}
	})
	if !missing.Load() {
		return true
	}
	known, sum := 0, 0.0
	for p, cosine := range r.cosines[:embedded] {
		if x.norms[p] != 0 {
			sum += cosine
			known++
		}
	}
	if known == 0 {
		return false
	}
	for p := range r.cosines {
		if p >= embedded || x.norms[p] == 0 {
			r.cosines[p] = sum / float64(known)
		}
	}
	r.top(0, r.n)
	return true
}

// top sets the best cosine of each message in a range.
func (r *ranking) top(from, to int) {
	first := int(r.x.firsts[from])
	for i := from; i < to; i++ {
		end, top := int(r.x.firsts[i+1]), 0.0
		for _, cosine := range r.cosines[first:end] {
			top = max(top, cosine)
		}
		r.topCos[i], first = top, end
	}
}

// leastPart is how many passages are worth a goroutine: a few hundred microseconds.
const leastPart = 4_000

// inParts calls f for consecutive parts of the range below n, in parallel if n is large.
func inParts(n int, f func(from, to int)) {
	size := max(leastPart, (n+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	var parts sync.WaitGroup
	for from := size; from < n; from += size {
		parts.Go(func() { f(from, min(from+size, n)) })
	}
	f(0, min(size, n))
	parts.Wait()
}
