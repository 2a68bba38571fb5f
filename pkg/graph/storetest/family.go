package storetest

import (
	"fmt"

	"pgregory.net/rapid"

	"mneme.dev/mneme/events"
)

// family is a history of a conversation "g", a branch "p" of g and a branch "x" of p, all
// of which continue in parallel.
type family struct {
	*History
	members map[string][]told
	calls   []string // ids of all calls
}

// told is an event that a member shows, its own or an inherited one.
type told struct {
	seq     uint64
	payload events.Payload
	own     bool
}

// families draws families. Ids are used once. A branch affects an ancestor's call only by a
// result that names no files.
var families = rapid.Custom(func(r *rapid.T) *family {
	f := &family{History: NewHistory(), members: map[string][]told{}}
	f.tell("g", message("first", "user", "begin"))
	order := []string{"g", "p", "x"}
	for n := range rapid.IntRange(5, 60).Draw(r, "events") {
		f.Next += uint64(rapid.IntRange(0, 1).Draw(r, "gap"))
		if k := len(f.members); k < len(order) && rapid.IntRange(0, 7).Draw(r, "branch") == 0 {
			f.branch(r, order[k-1], order[k])
			continue
		}
		id := order[rapid.IntRange(0, len(f.members)-1).Draw(r, "member")]
		f.tell(id, f.next(r, id, n))
	}
	for k := len(f.members); k < len(order); k++ {
		f.branch(r, order[k-1], order[k])
	}
	return f
})

func (f *family) tell(id string, p events.Payload) {
	f.members[id] = append(f.members[id], told{f.Add(id, p), p, true})
}

// branch starts a branch at any message that its parent shows.
func (f *family) branch(r *rapid.T, parent, id string) {
	var at []int
	for i, e := range f.members[parent] {
		if _, ok := e.payload.(*events.MessageCreated); ok {
			at = append(at, i)
		}
	}
	i := rapid.SampledFrom(at).Draw(r, "at")
	for _, e := range f.members[parent][:i+1] {
		e.own = false
		f.members[id] = append(f.members[id], e)
	}
	m := f.members[parent][i].payload.(*events.MessageCreated)
	f.tell(id, &events.ConversationStarted{BranchedFrom: &events.BranchedAt{ConversationID: parent, MessageID: m.MessageID}})
}

// next draws an event that is valid after what a member shows.
func (f *family) next(r *rapid.T, id string, n int) events.Payload {
	var messages, pending, early, own []string
	inherited := map[string]bool{}
	returned, called := map[string]bool{}, map[string]bool{}
	for _, e := range f.members[id] {
		switch p := e.payload.(type) {
		case *events.MessageCreated:
			messages = append(messages, p.MessageID)
		case *events.ToolCalled:
			called[p.ToolCallID] = true
			inherited[p.ToolCallID] = !e.own
		case *events.ToolReturned:
			returned[p.ToolCallID] = true
			if e.own {
				own = append(own, p.ToolCallID)
			}
		}
	}
	for _, call := range f.calls {
		switch {
		case called[call] && !returned[call]:
			pending = append(pending, call)
		case returned[call] && !called[call]:
			early = append(early, call)
		}
	}
	fresh := fmt.Sprintf("k%d", n)
	path := rapid.SampledFrom(paths).Draw(r, "path")
	switch what := rapid.IntRange(0, 9).Draw(r, "what"); {
	case what < 4:
		return message(fmt.Sprintf("m%d", n), rapid.SampledFrom([]string{"user", "assistant", "assistant", "system"}).Draw(r, "role"), rapid.SampledFrom(texts).Draw(r, "text"))
	case what == 4: // the result of a later call
		f.calls = append(f.calls, fresh)
		return result(fresh, "early", true)
	case what < 7 && len(pending) > 0:
		call := rapid.SampledFrom(pending).Draw(r, "pending")
		return result(call, "done", inherited[call] || rapid.Bool().Draw(r, "success"))
	case what == 8 && len(own) > 0:
		return condensed(rapid.SampledFrom(own).Draw(r, "condensed"), fmt.Sprint("short", n))
	case what == 7 && len(early) > 0:
		return write(rapid.SampledFrom(early).Draw(r, "early"), path)
	}
	f.calls = append(f.calls, fresh)
	call := read(fresh, path)
	call.MessageID = rapid.SampledFrom(messages).Draw(r, "message")
	return call
}

// alone returns the history of a single conversation "c" with the events that a member shows.
func (f *family) alone(id string) *History {
	h := NewHistory()
	for _, e := range f.members[id] {
		p := e.payload
		if _, ok := p.(*events.ConversationStarted); ok {
			p = &events.ConversationStarted{}
		}
		h.Next = e.seq
		h.Add("c", p)
	}
	return h
}
