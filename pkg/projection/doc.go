// Package projection is the engine that drives events from the log into read
// models, each event with effect exactly once.
//
// A [Projection] is a declaration: a name, a version, and a table of event type →
// [Reducer]. Reducers are pure: they see a unit of work that the store prepared
// and the event, nothing else: no clock, no randomness, no network. A [Projector]
// is the running loop:
//
//	log ─▶ follow ─▶ decode ─▶ batch ─▶ one transaction of the store:
//	                                      fence        is my epoch still the newest?
//	                                      drop         what the checkpoint covers
//	                                      claim        identities: known ones are dropped and counted
//	                                      reduce       in Go, in order
//	                                      save         rows, failed events, checkpoint
//
// The checkpoint lies in the same transaction as the rows. There is no other
// position: a store restored from an old backup catches up by itself.
//
// # States
//
//	idle ──▶ catching up ──▶ live
//	              │            │
//	              └──▶ halted ◀┘   a person must act; Status.Error says how
//
// Live means caught up with the head that the projector saw when it began. A store
// that is down does not halt a projector: it waits and tries again, and skips nothing.
//
// # The returned error is the contract
//
//	a reducer returns nil         applied
//	a reducer returns an error    the event becomes a failed event, the rest goes on
//	a store returns ErrRejected   the data is the reason: the batch is bisected down to the event, which becomes a failed event
//	a store returns ErrTooLarge   the batch is halved; one event that is too large is the store's trouble
//	a store returns ErrFenced     another owner took the partition: drop what is held
//	a store returns ErrRebuild    the read model was built by another version or with other settings: halted
//	a store returns anything else the store's trouble: wait and try again, nothing is skipped
//
// # What is lost if the process dies here
//
// Nothing: before the commit the checkpoint has not moved and the log delivers the
// batch again; after it the effect and the position are stored together.
package projection
