package natsdeploy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

var (
	// ErrNoStream: the stream does not exist. [Apply] creates it.
	ErrNoStream = errors.New("no stream " + Stream)

	// ErrRestoring: a restore of the stream is running, or was cut off, so the stream has only a
	// part of the backup.
	ErrRestoring = errors.New("the log is being restored, or its restore was interrupted: wait for mneme restore, or run it again with the same backup")

	// ErrIncompatible is the class of every [*IncompatibleError], and of another stream that has the subjects of this one.
	ErrIncompatible = errors.New("incompatible stream")

	// ErrDamaged: the data directory holds events, but the server left the
	// stream out at its start, usually because meta.inf or meta.sum is incomplete.
	// Creating the stream would restore the events in the message files, under their
	// old partitions and sequences, but perhaps not all of them. Only an operator
	// should do that, on a copy, never a program by itself.
	ErrDamaged = errors.New("stored events cannot be read")

	// ErrNoSpace: the disk, or the server's store limit, has too little room for a new stream.
	ErrNoSpace = errors.New("too little disk space")

	// ErrNotLoopback: the address to listen on can be reached from other machines.
	ErrNotLoopback = errors.New("not a loopback address")

	// ErrPortInUse: another program listens on the address.
	ErrPortInUse = errors.New("port in use")

	// ErrDirInUse: another server has the data directory open.
	ErrDirInUse = errors.New("data directory in use")
)

// IncompatibleError says which setting of the existing stream differs from what this
// program needs. Field is the name as `nats stream info --json` shows it, "schema", or "it" of a stream that is not the log.
type IncompatibleError struct {
	Field string
	Have  string // the stream's
	Want  string // this program's
}

func (e *IncompatibleError) Error() string {
	return fmt.Sprintf("stream %s: %s is %s, this program wants %s: %s", Stream, e.Field, e.Have, e.Want, e.remedy())
}

// Is makes errors.Is(err, ErrIncompatible) true for every *IncompatibleError.
func (e *IncompatibleError) Is(target error) bool { return target == ErrIncompatible }

func (e *IncompatibleError) remedy() string {
	switch e.Field {
	case fieldSchema, splitsKey:
		return "the stream was made by another version of mneme, or by something else; run the version that made it, or another NATS account"
	case fieldCopy:
		return "run the programs on the servers of the log; if these are lost, save the copy with `nats stream backup " + Stream + " DIR`, because it may hold newer events than your backup, remove it with `nats stream rm " + Stream + "`, and restore the backup with `mneme restore`"
	case "max_bytes":
		return "a log without a limit fills the disk, and then nobody gets an answer; give it one: nats stream edit " + Stream + " --max-bytes 64GiB"
	case "max_age", "max_msgs", "max_msgs_per_subject", "discard", "retention":
		return "the server removes events because of it, and nothing brings them back; put the setting back at once with `nats stream edit " + Stream + "`, " + ifRefused
	case "duplicate_window":
		return "set this program to the stream's value, or change the stream on purpose with `nats stream edit " + Stream + "`"
	default:
		return "mneme never changes an existing stream; put the setting back with `nats stream edit " + Stream + "`, " + ifRefused
	}
}

// ifRefused is the way out if the server does not take a setting back from a stream, as with deny_delete.
const ifRefused = "or if the server refuses that, stop the programs, run `mneme backup create`, remove the stream with `nats stream rm " + Stream + "`, and run `mneme restore`, which puts it back"

// Codes of the JetStream API that have no constant in the client.
const (
	codeNoPeers               jetstream.ErrorCode = 10005 // too few servers of the cluster have room for a copy
	codeClusterUnavailable    jetstream.ErrorCode = 10008 // the stream, or the whole cluster, has no leader
	codeInsufficientResources jetstream.ErrorCode = 10023 // the server's store limit
	codeStorageExceeded       jetstream.ErrorCode = 10047 // the stream is larger than the server's remaining space
	codeSubjectsTaken         jetstream.ErrorCode = 10065 // another stream has some of the subjects
	codeStoreFailed           jetstream.ErrorCode = 10077 // any refusal by the store; the text says which
	codeConsumerOffline       jetstream.ErrorCode = 10119 // the cluster's servers that have the consumer are down
)

// IsOffline reports whether the cluster knows a consumer, but the servers that have it
// are down.
func IsOffline(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeConsumerOffline
}

// IsLeaderless reports whether nobody took a request because no server leads the stream, or because it does not exist.
// Most servers of a cluster must run for one of them to lead it.
func IsLeaderless(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) ||
		errors.As(err, &api) && api.ErrorCode == codeClusterUnavailable
}

// IsFull reports whether a publish was refused because the log is full: the
// stream has reached its MaxBytes (code 10077, "maximum bytes exceeded") or the
// server its store limit (code 10023, "insufficient resources"). The answer comes at
// once, nothing was stored, and stored events stay readable. Publishing again
// helps only after an operator has made room: nats stream edit --max-bytes.
//
// On a full disk the server does not answer, so there is no such error.
func IsFull(err error) bool {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode {
	case codeInsufficientResources:
		return true
	case codeStoreFailed:
		return strings.Contains(api.Description, "maximum bytes exceeded")
	}
	return false
}

// IsConflict reports whether a key, or the last message of a subject, differs from what a
// request expected, or may differ: see [IsInProcess].
func IsConflict(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, jetstream.ErrKeyExists) || errors.As(err, &api) &&
		(api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// codeDuplicateInProcess is "duplicate message id is in process".
const codeDuplicateInProcess jetstream.ErrorCode = 10158

// IsInProcess reports whether a replicated stream has refused a message because another
// message with the same id or subject is still being stored. That usually takes a moment. If
// the leader changes, that message may be lost, and a leader that has seen it refuses others
// until the end of the duplicate window.
func IsInProcess(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) &&
		(api.ErrorCode == codeDuplicateInProcess || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}
