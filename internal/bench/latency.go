package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/transcript"
	"mneme.dev/mneme/pkg/eventlog"
)

// LatencyOptions are the options of [RunLatency].
type LatencyOptions struct {
	Program Program
	Rate    int           // events per second
	Reads   int           // how many of them per second are read back
	WarmUp  time.Duration // not measured
	For     time.Duration // measured
}

// Latency is the result of [RunLatency]. Every time starts when an event was due, whether or not
// its publisher was ready by then.
type Latency struct {
	Machine       Machine   `json:"machine"`
	Store         Store     `json:"store"`
	Rate          int       `json:"rate_events_per_s"`
	Pace          float64   `json:"pace_events_per_s"` // rate achieved
	Events        int       `json:"events"`
	Conversations int       `json:"conversations"`
	Late          Latencies `json:"late"`         // until the event was passed to the client
	Acknowledged  Latencies `json:"acknowledged"` // until the log had it on disk
	Readable      Latencies `json:"readable"`     // until GET …/{id}?at_least=seq had answered
	Context       Latencies `json:"context"`      // until GET …/{id}/context?at_least=seq had answered
	ResidentMB    *float64  `json:"resident_mb"`  // of the server at the end
}

// sessions is how many conversations are written at the same time, each by its own publisher, like
// parallel agents.
const sessions = 16

// RunLatency starts the program in an empty directory and publishes transcripts to it over NATS at
// an even rate that does not slow down when the server does. Each publish is one event and waits
// for its acknowledgement. For some events it reads the conversation, or its context, with
// at_least. Without events it returns [ErrNoEvents]. It removes what it wrote, in Neo4j too. Neo4j
// must not hold the read models of another mneme; otherwise it returns [ErrInUse].
func RunLatency(ctx context.Context, paths []string, o LatencyOptions, say Say) (out Latency, err error) {
	out.Machine, out.Rate = thisMachine(), o.Rate
	list, err := take(ctx, paths, int(float64(o.Rate)*(o.WarmUp+o.For).Seconds()))
	if err != nil {
		return out, err
	}
	list = interleave(list, sessions)
	ids := map[string]bool{}
	for _, e := range list {
		ids[e.Subject] = true
	}
	out.Conversations = len(ids)

	out.Store, err = o.Program.running(ctx, nil, func(server *program) error {
		p, err := paced(ctx, server, tenant, list, o, say)
		if err != nil {
			return err
		}
		out.ResidentMB = memory(server.cmd.Process.Pid, "VmRSS")
		out.Events = len(list) - p.warmUp
		out.Pace = float64(out.Events) / p.took.Seconds()
		out.Late, out.Acknowledged = latencies(p.late), latencies(p.acknowledged)
		out.Readable, out.Context = latencies(p.readable), latencies(p.context)
		return nil
	})
	return out, err
}

// take reads the first n events of transcripts.
func take(ctx context.Context, paths []string, n int) (list []events.Event, err error) {
	enough := errors.New("enough")
	err = eachEvent(ctx, paths, func(e events.Event) error {
		if list = append(list, e); len(list) >= n {
			return enough
		}
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, enough):
		return nil, err
	case len(list) == 0:
		return nil, ErrNoEvents
	}
	return list, nil
}

// eachEvent reads transcripts.
func eachEvent(ctx context.Context, paths []string, do func(events.Event) error) error {
	files, err := transcript.Find(paths)
	if err != nil {
		return errors.Join(ErrNoEvents, err)
	}
	for _, f := range files {
		in, err := f.Open()
		if err != nil {
			return err
		}
		err = transcript.Read(ctx, in, f.Path, transcript.Auto, func(item transcript.Item) error {
			if item.Err != nil {
				return nil //nolint:nilerr // an import would only count it
			}
			return do(item.Event)
		})
		_ = in.Close()
		if err != nil && !errors.Is(err, transcript.ErrUnknownFormat) {
			return err
		}
	}
	return nil
}

// interleave makes width conversations run in parallel, whatever order they come in. The order
// within a conversation stays.
func interleave(list []events.Event, width int) []events.Event {
	var order []string
	left := map[string][]events.Event{}
	for _, e := range list {
		if left[e.Subject] == nil {
			order = append(order, e.Subject)
		}
		left[e.Subject] = append(left[e.Subject], e)
	}
	out := make([]events.Event, 0, len(list))
	active := slices.Clone(order[:min(width, len(order))])
	waiting := order[len(active):]
	for len(active) > 0 {
		for i := 0; i < len(active); {
			id := active[i]
			out, left[id] = append(out, left[id][0]), left[id][1:]
			switch {
			case len(left[id]) > 0:
				i++
			case len(waiting) > 0:
				active[i], waiting = waiting[0], waiting[1:]
				i++
			default:
				active = slices.Delete(active, i, i+1)
			}
		}
	}
	return out
}

// pacer publishes at an even rate and reads back.
type pacer struct {
	log      *eventlog.Log
	api      *api
	tenant   string
	interval time.Duration
	every    int // read back every n-th event
	warmUp   int // events that are not measured

	mu           sync.Mutex
	late         []time.Duration
	acknowledged []time.Duration
	readable     []time.Duration
	context      []time.Duration
	err          error
	took         time.Duration // what is measured
}

// paced publishes events to the program as the options say, for a tenant.
func paced(ctx context.Context, server *program, tenant string, list []events.Event, o LatencyOptions, say Say) (*pacer, error) {
	log, err := server.log(ctx)
	if err != nil {
		return nil, err
	}
	defer log.Conn().Close()
	p := &pacer{
		log: log, api: newAPI(server.http, tenant, 4*sessions), tenant: tenant,
		interval: time.Second / time.Duration(o.Rate), every: max(o.Rate/o.Reads, 1),
		// For a short recording, only a tenth of it goes unmeasured.
		warmUp: min(int(float64(o.Rate)*o.WarmUp.Seconds()), len(list)/10),
	}
	return p, p.run(ctx, list, say)
}

// due is an event and its time of publishing.
type due struct {
	event events.Event
	n     int
	at    time.Time
}

func (p *pacer) run(ctx context.Context, list []events.Event, say Say) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var publishing, reading sync.WaitGroup
	lanes := map[string]chan due{} // a conversation's events stay in order
	var free []chan due
	for range sessions {
		lane := make(chan due, len(list)) // never full: the pace does not depend on the server
		free = append(free, lane)
		publishing.Go(func() {
			for d := range lane {
				if err := p.publish(ctx, d, &reading); err != nil {
					p.fail(err, cancel)
				}
			}
		})
	}
	began := time.Now()
	for n, e := range list {
		at := began.Add(time.Duration(n) * p.interval)
		if wait := time.Until(at); wait > 0 {
			time.Sleep(wait)
		}
		if ctx.Err() != nil {
			break
		}
		if n%1000 == 0 {
			say("%d of %d events", n, len(list))
		}
		lane := lanes[e.Subject]
		if lane == nil {
			lane = free[len(lanes)%len(free)]
			lanes[e.Subject] = lane
		}
		lane <- due{event: e, n: n, at: at}
	}
	for _, lane := range free {
		close(lane)
	}
	publishing.Wait()
	p.took = time.Since(began) - time.Duration(p.warmUp)*p.interval
	reading.Wait()
	return cmp.Or(p.err, ctx.Err())
}

func (p *pacer) fail(err error, cancel func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = cmp.Or(p.err, err)
	cancel()
}

// publish publishes one event and starts the read, if the event is to be read back.
func (p *pacer) publish(ctx context.Context, d due, reading *sync.WaitGroup) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	late := time.Since(d.at)
	ack, err := p.log.Publish(ctx, p.tenant, d.event)
	if err != nil {
		return err
	}
	acknowledged := time.Since(d.at)
	if d.n >= p.warmUp {
		p.mu.Lock()
		p.late, p.acknowledged = append(p.late, late), append(p.acknowledged, acknowledged)
		p.mu.Unlock()
	}
	if d.n%p.every == 0 {
		reading.Go(func() { p.read(ctx, d, ack.Seq) })
	}
	return nil
}

// read reads the conversation and its context alternately.
func (p *pacer) read(ctx context.Context, d due, seq uint64) {
	below, to := "", &p.readable
	if d.n/p.every%2 == 1 {
		below, to = "/context", &p.context
	}
	// Count it however long it takes, because a server that has just started takes seconds.
	_, err := p.api.get(ctx, conversationPath(d.event.Subject, below), url.Values{"at_least": {fmt.Sprint(seq)}, "wait_ms": {"60000"}})
	took := time.Since(d.at)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.err = cmp.Or(p.err, err)
	} else if d.n >= p.warmUp {
		*to = append(*to, took)
	}
}
