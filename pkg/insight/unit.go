package insight

import (
	"context"
	"strconv"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/projection"
)

// Limits of what a conversation remembers.
const (
	maxOpen   = 32  // calls without a result, and results without a call
	maxSeen   = 256 // reads of files since they were written
	maxOfCall = 8   // commands and files of one call
)

// Memory is what later events of a conversation need to know about earlier ones.
type Memory struct {
	Place   project.Place `json:"p,omitzero"`
	Agent   string        `json:"a,omitempty"`
	Model   string        `json:"m,omitempty"`
	Began   int64         `json:"b,omitempty"` // the time of the first event that has one, Unix milliseconds
	Calls   int64         `json:"n,omitempty"`
	Changed bool          `json:"w,omitempty"` // a file was written
	Steps   int64         `json:"s,omitempty"` // since the last compaction
	Context int64         `json:"c,omitempty"` // tokens that the newest step read
	Open    []open        `json:"o,omitempty"`
	Early   []early       `json:"e,omitempty"`
	Seen    []byte        `json:"r,omitempty"` // see [seen]
}

// open is a call whose result has not come.
type open struct {
	ID       string   `json:"i"`
	Tool     string   `json:"t"`
	Model    string   `json:"m,omitempty"`
	At       int64    `json:"a,omitempty"` // Unix milliseconds, 0 if unknown
	Commands []string `json:"c,omitempty"`
	Decides  string   `json:"d,omitempty"` // the command that decides whether the call fails
	Touched  []string `json:"f,omitempty"` // files that the call itself names: their paths after r or w
}

// early is a result whose call has not come.
type early struct {
	ID string `json:"i"`
	outcome
}

// outcome is how a call ended.
type outcome struct {
	Success *bool  `json:"s,omitempty"`
	Refused bool   `json:"r,omitempty"` // by the user; Success is false then
	Error   string `json:"e,omitempty"`
	MS      int64  `json:"d"` // -1 if unknown
}

// State is a conversation in a unit of work.
type State struct {
	projection.ConversationState
	Memory  Memory
	Days    map[string]*Day // those of the batch's events
	Changed map[string]bool // of them
}

// Unit is the unit of work of the projection "insight".
type Unit struct {
	projection.States[State, *State]
}

// DayKey names a row.
type DayKey struct {
	ID  events.ConversationID
	Day string
}

// NewUnit makes an empty unit; the backend adds what it loads.
func NewUnit() *Unit { return &Unit{projection.States[State, *State]{}} }

// StoredDays returns the rows of a batch that may be stored: the backend looks them up, once it has loaded the states, and
// enters those that it finds with [State.Enter].
func (u *Unit) StoredDays(list []*events.Recorded) (days []DayKey) {
	known := map[DayKey]bool{}
	for _, e := range list {
		at := DayKey{e.Conversation(), dayOf(e)}
		if !known[at] && u.States[at.ID].Key != 0 {
			known[at] = true
			days = append(days, at)
		}
	}
	return days
}

// Enter adds a stored row.
func (s *State) Enter(r Row) error {
	d, err := r.Decode()
	if err != nil {
		return err
	}
	if s.Days == nil {
		s.Days = map[string]*Day{}
	}
	s.Days[r.Day] = d
	return nil
}

// Rows returns the rows that changed, in any order.
func (s *State) Rows() (list []Row) {
	for date := range s.Changed {
		list = append(list, s.Days[date].Row(s.ID.ID))
	}
	return list
}

func (u *Unit) touch(e *events.Recorded) *State {
	s := u.Touch(e)
	if s.Memory.Began == 0 && timed(e) {
		s.Memory.Began = e.Time.UnixMilli()
	}
	return s
}

// day returns the row that an event counts in.
func (s *State) day(e *events.Recorded) *Day {
	date := dayOf(e)
	d := s.Days[date]
	if d == nil {
		if s.Days == nil {
			s.Days = map[string]*Day{}
		}
		d = &Day{Date: date}
		s.Days[date] = d
	}
	if s.Changed == nil {
		s.Changed = map[string]bool{}
	}
	s.Changed[date] = true
	d.Project, d.Agent = s.Memory.Place.Name, s.Memory.Agent
	return d
}

// EncodeMemory returns a memory as it is stored.
func EncodeMemory(m *Memory) string { return encode(m) }

// DecodeMemory is the inverse of [EncodeMemory].
func DecodeMemory(text string) (m Memory, err error) { return m, decode(text, &m) }

// Hash returns the hash of a conversation's memory and rows, which are sorted by day. See projection.ReadStore.
func Hash(id events.ConversationID, deleted bool, memory string, rows []Row) events.Digest {
	parts := []string{id.Tenant, id.ID, strconv.FormatBool(deleted)}
	if !deleted {
		parts = append(parts, memory)
		for _, r := range rows {
			parts = append(parts, r.Day, r.Project, r.Agent, r.Counts, r.Detail)
		}
	}
	return events.DigestOf(parts...)
}

// Reader reads the read model "insight".
type Reader interface {
	projection.ReadStore
	// Rows reads the rows of a tenant, in any order.
	Rows(ctx context.Context, tenant string, q RowQuery, yield func(*Row) error) error
}

// RowQuery selects rows. Days are compared as texts, so [UnknownDay] is before all others.
type RowQuery struct {
	Since, Until string   // the first and the last day; "" has no limit
	Projects     []string // nil for all
	Conversation string   // "" for all
	Detail       bool     // read Row.Detail instead of Row.Counts
}

// Store is the backend of the projection "insight".
type Store interface {
	projection.Store[*Unit]
	Reader
}

// seen is the list of files that were read and not written since: eight bytes each, for the file and the part that was
// read, the newest last.
type seen []byte

const seenSize = 8

func seenKey(path, part string) (key [seenSize]byte) {
	file := events.DigestOf(path)
	copy(key[:4], file[:])
	if part != "" {
		of := events.DigestOf(part)
		copy(key[4:], of[:])
	}
	return key
}

// read enters a read of a part of a file, "" for all of it, and reports whether the read repeats one of the same part
// or of the whole file.
func (s *seen) read(path, part string) (again bool) {
	key, whole := seenKey(path, part), seenKey(path, "")
	list := *s
	for i := 0; i+seenSize <= len(list); i += seenSize {
		at := [seenSize]byte(list[i:])
		if again = again || at == whole; at == key {
			again = true
			list = append(list[:i:i], list[i+seenSize:]...)
			i -= seenSize
		}
	}
	if len(list) >= maxSeen*seenSize {
		list = list[seenSize:]
	}
	*s = append(list[:len(list):len(list)], key[:]...)
	return again
}

// written forgets the reads of a file.
func (s *seen) written(path string) {
	file := seenKey(path, "")
	var kept seen
	for i := 0; i+seenSize <= len(*s); i += seenSize {
		if [4]byte((*s)[i:]) != [4]byte(file[:]) {
			kept = append(kept, (*s)[i:i+seenSize]...)
		}
	}
	*s = kept
}
