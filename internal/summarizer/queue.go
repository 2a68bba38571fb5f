package summarizer

import (
	"container/heap"
	"time"

	"mneme/events"
)

// queue holds the conversations that are to be worked on, each once, and from when on.
// Its methods take time by the logarithm of its length: after a long absence it is long.
type queue struct {
	list byTime
	of   map[events.ConversationID]*queued
}

type queued struct {
	id    events.ConversationID
	at    time.Time
	index int
}

// add adds a conversation unless it is there; then its time stays.
func (q *queue) add(id events.ConversationID, at time.Time) {
	if q.of[id] != nil {
		return
	}
	if q.of == nil {
		q.of = map[events.ConversationID]*queued{}
	}
	q.of[id] = &queued{id: id, at: at}
	heap.Push(&q.list, q.of[id])
}

// put adds a conversation, or gives it another time.
func (q *queue) put(id events.ConversationID, at time.Time) {
	if one := q.of[id]; one != nil {
		one.at = at
		heap.Fix(&q.list, one.index)
		return
	}
	q.add(id, at)
}

// take removes the conversation that has waited longest, if the time of one has come.
func (q *queue) take(now time.Time) (events.ConversationID, bool) {
	if len(q.list) == 0 || q.list[0].at.After(now) {
		return events.ConversationID{}, false
	}
	one, _ := heap.Pop(&q.list).(*queued)
	delete(q.of, one.id)
	return one.id, true
}

// due counts those whose time has come.
func (q *queue) due(now time.Time) (n int) {
	for _, one := range q.list {
		if !one.at.After(now) {
			n++
		}
	}
	return n
}

// next is when the time of the first one comes, zero if there is none.
func (q *queue) next() time.Time {
	if len(q.list) == 0 {
		return time.Time{}
	}
	return q.list[0].at
}

// byTime is a heap.
type byTime []*queued

func (l byTime) Len() int           { return len(l) }
func (l byTime) Less(i, j int) bool { return l[i].at.Before(l[j].at) }

func (l byTime) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].index, l[j].index = i, j
}

// Push implements heap.Interface.
func (l *byTime) Push(x any) {
	one, _ := x.(*queued)
	one.index = len(*l)
	*l = append(*l, one)
}

// Pop implements heap.Interface.
func (l *byTime) Pop() any {
	last := len(*l) - 1
	one := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	return one
}
