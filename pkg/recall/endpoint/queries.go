package endpoint

import (
	"container/list"
	"sync"

	"mneme.dev/mneme/pkg/recall"
)

// keptQueries is how many queries keep their vectors, because queries are often repeated.
const keptQueries = 256

// queries holds the vectors of the latest queries.
type queries struct {
	mu     sync.Mutex
	recent list.List // of queries, the latest first
	held   map[string]*list.Element
}

type query struct {
	text   string
	vector recall.Vector
}

func (q *queries) get(text string) (recall.Vector, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at, ok := q.held[text]
	if !ok {
		return nil, false
	}
	q.recent.MoveToFront(at)
	return at.Value.(query).vector, true
}

func (q *queries) put(text string, v recall.Vector) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.held == nil {
		q.held = map[string]*list.Element{}
	}
	if _, ok := q.held[text]; ok {
		return
	}
	q.held[text] = q.recent.PushFront(query{text, v})
	if q.recent.Len() > keptQueries {
		delete(q.held, q.recent.Remove(q.recent.Back()).(query).text)
	}
}
