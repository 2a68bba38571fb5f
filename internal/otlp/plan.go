package otlp

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/transcript"
)

// source is the source of all events that come from telemetry.
const source = "import/otel"

// plan is what a request adds: events, and what to remember once they are in the log.
type plan struct {
	tenant   string
	memory   *memory
	items    []transcript.Item
	number   int                 // of the entry whose events are added
	sessions map[string]*session // those that it changes, by key
	nameless map[hash]*session   // like memory.nameless, of those that it changes
	awaited  map[string]*session // whose transcripts are about to be recorded, by the agent's conversation
}

func newPlan(tenant string, m *memory) *plan {
	return &plan{tenant: tenant, memory: m, sessions: map[string]*session{}, nameless: map[hash]*session{}, awaited: map[string]*session{}}
}

// session returns a session, a new one if it is not known.
func (p *plan) session(key string, nameless bool) *session {
	if s := p.sessions[key]; s != nil {
		return s
	}
	if s := p.memory.session(p.tenant, key); s != nil {
		return s
	}
	return &session{tenant: p.tenant, key: key, nameless: nameless}
}

// withHistory returns the nameless session whose history ends with a link, nil if none does.
func (p *plan) withHistory(end hash) *session {
	if s := p.nameless[end]; s != nil {
		return s
	}
	return p.memory.withHistory(end)
}

// change returns a copy of a session that the plan may change.
func (p *plan) change(s *session) *session {
	if p.sessions[s.key] == nil {
		p.sessions[s.key] = s.clone()
	}
	return p.sessions[s.key]
}

// event adds an event. One that the vocabulary refuses is counted by the importer.
func (p *plan) event(conversation, id string, at time.Time, payload events.Payload) {
	e, err := events.New(conversation, source, id, payload)
	if err != nil {
		p.items = append(p.items, transcript.Item{Line: p.number, Err: &transcript.LineError{Line: p.number, Reason: err.Error(), Err: err}})
		return
	}
	e.Time = at
	p.items = append(p.items, transcript.Item{Line: p.number, Event: e})
}

// begin starts the conversation of a session.
func (p *plan) begin(s *session, e *entry, model string) {
	if s.started {
		return
	}
	s.started = true
	p.event(s.conversation(), s.conversation(), e.begin, &events.ConversationStarted{Agent: e.service, Model: model})
}

// call adds the new part of a model call.
func (p *plan) call(s *session, e *entry, c *modelCall) {
	list := slices.Concat(c.input, c.output)
	links := chained(s.root(), list)
	at := s.find(links, c.compacted)
	p.begin(s, e, c.model)
	to := at.to
	if at.branch {
		start := &events.ConversationStarted{Agent: e.service, Model: c.model}
		if at.parent != "" {
			start.BranchedFrom = &events.BranchedAt{ConversationID: at.parent, MessageID: at.parentAt.id()}
		}
		p.event(to.conversation, to.conversation, e.begin, start)
	}
	if len(c.system) > 0 {
		// Once per conversation: some agents change the system message with each request.
		id := s.conversation() + ":system"
		if len(s.threads) == 0 {
			p.event(s.conversation(), id, e.begin, &events.MessageCreated{MessageID: id, Role: "system", Content: strings.Join(c.system, "\n")})
		}
	}
	times := map[string]int{} // how often each id of a call occurred: some servers reuse ids with each request
	last := ""                // the assistant's message to which calls belong
	for i := range list {
		fresh := i < at.summary || i >= at.from
		m := &list[i]
		when := e.begin
		if i >= len(c.input) {
			when = e.end
		}
		id := links[i].event.id()
		if !fresh && i < len(to.links) {
			id = to.links[i].event.id()
		}
		if m.role == "assistant" {
			last = id
		}
		calls := p.calls(s, m, id, times)
		if !fresh {
			continue
		}
		if i >= at.from {
			to.links = append(to.links, links[i])
		}
		for _, r := range m.results {
			p.answer(s, to.conversation, r, times, when)
		}
		if m.speaks() {
			made := &events.MessageCreated{MessageID: id, Role: m.role, Content: strings.Join(m.texts, "\n"), Reasoning: strings.Join(m.thought, "\n"), Speaker: m.name}
			if i >= len(c.input) {
				made.Model, made.Usage = c.model, c.usage
			}
			if at.compacted && (i == 0 || i < at.summary) {
				made.Origin = events.OriginCompaction
			}
			p.event(to.conversation, id, when, made)
		}
		for _, call := range calls {
			p.called(s, to.conversation, call, last, when)
		}
	}
	s.keep(at)
	for chain := range s.ends() {
		p.nameless[chain] = s
	}
}

// calls returns the calls of a message under their ids in the log.
func (p *plan) calls(s *session, m *message, id string, times map[string]int) []toolCall {
	list := make([]toolCall, 0, len(m.calls))
	for i, c := range m.calls {
		if c.id == "" {
			c.id = id + ":c" + strconv.Itoa(i+1)
			s.calls[c.name] = c.id
		} else {
			times[c.id]++
			own := c.id
			if n := times[own]; n > 1 {
				c.id += ":" + strconv.Itoa(n)
			}
			s.calls[own] = c.id
		}
		list = append(list, c)
	}
	return list
}

// called adds a tool call.
func (p *plan) called(s *session, conversation string, c toolCall, message string, at time.Time) {
	p.event(conversation, conversation+":"+c.id, at, &events.ToolCalled{ToolCallID: c.id, MessageID: message, ToolName: cmp.Or(c.name, "unknown"), Arguments: or(c.arguments, []byte("{}"))})
	if !s.answered[c.id] {
		if len(s.open) >= maxCalls {
			s.open = s.open[1:]
		}
		s.open = append(s.open, c)
	}
}

// answer adds the result of a call in a history, unless it came with the run of the tool.
func (p *plan) answer(s *session, conversation string, r toolResult, times map[string]int, at time.Time) {
	id := r.call
	if n := times[id]; n > 1 {
		id += ":" + strconv.Itoa(n)
	}
	if id == "" {
		for _, c := range s.open {
			if c.name == r.name {
				id = c.id
				break
			}
		}
	}
	if id == "" || s.answered[id] {
		return
	}
	out := &events.ToolReturned{ToolCallID: id, Result: resultOf(r.result)}
	if r.failed {
		out.Success, out.Error = new(false), plainText(r.result)
	}
	p.returned(s, conversation, id, at, out)
}

func (p *plan) returned(s *session, conversation, id string, at time.Time, out *events.ToolReturned) {
	s.answered[id] = true
	for i, c := range s.open {
		if c.id == id {
			s.open = append(s.open[:i:i], s.open[i+1:]...)
			break
		}
	}
	p.event(conversation, "res:"+conversation+":"+id, at, out)
}

// run adds the run of a tool: its result, and its call if no message contained it.
func (p *plan) run(s *session, e *entry, t *toolRun) {
	p.begin(s, e, "")
	conversation := s.conversation()
	if n := len(s.threads); n > 0 {
		conversation = s.threads[n-1].conversation
	}
	id, known := s.calls[t.id]
	if t.id == "" {
		for _, c := range s.open {
			if c.name == t.name {
				id, known = c.id, true
				break
			}
		}
	}
	if !known {
		id = cmp.Or(t.id, "span:"+e.span)
		if t.id != "" {
			s.calls[t.id] = id
		}
		p.called(s, conversation, toolCall{id: id, name: t.name, arguments: argumentsOf(t.arguments)}, "", e.begin)
	}
	if s.answered[id] || t.result == nil && t.failure == "" && !t.silent {
		return
	}
	p.returned(s, conversation, id, e.end, &events.ToolReturned{ToolCallID: id, Success: t.success, Result: resultOf(t.result), Error: t.failure, DurationMS: t.durationMS})
}

// resultOf returns a result as a text if it is one, otherwise as JSON.
func resultOf(raw []byte) events.Result {
	if raw = or(raw); raw == nil {
		return events.TextResult("")
	}
	if raw[0] == '"' {
		return events.TextResult(plainText(raw))
	}
	return events.JSONResult(raw)
}

// say adds a message that came by itself.
func (p *plan) say(s *session, e *entry, m *said) {
	p.begin(s, e, m.model)
	id := s.conversation() + ":" + m.role + ":" + m.id
	p.event(s.conversation(), id, e.begin, &events.MessageCreated{MessageID: id, Role: m.role, Content: m.text, Model: m.model})
}
