package hook

import (
	"cmp"
	"container/list"
	"slices"
	"sync"
	"time"
)

// Limits of what is remembered.
const (
	maxSessions = 2_000 // the newest
	maxShown    = 512   // passages of a session
)

// Fired says when the hooks of a session last reached the server.
type Fired struct {
	Agent      string    `json:"agent"`
	Session    string    `json:"session"`
	Transcript string    `json:"transcript,omitempty"`
	Folder     string    `json:"cwd,omitempty"`
	Event      string    `json:"event" doc:"the newest event"`
	At         time.Time `json:"at"`
	Events     int       `json:"events" doc:"since the server started"`
	Spoke      int       `json:"spoke" doc:"events at which the agent was shown something"`
	Context    string    `json:"context,omitempty" doc:"id of the newest context that it was shown"`
}

// Newest returns when a hook of an agent last fired, nil if none has; the list is as [Desk.Fired] returns it.
func Newest(list []Fired, agent string) *time.Time {
	i := slices.IndexFunc(list, func(f Fired) bool { return f.Agent == agent })
	if i < 0 {
		return nil
	}
	return &list[i].At
}

// passage identifies something that was shown.
type passage struct {
	conversation string
	seq          uint64
}

// place identifies a session.
type place struct{ tenant, agent, session string }

// memory holds what was shown in the newest sessions, and when their hooks fired. It is lost when the
// server stops; then a passage may be shown a second time.
type memory struct {
	mu     sync.Mutex
	of     map[place]*list.Element // of *visit
	recent list.List               // the newest first
}

// visit is what is remembered of a session.
type visit struct {
	place
	Fired
	shown map[passage]bool
	order []passage
	owed  *bool // what its start should have shown has not been shown yet; true if the session was not new
}

// at returns the visit of a session, which is the newest from now on. The caller holds the lock.
func (m *memory) at(p place) *visit {
	if m.of == nil {
		m.of = map[place]*list.Element{}
	}
	if e := m.of[p]; e != nil {
		m.recent.MoveToFront(e)
		return e.Value.(*visit)
	}
	v := &visit{place: p, shown: map[passage]bool{}}
	m.of[p] = m.recent.PushFront(v)
	if m.recent.Len() > maxSessions {
		oldest := m.recent.Back()
		delete(m.of, oldest.Value.(*visit).place)
		m.recent.Remove(oldest)
	}
	return v
}

// fired notes that an event has arrived.
func (m *memory) fired(p place, f Fired) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.at(p)
	f.Events, f.Spoke, f.Context = v.Events+1, v.Spoke, v.Context
	f.Transcript, f.Folder = cmp.Or(f.Transcript, v.Transcript), cmp.Or(f.Folder, v.Folder)
	v.Fired = f
}

// claim records that a passage is shown in a session, and reports whether it was not before. If two events come at
// once, only one of them gets it.
func (m *memory) claim(p place, one passage) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.at(p)
	if v.shown[one] {
		return false
	}
	if len(v.order) == maxShown {
		delete(v.shown, v.order[0])
		v.order = v.order[1:]
	}
	v.shown[one], v.order = true, append(v.order, one)
	return true
}

// was reports whether a passage was shown in a session.
func (m *memory) was(p place, each passage) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.of[p]
	return e != nil && e.Value.(*visit).shown[each]
}

// forget forgets what was shown in a session, because its agent no longer sees it.
func (m *memory) forget(p place) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.at(p)
	v.shown, v.order = map[passage]bool{}, nil
}

// owe notes that a session is still to see what belongs to its start. again means that it was not new. If it has not newly
// begun, a start that is owed already stays.
func (m *memory) owe(p place, again, newly bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := m.at(p); newly || v.owed == nil {
		v.owed = &again
	}
}

// owed returns what owe noted, once.
func (m *memory) owed(p place) (again, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.at(p)
	if v.owed == nil {
		return false, false
	}
	again = *v.owed
	v.owed = nil
	return again, true
}

// spoke notes that a context was shown in a session.
func (m *memory) spoke(p place, context string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.at(p)
	v.Spoke, v.Context = v.Spoke+1, context
}

// list returns the sessions of a tenant, the newest event first.
func (m *memory) list(tenant string) []Fired {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := []Fired{}
	for e := m.recent.Front(); e != nil; e = e.Next() {
		if v := e.Value.(*visit); v.tenant == tenant && v.Events > 0 {
			out = append(out, v.Fired)
		}
	}
	slices.SortStableFunc(out, func(a, b Fired) int { return b.At.Compare(a.At) })
	return out
}
