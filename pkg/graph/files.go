package graph

import (
	"unicode/utf8"

	"mneme/events"
	"mneme/pkg/files"
	"mneme/pkg/projection"
)

// FilesState is a conversation in a unit of work of the projection "files".
type FilesState struct {
	ID         events.ConversationID
	Key        int64
	Cwd        string
	TurnCount  int
	LastSeq    uint64
	DeletedSeq uint64
	Touched    bool
	Dropped    bool
}

// TrackedCall is a tool call whose result matters: it may name more files, or say
// that the call failed and touched none.
type TrackedCall struct {
	Seq        uint64
	ToolCallID string
	Tool       string
	Arguments  string // JSON, what reading the result needs; "" if the result is not read
	Cwd        string
	Turn       int
}

// EarlyResult is a result that came before its call.
type EarlyResult struct {
	Seq        uint64
	ToolCallID string
	Failed     bool
	Result     string
	Files      []events.FileOp
}

// FileChange is one change of the list of accesses. Changes are saved in order.
type FileChange struct {
	Seq uint64 // the event that makes the change
	// An access, unless Revoked is set.
	Access files.Access
	Rank   int    // orders accesses of one event: the higher, the newer
	Call   uint64 // sequence of the call that made the access
	Tool   string
	Turn   int
	// Revoked is the sequence of a call that failed: its accesses end at Seq.
	Revoked uint64
}

// FilesUnit is the unit of work of the projection "files".
type FilesUnit struct {
	States  map[events.ConversationID]*FilesState
	Calls   map[CallRef]TrackedCall // loaded for the results of the batch
	Early   map[CallRef]EarlyResult // loaded for the calls of the batch
	Changes []Of[FilesState, FileChange]
	// New rows for results to come, and for results that came too early.
	NewCalls []Of[FilesState, TrackedCall]
	NewEarly []Of[FilesState, EarlyResult]
}

// CallRef names a tool call.
type CallRef struct {
	Conversation events.ConversationID
	ToolCallID   string
}

// NewFilesUnit makes an empty unit; the backend adds what it has loaded.
func NewFilesUnit() *FilesUnit {
	return &FilesUnit{
		States: map[events.ConversationID]*FilesState{},
		Calls:  map[CallRef]TrackedCall{},
		Early:  map[CallRef]EarlyResult{},
	}
}

// Tombstone implements projection.Unit.
func (u *FilesUnit) Tombstone(id events.ConversationID) uint64 {
	if s := u.States[id]; s != nil {
		return s.DeletedSeq
	}
	return 0
}

// FilesProjection declares the read model "files": which files a conversation's
// tool calls touched. An access is made at the call, so that it is known at once,
// and taken back by a result that says the call failed. A result may add search
// hits and listed files.
func FilesProjection(table *files.Table) projection.Projection[*FilesUnit] {
	r := filesReducer{table}
	return projection.Projection[*FilesUnit]{
		Name:     "files",
		Version:  1,
		Settings: table.Fingerprint(),
		Reducers: map[string]projection.Reducer[*FilesUnit]{
			events.TypeConversationStarted: r.started,
			events.TypeConversationDeleted: r.deleted,
			events.TypeMessageCreated:      r.message,
			events.TypeToolCalled:          r.called,
			events.TypeToolReturned:        r.returned,
		},
	}
}

type filesReducer struct{ table *files.Table }

func (u *FilesUnit) touch(e *events.Recorded) *FilesState {
	id := e.Conversation()
	s := u.States[id]
	if s == nil {
		s = &FilesState{ID: id}
		u.States[id] = s
	}
	s.LastSeq = e.Seq
	s.Touched = true
	return s
}

func (r filesReducer) started(u *FilesUnit, e *events.Recorded) error {
	set(&u.touch(e).Cwd, e.Payload.(*events.ConversationStarted).Cwd)
	return nil
}

func (r filesReducer) message(u *FilesUnit, e *events.Recorded) error {
	s := u.touch(e)
	if e.Payload.(*events.MessageCreated).Role == "user" {
		s.TurnCount++
	}
	return nil
}

func (r filesReducer) called(u *FilesUnit, e *events.Recorded) error {
	p := e.Payload.(*events.ToolCalled)
	s := u.touch(e)
	made := files.Call{Tool: p.ToolName, Arguments: p.Arguments, Cwd: s.Cwd}
	call := TrackedCall{Seq: e.Seq, ToolCallID: p.ToolCallID, Tool: p.ToolName, Cwd: s.Cwd, Turn: s.TurnCount}
	if kept, ok := r.table.Keep(made); ok {
		call.Arguments = string(kept.Arguments)
	}
	accesses := r.table.FromCall(made)
	u.access(s, call, e.Seq, 0, accesses)
	ref := CallRef{s.ID, p.ToolCallID}
	u.Calls[ref] = call
	u.NewCalls = append(u.NewCalls, Of[FilesState, TrackedCall]{s, call})
	if early, ok := u.Early[ref]; ok {
		r.settle(u, s, call, early, e.Seq, len(accesses))
	}
	return nil
}

func (r filesReducer) returned(u *FilesUnit, e *events.Recorded) error {
	p := e.Payload.(*events.ToolReturned)
	s := u.touch(e)
	ref := CallRef{s.ID, p.ToolCallID}
	result := EarlyResult{
		Seq: e.Seq, ToolCallID: p.ToolCallID, Failed: p.Success != nil && !*p.Success,
		Result: cut(p.Text(), maxResultBytes), Files: p.Files,
	}
	if call, ok := u.Calls[ref]; ok {
		r.settle(u, s, call, result, e.Seq, 0)
		return nil
	}
	u.Early[ref] = result
	u.NewEarly = append(u.NewEarly, Of[FilesState, EarlyResult]{s, result})
	return nil
}

// maxResultBytes is how much of a result is looked at. It is a little more than
// package files takes, which so knows that the last line may be cut in half.
const maxResultBytes = files.MaxResultBytes + utf8.UTFMax

// settle applies a result to its call, whichever of them came last, at seq. ranked
// accesses of the same event come before those of the result.
func (r filesReducer) settle(u *FilesUnit, s *FilesState, call TrackedCall, result EarlyResult, seq uint64, ranked int) {
	if result.Failed {
		u.Changes = append(u.Changes, Of[FilesState, FileChange]{s, FileChange{Seq: seq, Revoked: call.Seq}})
		return
	}
	c := files.Call{Cwd: call.Cwd} // of no known tool: what the runtime reports
	if call.Arguments != "" {
		c.Tool, c.Arguments = call.Tool, []byte(call.Arguments)
	}
	u.access(s, call, seq, ranked, r.table.FromResult(c, result.Result, result.Files))
}

// access adds accesses, the first of them the newest, and all newer than those that
// are ranked already.
func (u *FilesUnit) access(s *FilesState, call TrackedCall, seq uint64, ranked int, list []files.Access) {
	for i := len(list) - 1; i >= 0; i-- {
		u.Changes = append(u.Changes, Of[FilesState, FileChange]{s, FileChange{
			Seq: seq, Access: list[i], Rank: ranked + len(list) - i, Call: call.Seq, Tool: call.Tool, Turn: call.Turn,
		}})
	}
}

func (r filesReducer) deleted(u *FilesUnit, e *events.Recorded) error {
	s := u.touch(e)
	u.NewCalls = without(u.NewCalls, s)
	u.NewEarly = without(u.NewEarly, s)
	u.Changes = without(u.Changes, s)
	*s = FilesState{ID: s.ID, Key: s.Key, LastSeq: e.Seq, DeletedSeq: e.Seq, Touched: true, Dropped: true}
	return nil
}
