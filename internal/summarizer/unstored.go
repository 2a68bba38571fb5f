package summarizer

import (
	"errors"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/summarizer/bounded"
	"mneme.dev/mneme/pkg/eventlog"
)

// maxUnstored limits of how many conversations events are kept that could not be published. One has a few kilobytes.
const maxUnstored = 5_000

// made returns the event of a conversation with this id: the one that an earlier try could not publish, or else the one that
// write makes. While the log takes nothing, because it is full or its disk is, a conversation is tried again every minute,
// and each try would pay the model.
func (r *Reactor) made(of events.ConversationID, id string, write func() (events.Event, error)) (events.Event, error) {
	r.mu.Lock()
	list := r.unstored[of]
	at := slices.IndexFunc(list, func(e events.Event) bool { return e.ID == id })
	if at >= 0 {
		defer r.mu.Unlock()
		return list[at], nil
	}
	r.mu.Unlock()
	return write()
}

// keep keeps an event for [Reactor.made] that failed to be published, unless another one has its place.
func (r *Reactor) keep(of events.ConversationID, e events.Event, failed error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := slices.DeleteFunc(r.unstored[of], func(other events.Event) bool { return other.ID == e.ID })
	if failed != nil && !errors.Is(failed, eventlog.ErrConflict) && !errors.Is(failed, eventlog.ErrOtherContent) {
		list = append(list, e)
	}
	if len(list) == 0 {
		delete(r.unstored, of)
		return
	}
	if _, known := r.unstored[of]; !known {
		bounded.MakeRoom(r.unstored, maxUnstored, nil)
	}
	r.unstored[of] = list
}
