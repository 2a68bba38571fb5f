package bench

import (
	"context"
	"os"
	"path/filepath"
	"time"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/summary"
	"mneme.dev/mneme/pkg/summary/extractive"
)

// Summarize is the result of [RunSummarize].
type Summarize struct {
	Machine       Machine  `json:"machine"`
	Events        uint64   `json:"events"`
	Conversations int      `json:"conversations"`
	Early         Decision `json:"early"` // while the read model has few events
	Late          Decision `json:"late"`  // at the end
	Ratio         float64  `json:"ratio"` // ratio of Late to Early
	Due           int      `json:"due"`   // conversations with something due at the end
	WriterMBps    float64  `json:"writer_mb_per_s"`
	Rate          int      `json:"rate_events_per_s"` // of the events published to the program
	Without       Live     `json:"without"`           // a summarizer
	With          Live     `json:"with"`              // one with a slow model
	Calls         int64    `json:"model_calls"`       // while With was measured
	P99Ratio      float64  `json:"p99_ratio"`         // ratio of With to Without, for Readable
}

// SummarizeOptions are the options of [RunSummarize].
type SummarizeOptions struct {
	Program Program
	Rate    int           // events published to the program per second
	WarmUp  time.Duration // of publishing, not measured
	For     time.Duration // of publishing, with a summarizer and without
	Delay   time.Duration // of the model
}

// Decision is the cost of one event until it is known what is due, in microseconds: the median over batches.
type Decision struct {
	Events  int     `json:"events"` // in the read model
	Apply   float64 `json:"apply_us"`
	Decide  float64 `json:"decide_us"`
	Batches int     `json:"batches"`
}

func (d Decision) total() float64 { return d.Apply + d.Decide }

// How the log is processed: in batches of this many events, of which the first ones and the last
// ones are measured.
const (
	summarizeBatch = 1_000
	warmBatches    = 10
	measureBatches = 30
)

// RunSummarize publishes transcripts to a separate log and applies them to an empty read model
// "summaries" in SQLite. After each batch it finds what is due in each conversation of the batch,
// as the summarizer does. It writes no summaries, so more and more becomes due: the worst case.
// Then the writer that needs no model writes the summaries that are due. Finally it publishes to
// the program at an even rate, without a summarizer and with one whose model is slow. Without
// events it returns [ErrNoEvents].
func RunSummarize(ctx context.Context, paths []string, o SummarizeOptions, say Say) (out Summarize, err error) {
	out.Machine, out.Rate = thisMachine(), o.Rate
	s, _, state, err := newFilled(ctx, natsdeploy.Settings{}, paths, say)
	if err != nil {
		return out, err
	}
	defer s.close()
	out.Events = state.Messages
	file, err := sqlitestore.Open(ctx, filepath.Join(s.dir, "summaries-1.db"), sqlitestore.SummariesCodec)
	if err != nil {
		return out, err
	}
	store := &sqlitestore.Summaries{Store: file}
	defer func() { _ = store.Close() }()
	declared := summary.Projection()
	cp, err := store.Acquire(ctx, 0, declared.Fingerprint())
	if err != nil {
		return out, err
	}
	follower, err := s.log.Follow(ctx, 0, 1)
	if err != nil {
		return out, err
	}
	defer follower.Stop()
	known := map[events.ConversationID]bool{}
	var batches []Decision
	for cp.Seq < state.Head {
		messages := make([]eventlog.Message, 0, summarizeBatch)
		touched := map[events.ConversationID]bool{}
		for len(messages) < min(summarizeBatch, int(state.Head-cp.Seq)) {
			var m eventlog.Message
			select {
			case m = <-follower.C():
			case <-ctx.Done():
				return out, ctx.Err()
			}
			messages = append(messages, m)
			if a, err := events.ParseSubject(m.Subject); err == nil {
				id := events.ConversationID{Tenant: a.Tenant, ID: a.Conversation}
				known[id], touched[id] = true, true
			}
		}
		before, n := int(cp.Seq), float64(len(messages))*1e3
		began := time.Now()
		if cp, err = declared.Apply(ctx, store, cp, messages); err != nil {
			return out, err
		}
		applied := time.Now()
		for id := range touched {
			if _, _, _, err := summary.Read(ctx, store, id, summary.DefaultSettings(), false); err != nil {
				return out, err
			}
		}
		batches = append(batches, Decision{Events: before, Apply: float64(applied.Sub(began)) / n, Decide: float64(time.Since(applied)) / n})
		say("%d of %d events", cp.Seq, state.Head)
	}
	out.Conversations = len(known)
	if len(batches) > warmBatches+measureBatches {
		out.Early = medianOf(batches[warmBatches : warmBatches+measureBatches])
		out.Late = medianOf(batches[len(batches)-measureBatches:])
		out.Ratio = out.Late.total() / out.Early.total()
	}
	for id := range known {
		_, _, due, err := summary.Read(ctx, store, id, summary.DefaultSettings(), false)
		if err != nil {
			return out, err
		}
		if due {
			out.Due++
		}
	}
	if out.WriterMBps, err = writerSpeed(ctx, s, state.Head); err != nil {
		return out, err
	}
	return out, o.live(ctx, paths, &out, say)
}

// live measures the program without and with a summarizer, each in a separate directory.
func (o SummarizeOptions) live(ctx context.Context, paths []string, out *Summarize, say Say) error {
	list, err := take(ctx, paths, int(float64(o.Rate)*(o.WarmUp+o.For).Seconds()))
	if err != nil {
		return err
	}
	list = interleave(list, sessions)
	model, err := newSlowModel(o.Delay)
	if err != nil {
		return err
	}
	defer func() { _ = model.close() }()
	once := func(flags ...string) (Live, error) {
		dir, err := os.MkdirTemp("", "mneme-bench-")
		if err != nil {
			return Live{}, err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		server, err := o.Program.up(ctx, dir, flags...)
		if err != nil {
			return Live{}, err
		}
		defer server.stop()
		return RebuildOptions{Rate: o.Rate, WarmUp: o.WarmUp, For: o.For}.live(ctx, server, tenant, list, say)
	}
	if out.Without, err = once(); err != nil {
		return err
	}
	// A small context budget makes much due, so the summarizer always waits for the model.
	out.With, err = once("--summary-writer", "openai", "--llm-url", model.url, "--llm-model", "slow", "--max-context-chars", "30000", "--llm-max-calls-per-hour", "0")
	out.Calls = model.calls.Load()
	if err == nil {
		out.P99Ratio = out.With.Readable.P99 / out.Without.Readable.P99
	}
	return err
}

func medianOf(list []Decision) (d Decision) {
	var apply, decide []float64
	for _, one := range list {
		apply, decide = append(apply, one.Apply), append(decide, one.Decide)
	}
	return Decision{Events: list[0].Events, Apply: median(apply), Decide: median(decide), Batches: len(list)}
}

// writerEvents is the most events for measuring the writer.
const writerEvents = 20_000

// writerSpeed summarizes the first events of the log, in inputs of about a threshold each, and
// returns the megabytes of input per second.
func writerSpeed(ctx context.Context, s *scratch, head uint64) (float64, error) {
	inputs := map[string]*summary.Input{}
	chars, bytes := map[string]int{}, 0
	var took time.Duration
	writer := extractive.Writer{}
	err := s.log.ScanAll(ctx, 1, min(head, writerEvents), func(m eventlog.Message) error {
		e, address, err := m.Decode()
		entry, ok := entryOf(e)
		if err != nil || !ok {
			return nil //nolint:nilerr // no writer reads it
		}
		in := inputs[address.Conversation]
		if in == nil {
			in = &summary.Input{}
			inputs[address.Conversation] = in
		}
		in.Entries = append(in.Entries, entry)
		if chars[address.Conversation] += summary.Count(e.Payload); chars[address.Conversation] < summary.DefaultSettings().Threshold(1) {
			return nil
		}
		for _, one := range in.Entries {
			bytes += len(one.Text)
		}
		began := time.Now()
		_, _, err = writer.Write(ctx, *in)
		took += time.Since(began)
		delete(inputs, address.Conversation)
		delete(chars, address.Conversation)
		return err
	})
	if err != nil || took == 0 {
		return 0, err
	}
	return float64(bytes) / 1e6 / took.Seconds(), nil
}

// entryOf returns what a writer reads of an event.
func entryOf(e events.Recorded) (entry summary.Entry, ok bool) {
	entry.Seq = e.Seq
	switch p := e.Payload.(type) {
	case *events.MessageCreated:
		entry.Kind, entry.Name, entry.Text = summary.Kind(p.Role), p.Speaker, summary.Cut(p.Content, summary.MaxMessage)
	case *events.ToolCalled:
		entry.Kind, entry.Name, entry.Text = summary.KindCall, p.ToolName, summary.Cut(p.Text(), summary.MaxResult)
	case *events.ToolReturned:
		entry.Kind, entry.Text, entry.Failed = summary.KindResult, summary.Cut(p.Text(), summary.MaxResult), p.Success != nil && !*p.Success
	default:
		return entry, false
	}
	return entry, true
}
