package otlp

import (
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"mneme.dev/mneme/internal/logstate"
)

// maxTraces bounds the traces whose session is known.
const maxTraces = 10_000

// memory is what a receiver remembers of the sessions of all tenants. It is safe for concurrent use. A plan sees what it
// adds itself before the memory does, see plan.session.
type memory struct {
	traces *lru.Cache[[2]string, string] // the key of the session, by tenant and trace

	mu       sync.Mutex
	sessions map[[2]string]*session // by tenant and key
	nameless map[hash][2]string     // where the sessions are whose client names none, by the links of their histories
	seq      uint64                 // the highest that was published
	dirty    bool
}

func newMemory() *memory {
	return &memory{traces: newCache[[2]string, string](maxTraces), sessions: map[[2]string]*session{}, nameless: map[hash][2]string{}}
}

func newCache[K comparable, V any](size int) *lru.Cache[K, V] {
	cache, err := lru.New[K, V](size)
	if err != nil { // only for a size that is not positive
		panic(err)
	}
	return cache
}

// session returns a session, nil if it is not known.
func (m *memory) session(tenant, key string) *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sessions[[2]string{tenant, key}]
}

// withHistory returns the nameless session whose history ends with a link, nil if none does.
func (m *memory) withHistory(end hash) *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sessions[m.nameless[end]]
}

// follow records to which session a trace belongs. The first one counts, so that a trace stays in one conversation.
func (m *memory) follow(tenant, trace, key string) {
	_, _ = m.traces.ContainsOrAdd([2]string{tenant, trace}, key)
}

// followed returns the key of the session that a trace belongs to, "" if none is known.
func (m *memory) followed(tenant, trace string) string {
	key, _ := m.traces.Get([2]string{tenant, trace})
	return key
}

// published records the highest sequence of what was published.
func (m *memory) published(seq uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seq = max(m.seq, seq)
}

// point lets a session be found by its history.
func (m *memory) point(s *session) {
	for chain := range s.ends() {
		m.nameless[chain] = [2]string{s.tenant, s.key}
	}
}

// reindex lets the nameless sessions be found by their present histories only. A history that several share leads to the one
// that was used last, as [memory.remember] has it.
func (m *memory) reindex() {
	clear(m.nameless)
	for _, s := range slices.SortedFunc(maps.Values(m.sessions), byUse) {
		m.point(s)
	}
}

// forget forgets a session that was used before all others. So where its histories lead to it, they lead to no other one.
func (m *memory) forget(s *session) {
	key := [2]string{s.tenant, s.key}
	delete(m.sessions, key)
	for chain := range s.ends() {
		if m.nameless[chain] == key {
			delete(m.nameless, chain)
		}
	}
}

// byUse orders sessions by their last use. Those of one request are used at the same time.
func byUse(a, b *session) int {
	return cmp.Or(a.used.Compare(b.used), strings.Compare(a.tenant, b.tenant), strings.Compare(a.key, b.key))
}

// remember applies what a plan changed, and forgets the least recently used sessions.
func (m *memory) remember(p *plan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, key := range slices.Sorted(maps.Keys(p.sessions)) {
		s := p.sessions[key]
		s.used = now
		m.sessions[[2]string{p.tenant, key}] = s
		m.point(s)
		m.dirty = true
	}
	links := 0
	for _, s := range m.sessions {
		links += s.links()
	}
	full := func() bool { return len(m.sessions) > maxSessions || links > maxLinks && len(m.sessions) > 1 }
	if full() {
		for _, oldest := range slices.SortedFunc(maps.Values(m.sessions), byUse) {
			if !full() {
				break
			}
			links -= oldest.links()
			m.forget(oldest)
		}
	}
	if len(m.nameless) > 2*maxLinks { // links of histories that changed since
		m.reindex()
	}
}

// saved is the content of the file of a memory.
type saved struct {
	logstate.About
	Sessions []savedSession `json:"sessions"`
}

type savedSession struct {
	Tenant     string        `json:"tenant"`
	Key        string        `json:"key"`
	Nameless   bool          `json:"nameless,omitempty"`
	Transcript bool          `json:"transcript,omitempty"`
	Started    bool          `json:"started,omitempty"`
	Used       time.Time     `json:"used"`
	Threads    []savedThread `json:"threads,omitempty"`
}

type savedThread struct {
	Conversation string `json:"conversation"`
	Inherited    int    `json:"inherited,omitempty"`
	Links        []byte `json:"links"`
}

// linkBytes is the size of a link in the file.
var linkBytes = binary.Size(savedLink{})

type savedLink struct {
	Chain hash
	Own   [8]byte
	Said  bool
	Event hash
}

// save writes the memory if it changed.
func (r *Receiver) save() {
	r.memory.mu.Lock()
	if r.Memory == "" || !r.memory.dirty {
		r.memory.mu.Unlock()
		return
	}
	out := saved{About: logstate.About{Log: r.Log.Created(), Seq: r.memory.seq}}
	sessions := slices.Collect(maps.Values(r.memory.sessions)) // which nobody modifies
	r.memory.dirty = false
	r.memory.mu.Unlock()
	for _, s := range sessions {
		one := savedSession{Tenant: s.tenant, Key: s.key, Nameless: s.nameless, Transcript: s.transcript, Started: s.started, Used: s.used}
		for _, t := range s.threads {
			links := make([]savedLink, len(t.links))
			for i, l := range t.links {
				links[i] = savedLink{l.chain, l.own, l.said, l.event}
			}
			raw, _ := binary.Append(nil, binary.BigEndian, links) // their size is fixed, so it cannot fail
			one.Threads = append(one.Threads, savedThread{t.conversation, t.inherited, raw})
		}
		out.Sessions = append(out.Sessions, one)
	}
	if err := logstate.Save(r.Memory, &out); err != nil {
		r.memory.mu.Lock()
		r.memory.dirty = true
		r.memory.mu.Unlock()
		r.news.Do(func() {
			r.Logger.Warn("the histories received over OpenTelemetry can't be saved; after a restart, messages of clients that leave out older ones will be recorded twice", "file", r.Memory, "error", err)
		})
	}
}

// recall loads the memory of an earlier process.
func (r *Receiver) recall(ctx context.Context) {
	if r.Memory == "" {
		return
	}
	var in saved
	if err := logstate.Load(ctx, r.Memory, r.Log, &in); err != nil {
		r.Logger.Warn("the histories received over OpenTelemetry are unknown; the log drops those that are sent again in full", "file", r.Memory, "error", err)
		return
	}
	r.memory.seq = in.Seq
	for _, one := range in.Sessions {
		s := &session{tenant: one.Tenant, key: one.Key, nameless: one.Nameless, transcript: one.Transcript, started: one.Started, used: one.Used}
		for _, t := range one.Threads {
			to := &thread{conversation: t.Conversation, inherited: t.Inherited}
			for b := t.Links; len(b) >= linkBytes; b = b[linkBytes:] {
				var l savedLink
				if _, err := binary.Decode(b, binary.BigEndian, &l); err == nil {
					to.links = append(to.links, link{chain: l.Chain, own: l.Own, said: l.Said, event: l.Event})
				}
			}
			to.inherited = min(to.inherited, len(to.links))
			s.threads = append(s.threads, to)
		}
		r.memory.sessions[[2]string{s.tenant, s.key}] = s
	}
	r.memory.reindex()
}
