package otlp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/intake"
	"mneme.dev/mneme/internal/logstate"
	"mneme.dev/mneme/internal/quota"
	"mneme.dev/mneme/internal/redact"
	"mneme.dev/mneme/internal/transcript"
)

// Log is where a receiver publishes.
type Log interface {
	importer.Log
	logstate.Log // what is remembered belongs to one log
}

// Config configures a receiver.
type Config struct {
	Log Log
	// Lookup returns an [importer.Options.Lookup] of a tenant.
	Lookup func(tenant string) func(context.Context, []events.Event) ([]importer.Known, error)
	// Admit is called before a tenant stores events, as in [importer.Options]; nil admits all.
	Admit func(tenant string, count, size int) (settle func(), err error)
	// Transcribed reports whether the transcript of a conversation is about to be recorded, though no message of it is yet;
	// nil means that none is.
	Transcribed func(tenant, conversation string) bool
	// Redact are the rules of what is redacted before it is published; nil redacts nothing.
	Redact *redact.Rules
	// Memory is the file in which the histories are remembered over a restart; "" remembers nothing.
	Memory string
	// Counted is called for every span and log record; nil for nothing.
	Counted func(signal, outcome, scope string)
	Logger  *slog.Logger
}

// Outcomes of a span or log record, as they are counted.
const (
	Recorded = "recorded" // it had something new
	Known    = "known"    // all its content is in the log already
	LeftOut  = "left_out" // it has no content of a conversation
	Refused  = "refused"  // it has content that could not be read or published
)

// Receiver turns spans and log records into events. It is safe for concurrent use; the requests of a tenant are handled
// one after the other.
type Receiver struct {
	Config
	stop  context.CancelFunc
	saver sync.WaitGroup
	news  rate.Sometimes

	turns    turns
	cleaners *lru.Cache[string, *intake.Cleaner] // by tenant
	memory   *memory

	statusMu sync.Mutex
	status   Status
}

// saveEvery is how often the memory is written if it changed.
const saveEvery = 2 * time.Second

// New starts a receiver. It saves its memory until Close.
func New(ctx context.Context, c Config) *Receiver {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Counted == nil {
		c.Counted = func(string, string, string) {}
	}
	r := &Receiver{Config: c, cleaners: newCleaners(), memory: newMemory(), news: rate.Sometimes{First: 20, Interval: 10 * time.Second}}
	r.recall(ctx)
	saving, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.saver.Go(func() {
		ticks := time.NewTicker(saveEvery)
		defer ticks.Stop()
		for {
			select {
			case <-saving.Done():
				return
			case <-ticks.C:
				r.save()
			}
		}
	})
	return r
}

// Close writes the memory. It is idempotent.
func (r *Receiver) Close() {
	r.stop()
	r.saver.Wait()
	r.save()
}

// taken is the result of a request.
type taken struct {
	refused int
	reason  string // of the first refused one
}

// take records what is new in a request. An error means that the log or the read model failed: nothing is remembered,
// and the same request may be sent again.
func (r *Receiver) take(ctx context.Context, tenant string, s signal, list []entry) (taken, error) {
	leave, err := r.turns.enter(ctx, tenant, 1)
	if err != nil {
		return taken{}, fmt.Errorf("earlier requests of the tenant are still being recorded: %w", err)
	}
	defer leave()
	// Children end before their parents, and only some of them name the session.
	slices.SortStableFunc(list, func(a, b entry) int { return cmp.Or(a.end.Compare(b.end), a.begin.Compare(b.begin)) })
	for i := range list {
		if key := keyOf(&list[i]); key != "" && list[i].trace != "" {
			r.memory.follow(tenant, list[i].trace, key)
		}
	}
	p := newPlan(tenant, r.memory)
	outcomes := make([]string, len(list))
	left := make([]string, len(list))
	var result taken
	refuse := func(i int, reason string) {
		if outcomes[i] == Refused {
			return
		}
		outcomes[i] = Refused
		if result.refused++; result.reason == "" {
			result.reason = bounded(list[i].name, maxName) + ": " + reason
		}
	}
	for i := range list {
		e := &list[i]
		what, err := e.read(s)
		switch {
		case err != nil:
			refuse(i, err.Error())
			continue
		case what.leftOut != "":
			outcomes[i], left[i] = LeftOut, what.leftOut
			continue
		}
		found, err := r.session(ctx, e, &what, p)
		if err != nil {
			r.trouble(err)
			return taken{}, err
		}
		switch {
		case found == nil:
			refuse(i, "it belongs to no session and no trace: set gen_ai.conversation.id or session.id")
			continue
		case found.transcript:
			outcomes[i], left[i] = LeftOut, fromTranscript
			continue
		}
		s, before := p.change(found), len(p.items)
		p.number = i
		switch {
		case what.call != nil:
			p.call(s, e, what.call)
		case what.tool != nil:
			p.run(s, e, what.tool)
		case what.said != nil:
			p.say(s, e, what.said)
		}
		if outcomes[i] = Known; len(p.items) > before {
			outcomes[i] = Recorded
		}
	}
	if err := r.publish(ctx, tenant, p, refuse); err != nil {
		r.trouble(err)
		return taken{}, err
	}
	r.memory.remember(p)
	r.count(s, list, outcomes, left, result)
	return result, nil
}

// publish publishes the events of a plan that the log does not have.
func (r *Receiver) publish(ctx context.Context, tenant string, p *plan, refuse func(int, string)) error {
	if len(p.items) == 0 {
		return nil
	}
	report, err := importer.ImportItems(ctx, r.Log, "OpenTelemetry", p.items, importer.Options{
		Tenant: tenant, Lookup: r.Lookup(tenant), Redact: r.Redact, RedactAll: true, Cleaner: r.cleaner(tenant), FirstCounts: true,
		Rejected: func(_ string, err *transcript.LineError) { refuse(err.Line, err.Reason) }, Admit: r.admit(tenant),
	})
	r.memory.published(report.LastSeq)
	r.statusMu.Lock()
	r.status.Published += uint64(report.Published)
	r.statusMu.Unlock()
	return err
}

// maxCleaners bounds the tenants whose calls of mneme's own tools are remembered: without tokens, an exporter may name any.
const maxCleaners = 1_000

func newCleaners() *lru.Cache[string, *intake.Cleaner] {
	return newCache[string, *intake.Cleaner](maxCleaners)
}

// cleaner returns what cleans the events of a tenant.
func (r *Receiver) cleaner(tenant string) *intake.Cleaner {
	c, ok := r.cleaners.Get(tenant)
	if !ok {
		c = &intake.Cleaner{}
		r.cleaners.Add(tenant, c)
	}
	return c
}

func (r *Receiver) admit(tenant string) func(count, size int) (func(), error) {
	if r.Admit == nil {
		return nil
	}
	return func(count, size int) (func(), error) { return r.Admit(tenant, count, size) }
}

// keyOf returns the session that an entry names, "" if it names none.
func keyOf(e *entry) string { return bounded(e.text(sessionKeys...), maxKey) }

// maxKey leaves room for the prefix and suffix that make ids of events from a session's id.
const maxKey = 256

func bounded(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "")
}

// session returns the session of an entry: the one that it names, or that its trace belongs to, or whose history it
// continues, or else a new one with the name of the trace. It is nil if there is none of these.
func (r *Receiver) session(ctx context.Context, e *entry, what *recorded, p *plan) (*session, error) {
	key := keyOf(e)
	if key == "" && e.trace != "" {
		key = r.memory.followed(p.tenant, e.trace)
	}
	if key != "" {
		return r.ofTranscript(ctx, p.session(key, false), what.agent, p)
	}
	if what.call != nil {
		links := chained(rootOf(p.tenant, ""), what.call.input)
		for i := len(links) - 1; i > 0; i-- {
			if s := p.withHistory(links[i].chain); s != nil && slices.ContainsFunc(what.call.input[:i+1], func(m message) bool { return m.role == "assistant" }) {
				if e.trace != "" {
					r.memory.follow(p.tenant, e.trace, s.key)
				}
				return s, nil
			}
		}
	}
	if e.trace == "" {
		return nil, nil
	}
	r.memory.follow(p.tenant, e.trace, e.trace)
	return p.session(e.trace, true), nil
}

// ofTranscript returns a session, changed if its transcript is recorded: telemetry would only add the same content under
// other ids.
func (r *Receiver) ofTranscript(ctx context.Context, s *session, agent string, p *plan) (*session, error) {
	if agent == "" || s.transcript {
		return s, nil
	}
	if changed := p.sessions[s.key]; changed != nil && changed.started {
		return s, nil // looked up for this request
	}
	conversation := agent + ":" + s.key
	if awaited := p.awaited[conversation]; awaited != nil {
		return awaited, nil
	}
	known, err := r.Lookup(s.tenant)(ctx, []events.Event{{Subject: conversation, Source: "import/" + agent, ID: conversation}})
	switch {
	case err != nil:
	case known[0].Seq != 0:
		s = p.change(s)
		s.transcript = true
	case r.Transcribed != nil && r.Transcribed(s.tenant, conversation):
		// For this request only: the transcript may still go away without having been read.
		s = s.clone()
		s.transcript = true
		p.awaited[conversation] = s
	}
	return s, err
}

// trouble records that a request could not be recorded.
func (r *Receiver) trouble(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	again, lost := "; the exporter is asked to send them again", (*quota.FullError)(nil)
	r.statusMu.Lock()
	if errors.As(err, &lost) {
		again = ", and are lost"
		r.status.note(err.Error())
	} else {
		r.status.Waits, r.status.WaitsSince = bounded(err.Error(), maxError), time.Now()
	}
	r.statusMu.Unlock()
	r.news.Do(func() {
		r.Logger.Warn("spans or log records of an OpenTelemetry exporter could not be recorded"+again, "error", err)
	})
}
