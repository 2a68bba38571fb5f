package capture

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Bounds of a status.
const (
	maxError = 1000 // bytes of LastError
	maxSkips = 100  // keys of Skipped
	maxNamed = 1000 // refused paths that are remembered, so that each is logged once
)

// Status says what a receiver did since it was started. It has a bounded size.
type Status struct {
	Rings     uint64 `json:"rings"`     // calls of Ring
	Refused   uint64 `json:"refused"`   // calls of Ring that returned an error, and files that may not be read
	Files     int    `json:"files"`     // that are remembered, at most MaxFiles
	Waiting   int    `json:"waiting"`   // of those, files at which a look is due, now or later
	Imports   uint64 `json:"imports"`   // of single files, failed ones too
	Published uint64 `json:"published"` // events
	// Followed are the folders that are followed without doorbells. History counts their files that
	// must still be read and were not being written when they were found.
	Followed []Followed `json:"followed,omitempty"`
	History  int        `json:"history"`
	// RefusedLines and Skipped count lines of the remembered files, as of the last import of each, and Deleted events of
	// conversations that were deleted. Skipped counts lines of unknown types by type, see importer.Report.
	RefusedLines  int                  `json:"refused_lines"`
	Deleted       int                  `json:"deleted,omitempty"`
	Skipped       map[string]int       `json:"skipped,omitempty"`
	UnreadFiles   int                  `json:"unread_files,omitempty"` // remembered files that could not be read to their end
	LastError     string               `json:"last_error,omitempty"`
	LastErrorTime time.Time            `json:"last_error_time,omitzero"`
	LastImport    map[string]time.Time `json:"last_import,omitempty"` // by agent
}

// Status returns the receiver's status.
func (r *Receiver) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status
	s.LastImport = maps.Clone(s.LastImport)
	s.Followed = slices.Clone(r.followed)
	s.History = r.left()
	s.Files = len(r.files)
	for _, f := range r.files {
		if f.reading || !f.due.IsZero() {
			s.Waiting++
		}
	}
	for _, m := range r.marks {
		s.RefusedLines += m.refused
		s.Deleted += m.deleted
		if m.failed {
			s.UnreadFiles++
		}
		for what, n := range m.skipped {
			if s.Skipped == nil {
				s.Skipped = map[string]int{}
			}
			if s.Skipped[what] == 0 && len(s.Skipped) >= maxSkips {
				what = "others"
			}
			s.Skipped[what] += n
		}
	}
	return s
}

// Left returns how many files of the history are still to be read. Unlike [Receiver.Status] it looks at no file, so it may
// be asked often.
func (r *Receiver) Left() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left()
}

func (r *Receiver) left() int {
	n := len(r.history)
	if r.past != nil {
		n++
	}
	return n
}

// Idle reports whether everything found in followed folders has been read, except for messages that may be
// incomplete. It is false until the folders were walked once.
func (r *Receiver) Idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.followed) == 0 || len(r.history) > 0 || r.past != nil {
		return false
	}
	for _, f := range r.files {
		if f.rung || f.reading || f.failing {
			return false
		}
	}
	return true
}

// shortened cuts a text to a number of bytes, not within a character.
func shortened(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
