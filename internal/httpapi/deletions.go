package httpapi

import (
	"context"
	"errors"
	"sync"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// Bounds of what a publisher is told about deletions, so that publishing does not become slower for it.
const (
	lookedDeletions = 100                    // conversations of one request
	deletionsWithin = 250 * time.Millisecond // for all of them
	deletionsKept   = 10_000                 // conversations that are remembered
	deletionsAge    = time.Minute            // how long a conversation counts as not deleted
)

// deleted is a conversation that was deleted before something was published to it.
type deleted struct {
	Conversation string `json:"conversation"`
	Seq          uint64 `json:"seq" doc:"sequence of its deletion"`
}

// deletions remembers which conversations were deleted. Deletions are final, so only the others are asked about again:
// what another process deletes is noticed after deletionsAge.
type deletions struct {
	mu sync.Mutex
	of map[events.ConversationID]deletion
}

type deletion struct {
	seq   uint64 // 0 if it is not deleted
	asked time.Time
}

// before returns the conversations of published events that were deleted before, in the order of the events. It says
// nothing about those of which the log does not tell in time.
func (d *deletions) before(ctx context.Context, log *eventlog.Log, tenant string, list []events.Event, acks []eventlog.Ack) (out []deleted) {
	ctx, cancel := context.WithTimeout(ctx, deletionsWithin)
	defer cancel()
	last := map[string]uint64{} // what was stored last of each conversation
	var order []string
	for i, ack := range acks {
		if list[i].Type == events.TypeConversationDeleted {
			d.forget(events.ConversationID{Tenant: tenant, ID: list[i].Subject})
		}
		if last[list[i].Subject] == 0 && len(order) < lookedDeletions {
			order = append(order, list[i].Subject)
		}
		last[list[i].Subject] = max(last[list[i].Subject], ack.Seq)
	}
	for _, conversation := range order {
		seq, err := d.seq(ctx, log, events.ConversationID{Tenant: tenant, ID: conversation})
		if err != nil {
			return out
		}
		if seq != 0 && seq < last[conversation] {
			out = append(out, deleted{conversation, seq})
		}
	}
	return out
}

// seq returns the sequence of a conversation's deletion, 0 if there is none.
func (d *deletions) seq(ctx context.Context, log *eventlog.Log, id events.ConversationID) (uint64, error) {
	d.mu.Lock()
	known, ok := d.of[id]
	d.mu.Unlock()
	if ok && (known.seq != 0 || time.Since(known.asked) < deletionsAge) {
		return known.seq, nil
	}
	m, err := log.LastOfKind(ctx, id.Tenant, id.ID, events.Kind(events.TypeConversationDeleted))
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		return 0, err
	}
	if _, _, invalid := m.Decode(); invalid != nil { // anyone may publish under this subject
		m.Seq = 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil || len(d.of) >= deletionsKept {
		d.of = map[events.ConversationID]deletion{}
	}
	d.of[id] = deletion{m.Seq, time.Now()}
	return m.Seq, nil
}

// forget has a conversation asked about again.
func (d *deletions) forget(id events.ConversationID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.of, id)
}
