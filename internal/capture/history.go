package capture

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// found is a transcript that a walk found in a followed folder.
type found struct {
	folder   Folder
	path     string // without links
	size     int64
	modified time.Time
}

// consider queues the files found that must be read. A file that may still be written is queued as if it had rung; the
// rest is history. whole says that list is everything in the folder.
func (r *Receiver) consider(folder Folder, list []found, whole bool) (stale int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if whole {
		r.history = slices.DeleteFunc(r.history, func(f found) bool { return f.folder == folder })
	}
	old := len(r.history)
	for _, f := range list {
		if !r.stale(f) {
			continue
		}
		stale++
		live := now.Sub(f.modified) < r.StillWritten
		if !live || errors.Is(r.queue(key{folder.Agent, f.path}, ""), ErrBusy) {
			r.history = append(r.history, f)
		}
	}
	if len(r.history) > old {
		slices.SortFunc(r.history, older)
		signal(r.wake)
	}
	return stale
}

// older orders files by when they changed, the newest last.
func older(a, b found) int {
	if c := a.modified.Compare(b.modified); c != 0 {
		return c
	}
	return strings.Compare(a.path, b.path)
}

// stale reports whether a file is not as it was when it was last read. The caller holds mu.
func (r *Receiver) stale(f found) bool {
	m := r.marks[key{f.folder.Agent, f.path}]
	return m == nil || m.size != f.size || !m.modified.Equal(f.modified) || m.held && time.Since(m.modified) >= r.StillWritten
}

// nextPast takes the oldest file of the history, or says how long none may be taken: what comes later
// in the log counts as newer, in lists and in contexts of projects. The caller holds mu.
func (r *Receiver) nextPast() (j job, wait time.Duration) {
	if len(r.history) == 0 {
		return j, time.Hour
	}
	if wait = time.Until(r.resume); wait > 0 {
		return j, wait
	}
	f := r.history[0]
	r.history, r.past = r.history[1:], &f
	return job{key: key{f.folder.Agent, f.path}}, 0
}

// settlePast puts a file of the history back if the log or the lookup failed.
func (r *Receiver) settlePast(o outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := *r.past
	r.past = nil
	if o.err == nil || errors.Is(o.err, ErrPath) || errors.Is(o.err, errMissing) {
		r.pause.Reset()
		return
	}
	r.history = append(r.history, f)
	slices.SortFunc(r.history, older)
	r.resume = time.Now().Add(r.pause.NextBackOff())
}
