package otlp

import (
	"bytes"
	"context"
	"encoding/binary"
	"time"

	"mneme.dev/mneme/internal/logstate"
)

// maxTraces bounds the traces whose session is known.
const maxTraces = 10_000

// memory is what a receiver remembers of sessions.
type memory struct {
	sessions map[[2]string]*session // by tenant and key
	nameless map[hash]*session      // sessions whose client names none, by the links of their histories
	traces   map[[2]string]string   // the key of the session, by tenant and trace
	seq      uint64                 // the highest that was published
	dirty    bool
}

func newMemory() memory {
	return memory{sessions: map[[2]string]*session{}, nameless: map[hash]*session{}, traces: map[[2]string]string{}}
}

// session returns a session, a new one if it is not known.
func (m *memory) session(tenant, key string, nameless bool) *session {
	k := [2]string{tenant, key}
	s := m.sessions[k]
	if s == nil {
		s = &session{tenant: tenant, key: key, nameless: nameless, used: time.Now()}
		m.sessions[k] = s
	}
	return s
}

// follow records to which session a trace belongs. The first one counts, so that a trace stays in one conversation.
func (m *memory) follow(tenant, trace, key string) {
	k := [2]string{tenant, trace}
	if m.traces[k] != "" {
		return
	}
	if len(m.traces) >= maxTraces {
		clear(m.traces)
	}
	m.traces[k] = key
}

// point lets a session be found by its history.
func (m *memory) point(s *session) {
	if !s.nameless {
		return
	}
	known := m.sessions[[2]string{s.tenant, s.key}]
	for _, t := range s.threads {
		for _, l := range t.links {
			m.nameless[l.chain] = known
		}
	}
}

// reindex lets the nameless sessions be found by their present histories only.
func (m *memory) reindex() {
	clear(m.nameless)
	for _, s := range m.sessions {
		m.point(s)
	}
}

// remember applies what a plan changed, and forgets the least recently used sessions.
func (m *memory) remember(p *plan) {
	for before, after := range p.sessions {
		*before = *after
		m.dirty = true
	}
	links := 0
	for _, s := range m.sessions {
		links += s.links()
	}
	forgot := false
	for len(m.sessions) > maxSessions || links > maxLinks && len(m.sessions) > 1 {
		var oldest *session
		for _, s := range m.sessions {
			if oldest == nil || s.used.Before(oldest.used) {
				oldest = s
			}
		}
		links -= oldest.links()
		delete(m.sessions, [2]string{oldest.tenant, oldest.key})
		forgot = true
	}
	if forgot {
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
	r.mu.Lock()
	if r.Memory == "" || !r.memory.dirty {
		r.mu.Unlock()
		return
	}
	out := saved{About: logstate.About{Log: r.Log.Created(), Seq: r.memory.seq}}
	for _, s := range r.memory.sessions {
		one := savedSession{Tenant: s.tenant, Key: s.key, Nameless: s.nameless, Transcript: s.transcript, Started: s.started, Used: s.used}
		for _, t := range s.threads {
			var b bytes.Buffer
			for _, l := range t.links {
				_ = binary.Write(&b, binary.BigEndian, savedLink{l.chain, l.own, l.said, l.event}) // a buffer takes it
			}
			one.Threads = append(one.Threads, savedThread{t.conversation, t.inherited, b.Bytes()})
		}
		out.Sessions = append(out.Sessions, one)
	}
	r.memory.dirty = false
	r.mu.Unlock()
	if err := logstate.Save(r.Memory, &out); err != nil {
		r.mu.Lock()
		r.memory.dirty = true
		r.mu.Unlock()
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
		s := r.memory.session(one.Tenant, one.Key, one.Nameless)
		s.transcript, s.started, s.used = one.Transcript, one.Started, one.Used
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
	}
	r.memory.reindex()
}
