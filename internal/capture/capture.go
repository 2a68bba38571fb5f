package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/time/rate"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/logstate"
	"mneme.dev/mneme/internal/redact"
)

// Errors of [Receiver.Ring].
var (
	ErrAgent  = errors.New("mneme can't read the transcripts of this agent")
	ErrPath   = errors.New("this is not a transcript that may be read")
	ErrBusy   = errors.New("too many transcripts wait to be read")
	ErrClosed = errors.New("the receiver of doorbells is closed")
)

// MaxFiles limits how many files a receiver remembers, not counting those of subagents. A
// doorbell for a further one takes the place of the file that has been idle for longest.
const MaxFiles = 1000

// Pauses after a failure of the log, see Receiver.
const (
	minPause = 500 * time.Millisecond
	maxPause = 20 * time.Second // plus a random part of up to half of it
)

// rest is how long a file is left alone after an import, in multiples of the import's duration.
const rest = 4

// looks are the times after a doorbell or an import at which a file is looked at again.
var looks = []time.Duration{
	200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
}

// Log is where a receiver publishes: an [eventlog.Log], or a server's API.
type Log interface {
	importer.Log
	logstate.Log // marks belong to one log
}

// Config configures a receiver.
type Config struct {
	Log    Log
	Tenant string
	// Roots are the folders below which files are read, see [Roots]. Without roots, no file is read.
	Roots []string
	// Lookup is as in [importer.Options]. Without it, an import after the duplicate window has
	// passed adds all events of its file to the log again, for the read models to drop.
	Lookup func(context.Context, []events.Event) ([]importer.Known, error)
	// Redact are the rules of what is redacted before it is published; nil redacts nothing.
	Redact *redact.Rules
	// Follow returns the folders whose files are read without a doorbell. It is asked every minute, and
	// when an agent rings whose folder is not followed. Nil follows none. They must be below Roots.
	Follow func() []Folder
	// Marks is the file in which what was read is remembered, so that a restart reads only what has
	// changed; "" remembers nothing. It needs Follow.
	Marks string
	// StillWritten is how long a file must not have changed before its last message counts as
	// complete; 0 means [importer.StillWritten].
	StillWritten time.Duration
	Logger       *slog.Logger
}

// Receiver imports the transcripts for which agents ring, and those that change in followed folders. It
// is safe for concurrent use.
type Receiver struct {
	Config
	looks   []time.Duration
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
	wake    chan struct{} // has room for one
	unknown chan struct{} // signals that an agent rang whose folder is not followed; has room for one
	news    rate.Sometimes

	mu       sync.Mutex
	files    map[key]*file
	marks    map[key]*mark // of files and of those of subagents
	named    map[key]bool  // refused files, so that each is logged once
	failed   key           // the file of status.LastError
	status   Status        // except for what the other fields count
	followed []Followed
	history  []found   // what a walk found in followed folders and is not read yet, oldest first
	past     *found    // the file of the history that is being read
	resume   time.Time // no file of the history is read before this time
	pause    *backoff.ExponentialBackOff
	seq      uint64 // the highest that an import published
	dirty    bool   // marks differ from their file
}

// key names a file, as a doorbell named it (in files) or without links (in marks). Two agents
// read one file differently.
type key struct{ agent, path string }

// file is a file that rang. Its fields belong to Receiver.mu.
type file struct {
	key
	session string
	rung    bool      // it rang since the worker last took it
	reading bool      // the worker has it
	missing bool      // it did not exist at the last look
	ended   time.Time // when the agent said that its turn has ended; zero if it goes on
	due     time.Time // when the worker takes it; zero if it is idle
	base    time.Time // the time from which looks count
	look    int       // index of the next look
	rested  time.Time // it is not read again before this time
	used    time.Time // when it last rang or was read
	pause   *backoff.ExponentialBackOff
	failing bool // the last import failed for a reason outside the file
}

// New starts a receiver. It imports until Close.
func New(c Config) *Receiver { return start(c, usual) }

func start(c Config, p pace) *Receiver {
	c.StillWritten = cmp.Or(c.StillWritten, importer.StillWritten)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	r := &Receiver{
		Config: c, looks: p.looks, wake: make(chan struct{}, 1), unknown: make(chan struct{}, 1),
		news:  rate.Sometimes{First: 20, Interval: 10 * time.Second},
		files: map[key]*file{}, marks: map[key]*mark{}, named: map[key]bool{}, pause: newPause(),
	}
	r.ctx, r.stop = context.WithCancel(context.Background())
	if c.Follow != nil {
		r.recall()
		r.running.Go(func() { r.follow(p) })
	}
	r.running.Go(r.work)
	return r
}

func newPause() *backoff.ExponentialBackOff {
	p := backoff.NewExponentialBackOff()
	p.InitialInterval, p.MaxInterval = minPause, maxPause
	return p
}

// Close stops the receiver and waits for its worker, which abandons a running import. What is not imported yet comes
// with the next walk or a later doorbell for its file, at any receiver. It is idempotent.
func (r *Receiver) Close() {
	r.stop()
	r.running.Wait()
	r.save()
}

// Ring says that a session of an agent moved and that the file at path records it. It queues the
// file and returns at once.
//
// It returns [ErrAgent], [ErrPath] if the path is not absolute or has another name than
// transcripts have, [ErrBusy] if [MaxFiles] files wait, or [ErrClosed]. A file that is not below
// a root is refused later, see Status.
func (r *Receiver) Ring(agent, session, path string) error {
	return r.ring(agent, session, path, func(*file) {})
}

// Began is [Receiver.Ring] at the begin of a turn.
func (r *Receiver) Began(agent, session, path string) error {
	return r.ring(agent, session, path, func(f *file) { f.ended = time.Time{} })
}

// Ended is [Receiver.Ring] at the end of a turn, or of the session. The agent may still have to write the last lines.
func (r *Receiver) Ended(agent, session, path string) error {
	return r.ring(agent, session, path, func(f *file) { f.ended = time.Now() })
}

func (r *Receiver) ring(agent, session, path string, turn func(*file)) error {
	_, err := agentNamed(agent)
	if err == nil {
		err = check(agent, path)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Rings++
	if err == nil {
		k := key{agent, filepath.Clean(path)}
		if err = r.queue(k, session); err == nil {
			turn(r.files[k])
		}
	}
	if err != nil {
		r.status.Refused++
		return err
	}
	r.heard(agent)
	return nil
}

// Reads reports whether a session of an agent has rung for a file that is there and may be read: if it is not recorded yet,
// it soon is.
func (r *Receiver) Reads(agent, session string) bool {
	var paths []string
	r.mu.Lock()
	for _, f := range r.files {
		if f.agent == agent && f.session == shortened(session, 128) {
			paths = append(paths, f.path)
		}
	}
	r.mu.Unlock()
	return slices.ContainsFunc(paths, func(path string) bool {
		_, _, err := r.resolve(agent, path)
		return err == nil
	})
}

// Heard says that a hook of an agent has called that names no file. If the agent's folder is not followed yet, it is now, if
// the agent is connected.
func (r *Receiver) Heard(agent string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard(agent)
}

func (r *Receiver) heard(agent string) {
	if r.Follow != nil && !slices.ContainsFunc(r.followed, func(f Followed) bool { return f.Agent == agent }) {
		signal(r.unknown)
	}
}

// queue has the worker look at a file. It returns [ErrBusy] or [ErrClosed]. The caller holds mu.
func (r *Receiver) queue(k key, session string) error {
	if r.ctx.Err() != nil {
		return ErrClosed
	}
	now := time.Now()
	f := r.files[k]
	if f == nil {
		if len(r.files) >= MaxFiles && !r.forget() {
			return fmt.Errorf("%w: %d", ErrBusy, len(r.files))
		}
		f = &file{key: k, pause: newPause()}
		r.files[k] = f
	}
	f.session, f.rung, f.used = cmp.Or(shortened(session, 128), f.session), true, now
	if !f.reading && !f.failing {
		f.due = later(now, f.rested)
	}
	signal(r.wake)
	return nil
}

// signal wakes the reader of a channel that has room for one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// forget removes the file that has been idle for longest, or else one that does not exist. It
// reports whether there was one. The caller holds mu.
func (r *Receiver) forget() bool {
	var worst *file
	for _, f := range r.files {
		idle := f.due.IsZero()
		if f.reading || !idle && (!f.missing || f.rung) {
			continue
		}
		if worst == nil || idle && !worst.due.IsZero() || idle == worst.due.IsZero() && f.used.Before(worst.used) {
			worst = f
		}
	}
	if worst == nil {
		return false
	}
	delete(r.files, worst.key)
	return true
}

// work takes the files in the order in which they are due, and the history when none is.
func (r *Receiver) work() {
	for {
		if r.ctx.Err() != nil {
			return
		}
		f, j, wait := r.next()
		switch {
		case f != nil:
			r.settle(f, j, r.bring(j))
			continue
		case wait <= 0:
			r.settlePast(r.bring(j))
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-r.wake:
		case <-r.ctx.Done():
		}
		timer.Stop()
	}
}

// next takes the file that has been due for longest, else one of the history, or says how long to wait for one. f is
// nil for a file of the history.
func (r *Receiver) next() (f *file, j job, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.files {
		if !g.due.IsZero() && (f == nil || g.due.Before(f.due)) {
			f = g
		}
	}
	if f == nil {
		j, wait = r.nextPast()
		return nil, j, wait
	}
	if due := time.Until(f.due); due > 0 {
		j, wait = r.nextPast()
		return nil, j, min(wait, due)
	}
	j = job{f.key, f.session, f.rung, f.ended}
	f.rung, f.reading = false, true
	return f, j, 0
}

// job is one look at a file and those of its subagents.
type job struct {
	key
	session string
	rung    bool      // a doorbell asked for it
	ended   time.Time // when the turn ended that the file records; zero if it goes on
}

// outcome is what became of a job.
type outcome struct {
	read  bool          // something was imported
	took  time.Duration // what the imports took
	again time.Time     // when a last message counts as complete, or zero
	err   error         // ErrPath, errMissing, or an error from outside the file
}

// settle says when a file is due again.
func (r *Receiver) settle(f *file, j job, o outcome) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	f.reading, f.missing, f.failing = false, errors.Is(o.err, errMissing), false
	if o.read {
		f.used, f.rested = now, now.Add(rest*o.took)
	}
	switch {
	case errors.Is(o.err, ErrPath):
		delete(r.files, f.key)
		return
	case o.err != nil && !f.missing:
		f.failing, f.rung = true, f.rung || j.rung
		f.due = now.Add(f.pause.NextBackOff())
		return
	}
	f.pause.Reset()
	if j.rung || o.read {
		f.base, f.look = now, 0
	} else {
		f.look++
	}
	f.due = time.Time{}
	if f.look < len(r.looks) {
		f.due = f.base.Add(r.looks[f.look])
	}
	if !o.again.IsZero() && (f.due.IsZero() || o.again.Before(f.due)) {
		f.due = o.again
	}
	if f.rung {
		f.due = now
	}
	if !f.due.IsZero() {
		f.due = later(f.due, f.rested)
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
