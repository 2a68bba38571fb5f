package capture

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/transcript"
)

// mark is what a file was like when it was last read. Its fields belong to Receiver.mu.
type mark struct {
	size     int64
	modified time.Time
	held     bool // its last message may be incomplete
	asked    bool // it was read as that of a turn that has ended
	failed   bool // it could not be read to its end
	refused  int  // lines
	deleted  int  // events of deleted conversations
	skipped  map[string]int
	until    time.Time // of a database, see [transcript.ReadDatabase]
	at       time.Time // when it was last compared
}

// maxMarks limits how many marks are kept. A file without a mark is read again.
const maxMarks = 100_000

// bring imports what is new of a file and of its subagents' files.
func (r *Receiver) bring(j job) (o outcome) {
	path, info, err := r.resolve(j.agent, j.path)
	switch {
	case errors.Is(err, errMissing):
		o.err = err
		return o
	case err != nil: // it may not be read, or can't be reached: the next doorbell may find it mended
		r.refuse(j, err)
		o.err = errors.Join(ErrPath, err)
		return o
	}
	other := j
	other.ended = time.Time{} // the doorbell told of the session's own file
	for _, earlier := range r.earlier(j.agent, path) {
		if real, info, err := r.resolve(j.agent, earlier); err == nil && o.err == nil { // otherwise the session's own look reports the error
			r.importFile(other, real, info, &o)
		}
	}
	if o.err != nil {
		return o
	}
	r.importFile(j, path, info, &o)
	children, all := subagents(path)
	if !all && j.rung {
		r.news.Do(func() {
			r.Logger.Warn("a session has more subagents than are read: import their folder with mneme import", "session", j.session, "file", path, "read", maxSubagents)
		})
	}
	for _, child := range children {
		if o.err != nil {
			break
		}
		real, info, err := r.resolve(j.agent, child)
		switch {
		case errors.Is(err, errMissing):
		case err != nil:
			if j.rung {
				r.refuse(job{key: key{j.agent, child}, session: j.session}, err)
			}
		default:
			r.importFile(other, real, info, &o)
		}
	}
	return o
}

// earlier returns the files of a session's earlier events that have not been read yet, in their order, because the log
// keeps messages in the order in which they come. It has none for an agent that records a session in one file.
func (r *Receiver) earlier(agent, path string) (paths []string) {
	if !agents[agent].pieces {
		return nil
	}
	entries, _ := os.ReadDir(filepath.Dir(path)) // sorted; if it can't be read, the file itself can't be either
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range slices.Backward(entries) {
		piece := filepath.Join(filepath.Dir(path), e.Name())
		if piece >= path || !isTranscript(agent, piece) {
			continue
		}
		if r.marks[key{agent, piece}] != nil { // the files before it were read, too
			break
		}
		paths = append(paths, piece)
	}
	slices.Reverse(paths)
	return paths
}

// importFile imports one file unless it is as it was.
func (r *Receiver) importFile(j job, path string, info fs.FileInfo, o *outcome) {
	k := key{j.agent, path}
	if !r.changed(k, info, j, o) {
		return
	}
	answered := answeredAt(info, j.ended)
	ended := !answered.IsZero() && !time.Now().Before(answered)
	began, refused := time.Now(), ""
	report, err := importer.Import(r.ctx, r.Log, []transcript.File{{Path: path, Size: info.Size()}}, importer.Options{
		Tenant: r.Tenant, Format: agents[j.agent].format, Lookup: r.Lookup, StillWritten: r.StillWritten, TurnEnded: ended, Redact: r.Redact, Since: r.until(k),
		Rejected: func(_ string, err *transcript.LineError) {
			refused = cmp.Or(refused, err.Error())
		},
	})
	o.read, o.took = true, o.took+time.Since(began)
	unread := errors.Is(err, importer.ErrUnread)
	if err != nil && !unread {
		o.err = err
	}
	held := report.HeldBack > 0 && report.Until.IsZero() // a database changes when its last message is finished
	if held {
		o.complete(r.completeAt(info))
		if !ended && !answered.IsZero() {
			o.complete(answered)
		}
	}
	if isInFlux(path, info, began) {
		info = withLog{info, -1, info.ModTime()} // so it counts as changed at the next look
	}
	more := r.note(k, info, held, ended, report, err)
	logger := r.Logger.With("agent", j.agent, "session", j.session, "file", path)
	switch {
	case r.ctx.Err() != nil:
	case unread:
		r.news.Do(func() { logger.Warn("a transcript could not be read completely", "error", oneLine(err)) })
	case err != nil:
		r.news.Do(func() { logger.Warn("a transcript could not be imported; trying again", "error", oneLine(err)) })
	case more:
		r.news.Do(func() {
			logger.Warn("lines of a transcript were refused; the others are in the log", "lines", report.Rejected, "first", refused)
		})
	default:
		logger.Debug("imported a transcript", "published", report.Published, "read", report.Read, "held_back", report.HeldBack, "deleted", report.Deleted)
	}
}

// flux is how long a change of a database may take to become readable: its agent writes the log first, and then says that
// there is more of it. The next look at the file is later, see looks.
const flux = 100 * time.Millisecond

// isInFlux reports whether a database changed so short a time before it was read that the read may have missed the change.
func isInFlux(path string, info fs.FileInfo, read time.Time) bool {
	age := read.Sub(info.ModTime())
	return isDatabase(path) && age >= 0 && age < flux
}

// complete notes the time at which a message of the outcome's files counts as complete.
func (o *outcome) complete(at time.Time) {
	if o.again.IsZero() || at.Before(o.again) {
		o.again = at
	}
}

// completeAt returns when the last message of a file counts as complete if it does not change.
func (r *Receiver) completeAt(info fs.FileInfo) time.Time {
	if now := time.Now(); info.ModTime().After(now) { // a clock jumped
		return now.Add(r.StillWritten)
	}
	return info.ModTime().Add(r.StillWritten)
}

// late is how long after the end of a turn a change of the file still belongs to that turn. A later one is of the next
// turn, of which no hook has told: another hook made the agent go on, or a task in the background has ended.
const late = time.Second

// answeredAt returns when the answer at the end of a file counts as complete, because the turn has ended; zero if the
// file has changed later.
func answeredAt(info fs.FileInfo, ended time.Time) time.Time {
	if ended.IsZero() || info.ModTime().After(ended.Add(late)) {
		return time.Time{}
	}
	return later(info.ModTime(), ended).Add(importer.TurnWritten)
}

// changed reports whether a file must be read.
func (r *Receiver) changed(k key, info fs.FileInfo, j job, o *outcome) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.marks[k]
	if m == nil {
		return true
	}
	m.at = time.Now()
	switch {
	case m.size != info.Size() || !m.modified.Equal(info.ModTime()):
		return true
	case m.failed:
		return j.rung
	case !m.held:
		return false
	case time.Since(m.modified) >= r.StillWritten:
		return true
	}
	if at := answeredAt(info, j.ended); !at.IsZero() && !m.asked {
		if !time.Now().Before(at) {
			return true
		}
		o.complete(at)
	}
	o.complete(r.completeAt(info))
	return false
}

// until returns the time up to which a database was read, zero if it must be read from its start.
func (r *Receiver) until(k key) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.marks[k]; m != nil && !m.failed {
		return m.until
	}
	return time.Time{}
}

// note remembers the state of a file after an import, and counts what the import did. held says that the file's last
// message counts as complete once the file rests, and asked that it was read as that of a turn that has ended. more reports
// that the import refused more lines than the one before.
func (r *Receiver) note(k key, info fs.FileInfo, held, asked bool, report importer.Report, err error) (more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, now := &r.status, time.Now()
	s.Imports++
	s.Published += uint64(report.Published)
	r.seq = max(r.seq, report.LastSeq)
	switch {
	case err == nil && k == r.failed: // it was tried again, and nobody has to mend anything
		s.LastError, s.LastErrorTime = "", time.Time{}
	case err != nil && r.ctx.Err() == nil:
		r.fail(k, err)
	}
	unread := errors.Is(err, importer.ErrUnread)
	if err != nil && !unread { // as it was before, so it is read again
		return false
	}
	if s.LastImport == nil {
		s.LastImport = map[string]time.Time{}
	}
	s.LastImport[k.agent] = now
	before := r.marks[k]
	if before == nil && len(r.marks) >= maxMarks {
		var oldest key
		for k, m := range r.marks {
			if old := r.marks[oldest]; old == nil || m.at.Before(old.at) {
				oldest = k
			}
		}
		delete(r.marks, oldest)
	}
	r.dirty = true
	r.marks[k] = &mark{
		size: info.Size(), modified: info.ModTime(), held: held, asked: asked, failed: unread,
		refused: report.Rejected, deleted: report.Deleted, skipped: maps.Clone(report.Skipped), until: report.Until, at: now,
	}
	return report.Rejected > 0 && (before == nil || report.Rejected > before.refused)
}

// fail notes the last error, with the name of its file. r.mu must be held.
func (r *Receiver) fail(k key, err error) {
	text := oneLine(err)
	if !strings.HasPrefix(text, k.path) {
		text = k.path + ": " + text
	}
	r.failed = k
	r.status.LastError, r.status.LastErrorTime = shortened(text, maxError), time.Now()
}

// refuse counts and logs a file that may not be read.
func (r *Receiver) refuse(j job, err error) {
	r.mu.Lock()
	r.status.Refused++
	r.fail(j.key, err)
	known := r.named[j.key]
	if len(r.named) >= maxNamed {
		clear(r.named)
	}
	r.named[j.key] = true
	r.mu.Unlock()
	if !known {
		r.news.Do(func() {
			r.Logger.Warn("a hook named a file that may not be read", "agent", j.agent, "session", j.session, "file", j.path, "error", oneLine(err))
		})
	}
}

func oneLine(err error) string {
	return strings.ReplaceAll(err.Error(), "\n", ": ")
}
