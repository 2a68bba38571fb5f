package main

import (
	"math/rand/v2"
	"sync"

	"mneme.dev/mneme/events"
)

// conversation is one that is being published, or was published recently.
type conversation struct {
	n      int
	id     string
	events session // everything that will be published, in order
	*index

	mu      sync.Mutex
	acked   int    // of events, from the first on
	seq     uint64 // all of them are in the log up to this sequence
	deleted bool   // or about to be deleted
}

// index tells the positions of things in the events of a conversation.
type index struct {
	at       map[string]int // the events, by id
	messages []string       // the ids of messages, in order
	counted  []int          // number of messages among the first n events
	results  map[string]int // the results of calls, by the ids of the calls' events
}

func newConversation(n int, list session) (*conversation, error) {
	x := &index{at: map[string]int{}, counted: []int{0}, results: map[string]int{}}
	calls := map[string]string{} // the ids of their events
	for i, e := range list {
		x.at[e.ID] = i
		r, err := events.Record(e)
		if err != nil {
			return nil, err
		}
		switch p := r.Payload.(type) {
		case *events.MessageCreated:
			x.messages = append(x.messages, e.ID)
		case *events.ToolCalled:
			calls[p.ToolCallID] = e.ID
		case *events.ToolReturned:
			if call, known := calls[p.ToolCallID]; known {
				x.results[call] = i
			}
		}
		x.counted = append(x.counted, len(x.messages))
	}
	return &conversation{n: n, id: list[0].Subject, events: list, index: x}, nil
}

// position returns how many of its events are acknowledged, and the sequence of the last one in the
// log.
func (c *conversation) position() (acked int, seq uint64, deleted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acked, c.seq, c.deleted
}

func (c *conversation) ack(seq uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acked++
	c.seq = max(c.seq, seq)
}

func (c *conversation) delete() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deleted = true
}

// bookSize is how many conversations readers choose from.
const bookSize = 400

// book holds the conversations that began last.
type book struct {
	mu   sync.Mutex
	list []*conversation
	next int
}

func (b *book) add(c *conversation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.list) < bookSize {
		b.list = append(b.list, c)
		return
	}
	b.list[b.next] = c
	b.next = (b.next + 1) % bookSize
}

// any returns one of them, nil if there is none.
func (b *book) any() *conversation {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.list) == 0 {
		return nil
	}
	return b.list[rand.IntN(len(b.list))]
}
