package capture

import (
	"time"

	"mneme.dev/mneme/internal/logstate"
)

// memory is the content of the file of marks, see Config.Marks.
type memory struct {
	logstate.About
	Files map[string]map[string]remembered `json:"files"` // by agent and path
}

// remembered is a mark on disk. A file that changed is read from its start anyway, so size and time
// suffice to notice that it was replaced; a database is read from the time up to which it was read.
type remembered struct {
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	Held     bool      `json:"held,omitempty"`
	Until    time.Time `json:"until,omitzero"` // of a database
}

// recall loads the marks of an earlier process. Without them, everything is read again: the log drops
// what it knows.
func (r *Receiver) recall() {
	if r.Marks == "" {
		return
	}
	var m memory
	if err := logstate.Load(r.ctx, r.Marks, r.Log, &m); err != nil {
		r.Logger.Warn("it is unknown which transcripts were read; reading them again", "file", r.Marks, "error", err)
		return
	}
	r.seq = m.Seq
	for agent, files := range m.Files {
		for path, was := range files {
			if len(r.marks) == maxMarks {
				return
			}
			r.marks[key{agent, path}] = &mark{size: was.Size, modified: was.Modified, held: was.Held, until: was.Until}
		}
	}
}

// save writes the marks if they changed, and reports whether they did. Those of files that could not be read to their
// end are left out, so that the next process tries again.
func (r *Receiver) save() bool {
	r.mu.Lock()
	if r.Marks == "" || !r.dirty {
		r.mu.Unlock()
		return false
	}
	m := memory{About: logstate.About{Log: r.Log.Created(), Seq: r.seq}, Files: map[string]map[string]remembered{}}
	for k, was := range r.marks {
		if was.failed {
			continue
		}
		if m.Files[k.agent] == nil {
			m.Files[k.agent] = map[string]remembered{}
		}
		m.Files[k.agent][k.path] = remembered{was.size, was.modified, was.held, was.until}
	}
	r.dirty = false
	r.mu.Unlock()
	if err := logstate.Save(r.Marks, &m); err != nil {
		r.mu.Lock()
		r.dirty = true
		r.mu.Unlock()
		r.news.Do(func() {
			r.Logger.Warn("cannot save which transcripts were read; a restart will read them again", "file", r.Marks, "error", err)
		})
	}
	return true
}
