package summarizer

import (
	"errors"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/summarizer/bounded"
	"mneme.dev/mneme/pkg/eventlog"
)

// maxUnstored limits for how many conversations events are kept that are not published yet. One has a few kilobytes.
const maxUnstored = 5_000

// made returns the event of a conversation with this id: the one that an earlier try could not publish, or else the one that
// write makes, which is kept until it is published. While the log takes nothing, because it is full or its disk is, a
// conversation is tried again every minute, and each try would pay the model.
func (r *Reactor) made(of events.ConversationID, id string, write func() (events.Event, error)) (events.Event, error) {
	if e, ok := r.kept(of, id); ok {
		return e, nil
	}
	e, err := write()
	if err != nil {
		return e, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.unstored[of]; !known {
		bounded.MakeRoom(r.unstored, maxUnstored, nil)
	}
	r.unstored[of] = append(r.unstored[of], e)
	return e, nil
}

func (r *Reactor) kept(of events.ConversationID, id string) (e events.Event, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.unstored[of]
	at := slices.IndexFunc(list, func(e events.Event) bool { return e.ID == id })
	if at < 0 {
		return e, false
	}
	return list[at], true
}

// tried says how the publication of an event of [Reactor.made] went. The event is kept for the next try, unless it is
// published or another one has its place.
func (r *Reactor) tried(of events.ConversationID, id string, failed error) {
	if failed == nil || errors.Is(failed, eventlog.ErrConflict) || errors.Is(failed, eventlog.ErrOtherContent) {
		r.drop(of, id)
	}
}

// drop forgets an event of [Reactor.made].
func (r *Reactor) drop(of events.ConversationID, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := slices.DeleteFunc(r.unstored[of], func(e events.Event) bool { return e.ID == id })
	if len(list) == 0 {
		delete(r.unstored, of)
		return
	}
	r.unstored[of] = list
}
