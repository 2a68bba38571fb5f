package capture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"mneme.dev/mneme/internal/writefile"
)

// memory is the content of the file of marks, see Config.Marks.
type memory struct {
	// Log and Seq tell whether the log still has what the marks say was read: another creation
	// time is another log, and one that ends before Seq came back from an older backup.
	Log   time.Time                        `json:"log"`
	Seq   uint64                           `json:"seq"`
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
	m, err := r.load()
	if err != nil {
		r.Logger.Warn("what was read of transcripts is not known; they are read again", "file", r.Marks, "error", err)
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

func (r *Receiver) load() (m memory, err error) {
	raw, err := os.ReadFile(r.Marks)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err != nil {
		return memory{}, err
	}
	state, err := r.Log.State(r.ctx)
	switch {
	case err != nil:
		return memory{}, err
	case !m.Log.Equal(r.Log.Created()):
		return memory{}, errors.New("it is about another log")
	case state.Head < m.Seq:
		return memory{}, fmt.Errorf("it is about a log with %d events, and this one has %d", m.Seq, state.Head)
	}
	return m, nil
}

// save writes the marks if they changed. Those of files that could not be read to their end are left
// out, so that the next process tries again.
func (r *Receiver) save() {
	r.mu.Lock()
	if r.Marks == "" || !r.dirty {
		r.mu.Unlock()
		return
	}
	m := memory{Log: r.Log.Created(), Seq: r.seq, Files: map[string]map[string]remembered{}}
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
	raw, err := json.Marshal(m)
	if err == nil {
		err = writefile.Write(r.Marks, bytes.NewReader(raw))
	}
	if err != nil {
		r.mu.Lock()
		r.dirty = true
		r.mu.Unlock()
		r.news.Do(func() {
			r.Logger.Warn("what was read of transcripts can't be saved; a restart reads it again", "file", r.Marks, "error", err)
		})
	}
}
