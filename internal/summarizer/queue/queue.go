// Package queue holds conversations that wait for a time, ordered by these times.
package queue

import (
	"container/heap"
	"time"

	"mneme.dev/mneme/events"
)

// Queue holds each waiting conversation once, with the time at which work on it may begin.
// It can grow long while the process is down, so it is a heap. The zero value is an empty
// queue. It is not safe for concurrent use.
type Queue struct {
	list byTime
	of   map[events.ConversationID]*queued
}

type queued struct {
	id    events.ConversationID
	at    time.Time
	index int
}

// Add adds a conversation. If it is queued already, its time stays.
func (q *Queue) Add(id events.ConversationID, at time.Time) {
	if q.of[id] != nil {
		return
	}
	if q.of == nil {
		q.of = map[events.ConversationID]*queued{}
	}
	q.of[id] = &queued{id: id, at: at}
	heap.Push(&q.list, q.of[id])
}

// Put adds a conversation or changes its time.
func (q *Queue) Put(id events.ConversationID, at time.Time) {
	if one := q.of[id]; one != nil {
		one.at = at
		heap.Fix(&q.list, one.index)
		return
	}
	q.Add(id, at)
}

// Take removes the conversation with the earliest time, if that time has come.
func (q *Queue) Take(now time.Time) (events.ConversationID, bool) {
	if len(q.list) == 0 || q.list[0].at.After(now) {
		return events.ConversationID{}, false
	}
	one, _ := heap.Pop(&q.list).(*queued)
	delete(q.of, one.id)
	return one.id, true
}

// Due counts the conversations whose time has come.
func (q *Queue) Due(now time.Time) (n int) {
	for _, one := range q.list {
		if !one.at.After(now) {
			n++
		}
	}
	return n
}

// Next returns the earliest time, zero if the queue is empty.
func (q *Queue) Next() time.Time {
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
