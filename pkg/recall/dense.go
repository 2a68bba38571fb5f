package recall

import (
	"math"
	"runtime"
	"sync"
)

// dense computes the cosines of the passages of the first messages, and lends each message
// what its neighbors have more.
func (r *ranking) dense(query Vector, messages int) {
	x, total := r.x, min(r.passages(), len(r.x.norms))
	if messages < len(x.messages) {
		total = min(total, int(x.messages[messages].first))
	}
	if query == nil || len(query) != x.width || total == 0 {
		return
	}
	norm, known := query.norm(), 0
	var sum float64
	cosines := make([]float64, r.passages())
	inParts(len(cosines), func(from, to int) {
		for p := from; p < to; p++ {
			if p >= total || x.norms[p] == 0 {
				cosines[p] = math.NaN()
				continue
			}
			cosines[p] = float64(dot(query, x.vectors[p*x.width:(p+1)*x.width])) / float64(norm*x.norms[p])
		}
	})
	for _, cosine := range cosines {
		if !math.IsNaN(cosine) {
			sum += cosine
			known++
		}
	}
	if known == 0 {
		return
	}
	r.cosines, r.topCos = cosines, make([]float64, r.n)
	for i := range r.topCos {
		first, end := x.span(i)
		for p := first; p < end; p++ {
			if math.IsNaN(cosines[p]) { // not embedded yet: it counts as the average
				cosines[p] = sum / float64(known)
			}
			r.topCos[i] = max(r.topCos[i], cosines[p])
		}
	}
	for i := range r.beside {
		most := 0.0
		r.around(i, func(j int, nearness float64) {
			most = max(most, float64(nearness*(r.topCos[j]-r.topCos[i])))
		})
		r.beside[i] += float64(denseShare * most)
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
