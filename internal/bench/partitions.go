package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

const (
	partitionsBefore = 8
	partitionsAfter  = 32

	// fillBatch is how many events one publish stores before the measurement.
	fillBatch = 1000
	// live is how many conversations are continued while the log is split.
	live = 64
	// around is how long events are published before the command begins, and after the readers have followed it.
	around = 3 * time.Second
)

// PartitionsOptions are the options of [RunPartitions].
type PartitionsOptions struct {
	Program Program
	Events  int // of the log, before
	Rate    int // events published per second during the change
}

// Partitions is the result of [RunPartitions].
type Partitions struct {
	Machine   Machine   `json:"machine"`
	Events    uint64    `json:"events"` // of the log, before
	MB        float64   `json:"mb"`
	From      int       `json:"from"`
	To        int       `json:"to"`
	Seconds   float64   `json:"seconds"`         // that the command took
	Readers   float64   `json:"readers_seconds"` // from the command's start until a read model is up to date in the new partitions
	Published int       `json:"published"`       // during the change, and a little before and after
	Pace      float64   `json:"events_per_s"`
	Retried   int       `json:"retried"`  // publishes that failed and were repeated
	Pause     float64   `json:"pause_ms"` // the longest time without an acknowledged publish
	Late      Latencies `json:"late"`     // until an event was passed to the client
	Stored    Latencies `json:"acknowledged"`
	Log       Order     `json:"log"`
	ReadModel Order     `json:"read_model"`
}

// Order says what is wrong with the events of all conversations.
type Order struct {
	Lost      int `json:"lost"`
	Doubled   int `json:"doubled"`
	Reordered int `json:"reordered"` // before an earlier event of their conversation
}

// Wrong returns the number of these events.
func (o Order) Wrong() int { return o.Lost + o.Doubled + o.Reordered }

// RunPartitions gives a separate log more partitions with the command "mneme partitions", run as a process, while
// events are published at an even rate and the read model "graph" follows in SQLite. Then it reads all conversations,
// in the log and in the read model, and counts what is lost, doubled or out of order.
func RunPartitions(ctx context.Context, o PartitionsOptions, say Say) (out Partitions, err error) {
	out.Machine, out.From, out.To = thisMachine(), partitionsBefore, partitionsAfter
	s, err := newScratch(ctx, natsdeploy.Settings{Partitions: partitionsBefore}, "127.0.0.1:0")
	if err != nil {
		return out, err
	}
	defer s.close()
	w := newWriters(o)
	if err := w.fill(ctx, s.log, o.Events, say); err != nil {
		return out, err
	}
	state, err := s.log.State(ctx)
	if err != nil {
		return out, err
	}
	out.Events, out.MB = state.Messages, float64(state.Bytes)/1e6

	r, err := follow(ctx, s)
	if err != nil {
		return out, err
	}
	defer r.stop()
	say("waiting until all is applied")
	if err := r.await(ctx, partitionsBefore); err != nil {
		return out, err
	}
	stop, err := w.start(ctx, s.server.ClientURL())
	if err != nil {
		return out, err
	}
	err = out.split(ctx, o, s.server.ClientURL(), r, say)
	published := stop()
	if err := errors.Join(err, published); err != nil {
		return out, err
	}
	w.figures(&out)
	say("reading everything")
	if err := r.await(ctx, partitionsAfter); err != nil {
		return out, err
	}
	if err := r.stop(); err != nil {
		return out, err
	}
	if out.Log, err = w.inLog(ctx, s.log.Conn()); err != nil {
		return out, err
	}
	out.ReadModel, err = w.inModel(ctx, r)
	return out, err
}

// split runs the command and waits until the reader has followed.
func (out *Partitions) split(ctx context.Context, o PartitionsOptions, nats string, r *reader, say Say) error {
	say("publishing %d events/s", o.Rate)
	if err := wait(ctx, around); err != nil {
		return err
	}
	say("giving the log %d partitions", partitionsAfter)
	cmd := o.Program.partitions(ctx, partitionsAfter, nats)
	began := time.Now()
	said, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("mneme partitions: %w: %s", err, strings.TrimSpace(string(said)))
	}
	out.Seconds = time.Since(began).Seconds()
	say("waiting for the reader")
	if err := r.await(ctx, partitionsAfter); err != nil {
		return err
	}
	out.Readers = time.Since(began).Seconds()
	return wait(ctx, around)
}

// partitions is the command that gives the log at a URL this many partitions.
func (what Program) partitions(ctx context.Context, n int, nats string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, what.Executable, "partitions", strconv.Itoa(n), "--yes", "--json", "--nats-url", nats)
	cmd.Env = what.environment()
	return cmd
}

// writers publish numbered messages to conversations, each in order.
type writers struct {
	rate int

	mu      sync.Mutex
	counts  []int // messages by conversation
	late    []time.Duration
	stored  []time.Duration
	acks    []time.Time
	retried int
	took    time.Duration
}

func newWriters(o PartitionsOptions) *writers {
	return &writers{rate: o.Rate, counts: make([]int, max(live, o.Events/500))}
}

func numbered(conversation, n int) (events.Event, error) {
	return events.New(fmt.Sprintf("numbered-%d", conversation), "bench", fmt.Sprintf("numbered-%d-%d", conversation, n), &events.MessageCreated{
		MessageID: fmt.Sprintf("m%d", n), Role: []string{"user", "assistant"}[n%2],
		Content: fmt.Sprintf("Message %d of conversation %d. ", n, conversation) + strings.Repeat("It counts the order of events. ", 15),
	})
}

// numberOf reads what [numbered] wrote.
func numberOf(conversation, message string) (c, n int, err error) {
	if _, err = fmt.Sscanf(conversation, "numbered-%d", &c); err == nil {
		_, err = fmt.Sscanf(message, "m%d", &n)
	}
	return c, n, err
}

// fill publishes events to all conversations in turn.
func (w *writers) fill(ctx context.Context, log *eventlog.Log, count int, say Say) error {
	for done := 0; done < count; {
		say("publishing, %d of %d events", done, count)
		var chunk []events.Event
		for ; done < count && len(chunk) < fillBatch; done++ {
			c := done % len(w.counts)
			e, err := numbered(c, w.counts[c])
			if err != nil {
				return err
			}
			w.counts[c]++
			chunk = append(chunk, e)
		}
		if _, err := log.PublishAll(ctx, tenant, chunk); err != nil {
			return err
		}
	}
	return nil
}

// start publishes at the rate until stop, which returns the error of a publisher.
func (w *writers) start(ctx context.Context, url string) (stop func() error, err error) {
	log, err := openLog(ctx, url)
	if err != nil {
		return nil, err
	}
	ctx, cut := context.WithCancel(ctx)
	ended := make(chan struct{})
	var publishing sync.WaitGroup
	var failed error
	lanes := make([]chan due, sessions)
	for i := range lanes {
		lanes[i] = make(chan due, 1<<16) // the pace does not depend on the server
		publishing.Go(func() {
			for d := range lanes[i] {
				if err := w.publish(ctx, log, d); err != nil {
					w.mu.Lock()
					failed = errors.Join(failed, err)
					w.mu.Unlock()
					cut() // nothing reads this lane any more
					return
				}
			}
		})
	}
	began := time.Now()
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			at := began.Add(time.Duration(n) * time.Second / time.Duration(w.rate))
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Until(at)):
			}
			c := n % live
			e, err := numbered(c, w.counts[c])
			if err != nil {
				w.mu.Lock()
				failed = err
				w.mu.Unlock()
				return
			}
			select {
			case lanes[c%len(lanes)] <- due{event: e, n: n, at: at}:
				w.counts[c]++
			case <-ctx.Done(): // this one was never due
				return
			}
		}
	}()
	return func() error {
		cut()
		<-ended
		for _, lane := range lanes {
			close(lane)
		}
		publishing.Wait()
		w.took = time.Since(began)
		log.Conn().Close()
		return failed
	}, nil
}

const (
	publishFor = 2 * time.Minute // how long an agent repeats one publish
	answerIn   = 2 * time.Second // it then asks again, because a server that was killed never answers
)

// publish repeats a publish that failed, as an agent does. It also publishes what was already due when the measurement
// was stopped.
func (w *writers) publish(ctx context.Context, log *eventlog.Log, d due) error {
	late := time.Since(d.at)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishFor)
	defer cancel()
	for retried := 0; ; retried++ {
		try, end := context.WithTimeout(ctx, answerIn)
		_, err := log.Publish(try, tenant, d.event)
		end()
		if err == nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			now := time.Now()
			w.late, w.stored, w.acks = append(w.late, late), append(w.stored, now.Sub(d.at)), append(w.acks, now)
			w.retried += retried
			return nil
		}
		if wait(ctx, 10*time.Millisecond) != nil {
			return err
		}
	}
}

// figures are complete after the end of the publishers.
func (w *writers) figures(out *Partitions) {
	out.Published, out.Retried = len(w.acks), w.retried
	out.Pace = float64(out.Published) / w.took.Seconds()
	out.Late, out.Stored = latencies(w.late), latencies(w.stored)
	slices.SortFunc(w.acks, time.Time.Compare)
	for i := 1; i < len(w.acks); i++ {
		out.Pause = max(out.Pause, milliseconds(w.acks[i].Sub(w.acks[i-1])))
	}
}
