package graph

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/projection"
)

// FilesState is a conversation in a unit of work of the projection "files".
type FilesState struct {
	projection.ConversationState
	Cwd       string
	TurnCount int
}

// TrackedCall is a tool call whose result has not arrived. The result may name more
// files, or say that the call failed and touched none.
type TrackedCall struct {
	Seq       uint64
	Tool      string
	Arguments string // JSON needed to interpret the result; "" if the result is not used
	Cwd       string
	Turn      int
}

// EarlyResult is a result that came before its call.
type EarlyResult struct {
	Seq    uint64
	Failed bool
	Result string
	Files  []events.FileOp
}

// NewAccess is an access to add to its conversation.
type NewAccess struct {
	files.Access
	Seq     uint64
	Rank    int // orders accesses of one event: the higher, the newer
	Tool    string
	Turn    int
	Revoked uint64 // sequence of the result in the same batch that says its call failed; else 0
}

// Revocation ends the accesses that a call made in an earlier batch. They have the
// call's own sequence. Accesses added by a result are never revoked, because a call has
// only one result.
type Revocation struct {
	Call uint64 // sequence of the call that failed
	Seq  uint64 // of the result that reports the failure
}

// FilesUnit is the unit of work of the projection "files".
type FilesUnit struct {
	projection.States[FilesState, *FilesState]
	Calls    Waiting[TrackedCall] // calls of the batch's results are loaded
	Early    Waiting[EarlyResult] // early results of the batch's calls are loaded
	Accesses []projection.Of[FilesState, NewAccess]
	Revoked  []projection.Of[FilesState, Revocation]
}

// NewFilesUnit makes an empty unit; the backend adds what it loads.
func NewFilesUnit() *FilesUnit {
	return &FilesUnit{States: projection.States[FilesState, *FilesState]{}}
}

// FilesProjection declares the read model "files": which files a conversation's
// tool calls touched. The call records an access, so that it is known at once, and a
// result that says the call failed revokes it. A result may add search hits and listed
// files.
func FilesProjection(table *files.Table) projection.Projection[*FilesUnit] {
	r := filesReducer{table}
	return projection.Projection[*FilesUnit]{
		Name:     "files",
		Version:  2,
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

func (r filesReducer) started(u *FilesUnit, e *events.Recorded) error {
	set(&u.Touch(e).Cwd, e.Payload.(*events.ConversationStarted).Cwd)
	return nil
}

func (r filesReducer) message(u *FilesUnit, e *events.Recorded) error {
	s := u.Touch(e)
	if e.Payload.(*events.MessageCreated).Role == "user" {
		s.TurnCount++
	}
	return nil
}

func (r filesReducer) called(u *FilesUnit, e *events.Recorded) error {
	p := e.Payload.(*events.ToolCalled)
	s := u.Touch(e)
	call := TrackedCall{Seq: e.Seq, Tool: p.ToolName, Cwd: s.Cwd, Turn: s.TurnCount}
	did := r.table.Did(e, s.Cwd)
	if did.Kept != nil {
		call.Arguments = string(did.Kept.Arguments)
	}
	accesses := did.Accesses
	u.access(s, call, e.Seq, 0, accesses)
	ref := CallRef{s.ID, p.ToolCallID}
	if early, _, ok := u.Early.take(ref); ok {
		r.settle(u, s, call, false, early, e.Seq, len(accesses))
		return nil
	}
	u.Calls.add(ref, call)
	return nil
}

func (r filesReducer) returned(u *FilesUnit, e *events.Recorded) error {
	p := e.Payload.(*events.ToolReturned)
	s := u.Touch(e)
	ref := CallRef{s.ID, p.ToolCallID}
	result := EarlyResult{Seq: e.Seq, Failed: p.Success != nil && !*p.Success, Result: cut(p.Text(), maxResultBytes), Files: p.Files}
	if call, stored, ok := u.Calls.take(ref); ok {
		r.settle(u, s, call, stored, result, e.Seq, 0)
		return nil
	}
	u.Early.add(ref, result)
	return nil
}

// maxResultBytes is how much of a result is examined. It is slightly more than package
// files uses, so that files can tell that the last line may be cut.
const maxResultBytes = files.MaxResultBytes + utf8.UTFMax

// settle applies a result to its call, at the sequence of whichever came last. stored
// means that the call is from an earlier batch. ranked is how many accesses of the same
// event come before those of the result.
func (r filesReducer) settle(u *FilesUnit, s *FilesState, call TrackedCall, stored bool, result EarlyResult, seq uint64, ranked int) {
	switch {
	case result.Failed && stored:
		u.Revoked = append(u.Revoked, projection.RowOf(s, Revocation{Call: call.Seq, Seq: seq}))
		return
	case result.Failed:
		u.revoke(call.Seq, seq)
		return
	}
	c := files.Call{Cwd: call.Cwd} // without a tool, so only files that the runtime reports count
	if call.Arguments != "" {
		c.Tool, c.Arguments = call.Tool, []byte(call.Arguments)
	}
	u.access(s, call, seq, ranked, r.table.FromResult(c, result.Result, result.Files))
}

// access adds accesses, the newest first, all of them newer than the already ranked
// ones.
func (u *FilesUnit) access(s *FilesState, call TrackedCall, seq uint64, ranked int, list []files.Access) {
	for i := len(list) - 1; i >= 0; i-- {
		u.Accesses = append(u.Accesses, projection.RowOf(s, NewAccess{
			Access: list[i], Seq: seq, Rank: ranked + len(list) - i, Tool: call.Tool, Turn: call.Turn,
		}))
	}
}

// revoke ends, at seq, the accesses that a call of this batch made.
func (u *FilesUnit) revoke(call, seq uint64) {
	first, _ := slices.BinarySearchFunc(u.Accesses, call, func(a projection.Of[FilesState, NewAccess], call uint64) int {
		return cmp.Compare(a.Row.Seq, call)
	})
	for i := first; i < len(u.Accesses) && u.Accesses[i].Row.Seq == call; i++ {
		u.Accesses[i].Row.Revoked = seq
	}
}

func (r filesReducer) deleted(u *FilesUnit, e *events.Recorded) error {
	s := u.Delete(e)
	u.Calls.drop(s.ID)
	u.Early.drop(s.ID)
	u.Accesses = projection.Without(u.Accesses, s)
	u.Revoked = projection.Without(u.Revoked, s)
	return nil
}
