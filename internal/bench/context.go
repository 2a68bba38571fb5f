package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// ContextOptions are the options of [RunContext].
type ContextOptions struct {
	Program    Program      // to import into
	Paths      []string     // transcripts to import; none: the server at URL as it is
	URL        string       // of a running server
	Tenant     string       // of a running server; "" leaves it to the token
	Client     *http.Client // for a running server; it sends the token
	MaxChars   int          // budget of a context
	Most       int          // the most conversations to read
	WarmUp     int          // warm-up reads of each
	Rounds     int          // counted reads of each
	ShortTurns int          // length of the copy that a long conversation is compared with
	Progress   io.Writer    // receives the progress of the import
}

// Context is the result of [RunContext].
type Context struct {
	Machine       Machine   `json:"machine"`
	Store         *Store    `json:"store"` // nil for a server that was already running
	MaxChars      int       `json:"max_chars"`
	Conversations int       `json:"conversations"` // read, out of all
	Of            int       `json:"conversations_stored"`
	Warm          Latencies `json:"context"`
	Fastest       Latencies `json:"fastest"` // of each conversation, the fastest read; other programs on the machine affect it little
	KB            float64   `json:"kb"`      // of an answer; median
	MaxKB         float64   `json:"max_kb"`

	Projects *ProjectContexts `json:"projects"` // nil without a project
	Insights []InsightReads   `json:"insights"` // in the order of insight.By

	Long    *LongContext    `json:"long"`    // nil without a long conversation
	Program *ProgramFigures `json:"program"` // nil for a server that was already running
}

// ProjectContexts are reads of the contexts that new sessions begin with.
type ProjectContexts struct {
	MaxChars int       `json:"max_chars"`
	Projects int       `json:"projects"` // read, out of all
	Of       int       `json:"projects_stored"`
	Queries  int       `json:"queries"`
	Took     Latencies `json:"context"`
	KB       float64   `json:"kb"` // of an answer; median
}

// LongContext compares a long conversation with a copy of its last turns.
type LongContext struct {
	Conversation string    `json:"conversation"`
	Turns        int       `json:"turns"`
	ShortTurns   int       `json:"short_turns"`
	Long         Latencies `json:"long"`
	Short        Latencies `json:"short"`
	Ratio        float64   `json:"ratio"` // of the medians
	KB           float64   `json:"kb"`
	ShortKB      float64   `json:"short_kb"`
}

// ProgramFigures are figures of `mneme up` itself; memory is nil if the system does not report it.
type ProgramFigures struct {
	Events        int      `json:"events"`
	LogGB         float64  `json:"log_gb"`
	ImportPS      float64  `json:"import_events_per_s"` // until everything was applied
	ImportCPU     *float64 `json:"import_cpu_us"`       // processor time per event of the program, log and all projections; without the importing command
	ReadyEmptyMS  float64  `json:"ready_empty_ms"`
	ReadyMS       float64  `json:"ready_after_stop_ms"`
	ReadyKilledMS float64  `json:"ready_after_kill_ms"`
	KilledSPerGB  float64  `json:"ready_after_kill_s_per_gb"`
	IdleMB        *float64 `json:"resident_empty_mb"`
	ImportedMB    *float64 `json:"resident_after_import_mb"`
	PeakMB        *float64 `json:"resident_peak_mb"`
	ReadMB        *float64 `json:"resident_after_reads_mb"` // of a new process, after the contexts were read
}

// RunContext imports transcripts into the program in an empty directory, kills it, stops it, and
// measures how soon it answers again and how much memory it has. Then it reads the contexts of
// conversations, spread evenly over all, one at a time: first warm-up rounds, then the rounds that
// count. It does the same with the contexts of projects; the queries are what their sessions asked first. Then
// it reads the insights by each grouping. If a conversation has ten times ShortTurns, RunContext compares it with a copy of its last
// turns, which has the same newest content; reads of the two alternate.
//
// It removes what it imported, in Neo4j too. Neo4j must not hold the read models of another mneme;
// otherwise it returns [ErrInUse].
//
// Without paths it only reads, from a running server. Without conversations it returns
// [ErrNoEvents].
func RunContext(ctx context.Context, o ContextOptions, say Say) (out Context, err error) {
	out.Machine, out.MaxChars = thisMachine(), o.MaxChars
	if len(o.Paths) == 0 {
		reads := apiOf(o.Client, o.URL, o.Tenant)
		return out, errors.Join(out.read(ctx, reads, o, say), out.readProjects(ctx, reads, o, say), out.readInsights(ctx, reads, o, say))
	}
	store, err := o.Program.take(ctx)
	if err != nil {
		return out, err
	}
	out.Store = &store
	defer func() { err = o.Program.giveBack(ctx, err) }()
	dir, err := os.MkdirTemp("", "mneme-bench-")
	if err != nil {
		return out, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	server, err := out.life(ctx, o, dir, say)
	if err != nil {
		return out, err
	}
	defer server.stop()
	reads := newAPI(server.http, tenant, 1)
	if err := out.read(ctx, reads, o, say); err != nil {
		return out, err
	}
	if err := out.readProjects(ctx, reads, o, say); err != nil {
		return out, err
	}
	if err := out.readInsights(ctx, reads, o, say); err != nil {
		return out, err
	}
	if err := out.compareLong(ctx, reads, server, o, say); err != nil {
		return out, err
	}
	out.Program.ReadMB = memory(server.cmd.Process.Pid, "VmRSS")
	return out, nil
}

// life takes the program through an import, a kill and a stop, and returns it running.
func (out *Context) life(ctx context.Context, o ContextOptions, dir string, say Say) (server *program, err error) {
	defer func() {
		if err != nil {
			server.stop()
			server = nil
		}
	}()
	if server, err = o.Program.up(ctx, dir); err != nil {
		return nil, err
	}
	p := &ProgramFigures{ReadyEmptyMS: milliseconds(server.ready), IdleMB: memory(server.cmd.Process.Pid, "VmRSS")}
	out.Program = p
	began, worked := time.Now(), processorTime(server.cmd.Process.Pid)
	if p.Events, err = importInto(ctx, server, o); err != nil {
		return server, err
	}
	p.ImportPS = float64(p.Events) / time.Since(began).Seconds()
	if now := processorTime(server.cmd.Process.Pid); worked != nil && now != nil {
		p.ImportCPU = new(float64((*now - *worked).Microseconds()) / float64(p.Events))
	}
	p.ImportedMB, p.PeakMB = memory(server.cmd.Process.Pid, "VmRSS"), memory(server.cmd.Process.Pid, "VmHWM")
	if p.LogGB, err = logGB(ctx, newAPI(server.http, tenant, 1)); err != nil {
		return server, err
	}
	say("killing and starting again")
	server.kill() // before the first stop, because a stop saves what a start would otherwise have to compute
	if server, err = o.Program.up(ctx, dir); err != nil {
		return nil, err
	}
	p.ReadyKilledMS = milliseconds(server.ready)
	p.KilledSPerGB = server.ready.Seconds() / p.LogGB
	say("stopping and starting again")
	server.stop()
	if server, err = o.Program.up(ctx, dir); err != nil {
		return nil, err
	}
	p.ReadyMS = milliseconds(server.ready)
	return server, nil
}

// importInto runs `mneme import --wait` and returns how many events it published.
func importInto(ctx context.Context, server *program, o ContextOptions) (int, error) {
	args := append([]string{"import", "--json", "--wait", "--tenant", tenant, "--url", server.http, "--nats-url", server.nats, "--"}, o.Paths...)
	cmd := exec.CommandContext(ctx, o.Program.Executable, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopTime
	var said strings.Builder
	cmd.Stderr = &said
	if o.Progress != nil {
		cmd.Stderr = o.Progress
	}
	raw, err := cmd.Output()
	var report struct{ Published int }
	if json.Unmarshal(raw, &report) == nil && report.Published > 0 && ctx.Err() == nil {
		return report.Published, nil // some of the input may have been unreadable
	}
	if err != nil {
		return 0, errors.Join(ctx.Err(), ErrNoEvents, errors.New(strings.TrimSpace(said.String())))
	}
	return 0, ErrNoEvents
}

func logGB(ctx context.Context, a *api) (float64, error) {
	var status struct{ Stream struct{ Bytes float64 } }
	err := a.read(ctx, "/v1/status", nil, &status)
	return status.Stream.Bytes / 1e9, err
}

// read measures the contexts of many conversations.
func (out *Context) read(ctx context.Context, a *api, o ContextOptions, say Say) error {
	all, err := a.conversations(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return ErrNoEvents
	}
	out.Of = len(all)
	some := spread(all, o.Most)
	out.Conversations = len(some)
	var took []time.Duration
	fastest := make([]time.Duration, len(some))
	var kb []float64
	for round := range o.WarmUp + o.Rounds {
		say("reading contexts, round %d of %d", round+1, o.WarmUp+o.Rounds)
		for i, c := range some {
			d, bytes, err := readContext(ctx, a, c.ID, o.MaxChars)
			if err != nil {
				return err
			}
			if round < o.WarmUp {
				continue
			}
			if took, kb = append(took, d), append(kb, float64(bytes)/1e3); round == o.WarmUp || d < fastest[i] {
				fastest[i] = d
			}
		}
	}
	out.Warm, out.Fastest, out.KB, out.MaxKB = latencies(took), latencies(fastest), median(kb), slices.Max(kb)
	return nil
}

// spread picks n elements of a list at even distances.
func spread[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	out := make([]T, n)
	for i := range out {
		out[i] = list[i*len(list)/n]
	}
	return out
}

func readContext(ctx context.Context, a *api, id string, maxChars int) (time.Duration, int, error) {
	began := time.Now()
	body, err := a.get(ctx, conversationPath(id, "/context"), url.Values{"max_chars": {strconv.Itoa(maxChars)}})
	return time.Since(began), len(body), err
}

// compareLong measures the conversation with the most turns, if it is long.
func (out *Context) compareLong(ctx context.Context, a *api, server *program, o ContextOptions, say Say) error {
	all, err := a.conversations(ctx)
	if err != nil {
		return err
	}
	long := slices.MaxFunc(all, func(x, y listed) int { return x.TurnCount - y.TurnCount })
	if long.TurnCount < 10*o.ShortTurns {
		return nil
	}
	say("copying the last %d turns of a conversation of %d", o.ShortTurns, long.TurnCount)
	short, seq, err := copyLastTurns(ctx, server, long, o.ShortTurns)
	if err != nil {
		return err
	}
	if _, err := a.get(ctx, conversationPath(short, ""), url.Values{"at_least": {fmt.Sprint(seq)}, "wait_ms": {"60000"}}); err != nil {
		return err
	}
	const warmUp, reads = 10, 100
	l := &LongContext{Conversation: long.ID, Turns: long.TurnCount, ShortTurns: o.ShortTurns}
	var longTook, shortTook []time.Duration
	for n := range warmUp + reads {
		say("reading the long conversation and the short one, %d of %d", n, warmUp+reads)
		for _, one := range []struct {
			id   string
			took *[]time.Duration
			kb   *float64
		}{{long.ID, &longTook, &l.KB}, {short, &shortTook, &l.ShortKB}} {
			d, bytes, err := readContext(ctx, a, one.id, o.MaxChars)
			if err != nil {
				return err
			}
			*one.kb = float64(bytes) / 1e3
			if n >= warmUp {
				*one.took = append(*one.took, d)
			}
		}
	}
	l.Long, l.Short = latencies(longTook), latencies(shortTook)
	l.Ratio = l.Long.P50 / l.Short.P50
	out.Long = l
	return nil
}

// copyLastTurns publishes the last turns of a conversation as a new conversation.
func copyLastTurns(ctx context.Context, server *program, c listed, turns int) (id string, seq uint64, err error) {
	log, err := server.log(ctx)
	if err != nil {
		return "", 0, err
	}
	defer log.Conn().Close()
	state, err := log.State(ctx)
	if err != nil {
		return "", 0, err
	}
	id = c.ID + " (last turns)"
	var list []events.Event
	turn := 0
	err = log.Conversation(ctx, tenant, c.ID, state.Head, func(m eventlog.Message) error {
		e, _, err := m.Decode()
		if err != nil {
			return nil // listed as failed, and in no context
		}
		if p, ok := e.Payload.(*events.MessageCreated); ok && p.Role == "user" {
			turn++
		}
		if turn > c.TurnCount-turns {
			e.Subject, e.Extensions = id, map[string]any{"partitionkey": id}
			list = append(list, e.Event)
		}
		return nil
	})
	if err != nil {
		return "", 0, err
	}
	acks, err := log.PublishAll(ctx, tenant, list)
	if err != nil {
		return "", 0, err
	}
	return id, acks[len(acks)-1].Seq, nil
}
