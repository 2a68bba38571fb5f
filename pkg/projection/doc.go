// Package projection is the engine that turns events of the log into read models. Each
// event takes effect exactly once.
//
// A [Projection] is a declaration: a name, a version, and a table of event type →
// [Reducer]. Reducers are pure: they see the event and a unit of work prepared by the
// store, but no clock, randomness or network. A [Projector] is the running loop:
//
//	log ─▶ follow ─▶ decode ─▶ batch ─▶ derive, prepare ─▶ one transaction of the store:
//	                                      fence        is my epoch still the newest?
//	                                      drop         what the checkpoint covers
//	                                      claim        identities: known ones are dropped and counted
//	                                      reduce       in Go, in order
//	                                      save         rows, failed events, checkpoint
//
// The projectors of a process share what comes before the batch: a [Feed] follows a partition and
// decodes each message once for all that are about equally far.
//
// Derive is for expensive work that depends on one event alone. It runs ahead, once for each event.
// Few projections need prepare: it is for slow work, such as the calls of an enricher, and
// runs before anything is locked. The checkpoint is stored in the same transaction as the
// rows. There is no other position, so a store restored from an old backup catches up by
// itself.
//
// # States
//
//	idle ──▶ catching up ──▶ live
//	              │            │
//	              └──▶ halted ◀┘   a person must act; Status.Error says how
//
// Live means caught up with the head that the projector saw when it started. A store that
// is down does not halt a projector: it retries indefinitely and skips nothing.
//
// # Who drives a partition
//
// A projector without leases drives all partitions and must be the only one on its store. A
// store in a file is locked by its process, which keeps others out. A server has no such
// lock: if two processes write to it without leases, the newer one wins, and the older one
// is fenced and halts. Processes that write to one store together share the partitions
// through leases ([Shared]): keys in a bucket in the NATS server's memory, which expire
// after 2 s unless they are renewed.
//
// Processes on different NATS servers don't see each other's leases. A process whose log is
// not the one that the read model was made from halts with an error before it takes a
// partition over, and changes nothing in the store. It can tell only for partitions that
// have applied something.
//
//	member.<store>.<projection>.<generation>.<process>     the process exists
//	lease.<store>.<projection>.<generation>.<partition>    the process in the value drives it
//
// Every process watches the keys and computes who should hold what: shares differ by at
// most one, and as few partitions move as possible. It gives back what it should not hold,
// and takes what it should hold once that is free:
//
//	         Create succeeds              Acquire
//	free ─────────────────────▶ held ───────────────▶ driven
//	  ▲                          │                       │
//	  │ key deleted, at once     │                       │ should be another's, or Stop:
//	  ├──────────────────────────┴───────────────────────┤ the current batch is finished
//	  │ key expired, up to TTL + 0.25 s                  │ a renewal fails or is late:
//	  └──────────────────────────────────────────────────┘ the work is cut off at once
//
// A lease saves work; the fence keeps the read model right. The rules are:
//
//   - A partition is acquired only after a Create of its lease. Two processes may both believe that they
//     hold it (one was suspended, or the bucket was recreated), but the store accepts writes only of
//     the one that acquired last.
//   - The other gets ErrFenced: it drops its batch, gives the lease back, and asks for it again one TTL
//     later. Without leases it halts.
//   - A process that loses its own member key has no leases either.
//   - After a partition is given back, its current batch has 10 s to finish. Then it is cut off, and the
//     next driver applies it: a store that does not answer blocks neither other processes nor
//     the end of this one.
//   - Time is measured only with each process's monotonic clock; the wall clock may jump.
//   - A halted partition keeps its lease, so that its holder can say why.
//   - Without the bucket all partitions stand still; any process that finds it missing recreates it.
//
// A projector is idle on partitions that other processes hold; Status.Holder names the
// holder. Their progress is in the store, see [Progress], and announcements reach every
// process. A request such as [Projector.Repair] must go to the process that holds the
// partition; others return [ErrElsewhere].
//
// # Generations
//
// A rebuild makes a new generation, a separate store, while the old one serves. Its own
// projector pauses between batches in favor of the serving one ([Yield]). [Generations] is
// how a backend says which generation serves. Who starts a rebuild, when the new generation
// takes over and when the old one is removed is decided outside the engine.
//
// # The returned error is the contract
//
//	a reducer returns nil         applied
//	a reducer returns an error    the event becomes a failed event, the others are applied
//	a store returns ErrRejected   the data is at fault: the batch is bisected to find the event, which becomes a failed event
//	Prepare returns an error      treated like an error of the store
//	a store returns ErrTooLarge   the batch is halved; for a single event, wait and try again;
//	                              a repair is not split: it fails and changes nothing
//	a store returns ErrFenced     another owner took the partition: drop the batch, then halt or, with leases, ask for the lease again
//	a store returns ErrRebuild    the read model was built by another version or with other settings: halted
//	a store returns ErrSuperseded the generation was discarded, or another one serves: halted
//	a store returns anything else the store failed: wait and try again, nothing is skipped
//
// # What is lost if the process dies here
//
// Nothing. Before the commit the checkpoint has not moved, and the log delivers the batch
// again to the next driver of the partition; after it, effect and position are stored
// together. A lease that is no longer renewed delays its partition by one TTL, and so does
// a Create whose answer was lost.
package projection
