package bench

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"mneme.dev/mneme/internal/transcript"
	"mneme.dev/mneme/pkg/eventlog"
)

// longestPause limits how long a replay waits between two lines: a user may have been away for hours.
const longestPause = time.Second

// sources are files that may be sessions of Claude Code, by their size.
type sources []transcript.File

// findSources finds them. Without any it returns [ErrNoEvents].
func findSources(paths []string) (sources, error) {
	list, err := transcript.Find(paths)
	list = slices.DeleteFunc(list, func(f transcript.File) bool {
		return !strings.Contains(filepath.Base(f.Path), ".jsonl") || filepath.Base(filepath.Dir(f.Path)) == "subagents"
	})
	if len(list) == 0 {
		return nil, errors.Join(ErrNoEvents, err)
	}
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b transcript.File) int { return int(a.Size - b.Size) })
	return list, nil
}

// middle returns the session in the middle that has two lines for each kill, or else the next larger one.
func (list sources) middle(ctx context.Context, kills int) (*replayed, error) {
	for _, f := range list[(len(list)-1)/2:] {
		s, err := readReplayed(ctx, f.Path)
		if err != nil {
			return nil, err
		}
		if s != nil && len(s.lines) >= max(2, 2*kills) {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%w: no file in the larger half is a session of Claude Code with %d lines", ErrNoEvents, max(2, 2*kills))
}

// replayed is a session and how it was recorded.
type replayed struct {
	path    string // without the ending .gz
	size    int
	lines   [][]byte
	gaps    []time.Duration // before each line
	by      map[string]int  // of each event, the line that completes it
	waiting int             // events that no line completes
}

// readReplayed reads a session; nil if it is not one of Claude Code.
func readReplayed(ctx context.Context, path string) (*replayed, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(path, ".gz") {
		path = strings.TrimSuffix(path, ".gz")
		packed, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return nil, err
		}
		if raw, err = io.ReadAll(packed); err != nil {
			return nil, err
		}
	}
	s := &replayed{path: path, size: len(raw), by: map[string]int{}}
	for line := range bytes.Lines(raw) {
		s.lines = append(s.lines, line)
	}
	s.pauses()
	in, is := &lineByLine{lines: s.lines}, false
	err = transcript.Read(ctx, in, path, transcript.Auto, func(item transcript.Item) error {
		is = is || item.Format == "claude-code"
		switch {
		case item.Err != nil:
		case item.Open:
			s.waiting++
		default:
			s.by[item.Event.ID] = in.next - 1
		}
		return nil
	})
	if err != nil && !errors.Is(err, transcript.ErrUnknownFormat) {
		return nil, err
	}
	if !is || len(s.by) == 0 {
		return nil, nil
	}
	return s, nil
}

// lineByLine is a reader that returns one line at each read, so that a converter's output is known to come from the
// lines so far.
type lineByLine struct {
	lines [][]byte
	next  int
	rest  []byte
}

func (l *lineByLine) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		if l.next == len(l.lines) {
			return 0, io.EOF
		}
		l.rest = l.lines[l.next]
		l.next++
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// pauses finds how long the agent waited before each line.
func (s *replayed) pauses() {
	var last time.Time
	for _, line := range s.lines {
		var at struct {
			Timestamp time.Time `json:"timestamp"`
		}
		gap := time.Duration(0)
		if json.Unmarshal(line, &at) == nil && !at.Timestamp.IsZero() {
			if !last.IsZero() {
				gap = max(0, at.Timestamp.Sub(last))
			}
			last = at.Timestamp
		}
		s.gaps = append(s.gaps, gap)
	}
}

// pause waits before a line.
func (s *replayed) pause(ctx context.Context, line int, factor float64) error {
	return wait(ctx, min(time.Duration(float64(s.gaps[line])/factor), longestPause))
}

// replay writes the session while a watcher runs and measures how soon its events can be read. It returns the finished file.
func (w *watch) replay(ctx context.Context, s *replayed, factor float64, out *Capture) (path string, err error) {
	folder, err := w.folder(replayedTenant, "p")
	if err != nil {
		return "", err
	}
	path = filepath.Join(folder, filepath.Base(s.path))
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	r := &arrivals{s: s, api: newAPI(w.server.http, replayedTenant, 16), written: make([]time.Time, len(s.lines)), left: map[string]bool{}, changed: make(chan struct{}, 1)}
	for id := range s.by {
		r.left[id] = true
	}
	stop := r.observe(ctx, w.log)
	defer stop()
	cmd := w.command(ctx, replayedTenant)
	if err := cmd.Start(); err != nil {
		return "", err
	}
	defer kill(cmd)
	ready := slices.Min(slices.Collect(maps.Values(s.by)))
	for i, line := range s.lines {
		w.say("replaying, line %d of %d", i+1, len(s.lines))
		if i == ready+1 { // the watcher has started once it has read the first event
			if err := r.await(ctx, func() bool { return len(r.left) < len(s.by) }); err != nil {
				return "", err
			}
		}
		if err := s.pause(ctx, i, factor); err != nil {
			return "", err
		}
		r.wrote(i, i > ready)
		if _, err := f.Write(line); err != nil {
			return "", err
		}
	}
	if err := r.await(ctx, func() bool { return len(r.left) == 0 }); err != nil {
		return "", err
	}
	kill(cmd)
	stop()
	if r.err != nil {
		return "", r.err
	}
	out.Readable, out.Held = latencies(r.took), s.waiting
	return path, w.finish(ctx, replayedTenant, path)
}

// finish has watchers read a file that the agent has finished: its last events, and nothing a second time.
func (w *watch) finish(ctx context.Context, tenant, path string) error {
	if err := rested(path, 0); err != nil {
		return err
	}
	for range 2 {
		if _, err := w.once(ctx, tenant); err != nil {
			return err
		}
	}
	return nil
}

// arrivals measures when events of a replay can be read.
type arrivals struct {
	s       *replayed
	api     *api
	changed chan struct{} // has room for one

	mu      sync.Mutex
	written []time.Time // zero for lines that do not count
	left    map[string]bool
	took    []time.Duration
	err     error
}

func (r *arrivals) wrote(line int, counts bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if counts {
		r.written[line] = time.Now()
	}
}

// arrivalTime is how long a replay waits for an event to become readable, before it counts as lost.
const arrivalTime = time.Minute

func (r *arrivals) await(ctx context.Context, done func() bool) error {
	late := time.After(arrivalTime)
	for {
		r.mu.Lock()
		is := done()
		r.mu.Unlock()
		if is {
			return nil
		}
		select {
		case <-r.changed:
		case <-late:
			return nil // the comparison reports what was lost
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// observe reads each event by the API as soon as it is in the log, until stop is called.
func (r *arrivals) observe(ctx context.Context, log *eventlog.Log) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		err := log.Tail(ctx, eventlog.Filter{Tenant: replayedTenant}, eventlog.TailOptions{From: 1}, func(m eventlog.Message) error {
			e, _, err := m.Decode()
			if err == nil {
				running.Go(func() { r.read(ctx, e.ID, e.Subject, m.Seq) })
			}
			return err
		})
		if ctx.Err() == nil {
			r.mu.Lock()
			r.err = err
			r.mu.Unlock()
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

func (r *arrivals) read(ctx context.Context, id, conversation string, seq uint64) {
	_, err := r.api.get(ctx, conversationPath(conversation, ""), url.Values{"at_least": {strconv.FormatUint(seq, 10)}, "wait_ms": {"60000"}})
	now := time.Now()
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.err = err
	}
	if r.left[id] {
		delete(r.left, id)
		if at := r.written[r.s.by[id]]; !at.IsZero() {
			r.took = append(r.took, now.Sub(at))
		}
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// replayKilled writes the session while watchers are killed, and returns how many of them had published something.
func (w *watch) replayKilled(ctx context.Context, s *replayed, factor float64, kills int) (working int, err error) {
	folder, err := w.folder(killedTenant, "p")
	if err != nil {
		return 0, err
	}
	path := filepath.Join(folder, filepath.Base(s.path))
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	for k := range kills {
		w.say("replaying, kill %d of %d", k+1, kills)
		before, err := w.log.State(ctx)
		if err != nil {
			return 0, err
		}
		cmd := w.command(ctx, killedTenant)
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		from, to := k*len(s.lines)/kills, (k+1)*len(s.lines)/kills
		err = s.write(ctx, f, from, to, factor)
		if err == nil {
			patience := killTime
			if k%2 == 0 && s.completes(from, to) { // otherwise, on a busy machine, no watcher might get that far
				patience = arrivalTime
			}
			err = w.published(ctx, before.Head, patience)
		}
		kill(cmd)
		if err != nil {
			return 0, err
		}
		after, err := w.log.State(ctx)
		if err != nil {
			return 0, err
		}
		if after.Head > before.Head {
			working++
		}
	}
	return working, w.finish(ctx, killedTenant, path)
}

// write writes some lines at their pace.
func (s *replayed) write(ctx context.Context, f *os.File, from, to int, factor float64) error {
	for i := from; i < to; i++ {
		if err := s.pause(ctx, i, factor); err != nil {
			return err
		}
		if _, err := f.Write(s.lines[i]); err != nil {
			return err
		}
	}
	return nil
}

// completes reports whether one of some lines completes an event.
func (s *replayed) completes(from, to int) bool {
	for _, line := range s.by {
		if from <= line && line < to {
			return true
		}
	}
	return false
}

// killTime is how long every second watcher lives at most after its lines were written: it may be killed before it has
// published anything.
const killTime = 500 * time.Millisecond

// published waits until the log has grown, or until the patience ends.
func (w *watch) published(ctx context.Context, head uint64, patience time.Duration) error {
	for began := time.Now(); time.Since(began) < patience; time.Sleep(time.Millisecond) {
		state, err := w.log.State(ctx)
		if err != nil || state.Head > head {
			return err
		}
	}
	return nil
}
