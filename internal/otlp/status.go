package otlp

import (
	"maps"
	"slices"
	"time"
)

// Bounds of a status.
const (
	maxNames = 100  // keys of LeftOut
	maxName  = 64   // bytes of one
	maxError = 1000 // bytes of LastError
)

// Status says what a receiver did since it was started. It has a bounded size.
type Status struct {
	Listen    []string `json:"listen"`    // the URLs
	Recorded  uint64   `json:"recorded"`  // spans and log records that brought something new
	Known     uint64   `json:"known"`     // all of which was recorded before
	Refused   uint64   `json:"refused"`   // of a conversation, but not readable
	Published uint64   `json:"published"` // events
	// LeftOut counts the other entries by reason and by the library that made them: "unknown: net/http". Beyond 100
	// different ones the rest counts as "others".
	LeftOut       map[string]uint64 `json:"left_out,omitempty"`
	LastError     string            `json:"last_error,omitempty"`
	LastErrorTime time.Time         `json:"last_error_time,omitzero"`
	// Waits says why a request could not be recorded yet, and WaitsSince when it was last tried: its exporter was asked to send
	// it again. It is empty once a later request got through.
	Waits      string    `json:"waits,omitempty"`
	WaitsSince time.Time `json:"waits_since,omitzero"`
}

// Status returns what the receiver did.
func (r *Receiver) Status() Status {
	r.statusMu.Lock()
	defer r.statusMu.Unlock()
	s := r.status
	s.Listen, s.LeftOut = slices.Clone(s.Listen), maps.Clone(s.LeftOut)
	return s
}

// Listens sets the URLs at which the receiver is reached.
func (r *Receiver) Listens(urls []string) {
	r.statusMu.Lock()
	defer r.statusMu.Unlock()
	r.status.Listen = slices.Clone(urls)
}

func (s *Status) note(reason string) {
	s.LastError, s.LastErrorTime = bounded(reason, maxError), time.Now()
}

// count counts the outcomes of a request's entries.
func (r *Receiver) count(s signal, list []entry, outcomes, left []string, result taken) {
	r.statusMu.Lock()
	defer r.statusMu.Unlock()
	st := &r.status
	for i, outcome := range outcomes {
		scope := ""
		switch outcome {
		case Recorded:
			st.Recorded++
			st.Waits, st.WaitsSince = "", time.Time{}
		case Known:
			st.Known++
		case Refused:
			st.Refused++
		case LeftOut:
			if st.LeftOut == nil {
				st.LeftOut = map[string]uint64{}
			}
			if left[i] == fromTranscript { // the read model answered
				st.Waits, st.WaitsSince = "", time.Time{}
			}
			scope = left[i] + ": " + bounded(list[i].scope, maxName)
			if list[i].scope == "" {
				scope = left[i]
			}
			if st.LeftOut[scope] == 0 && len(st.LeftOut) >= maxNames {
				scope = "others"
			}
			st.LeftOut[scope]++
		}
		r.Counted(string(s), outcome, scope)
	}
	if result.refused > 0 {
		st.note(result.reason)
		r.news.Do(func() {
			r.Logger.Warn("spans or log records were refused; the others are recorded", "signal", s, "refused", result.refused, "first", result.reason)
		})
	}
}
