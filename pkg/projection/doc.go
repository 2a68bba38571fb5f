// Package projection is the engine that drives events from the log into read
// models, each event with effect exactly once.
//
// A [Projection] is a declaration: a name, a version, and a table of event type →
// [Reducer]. Reducers are pure: they see a unit of work that the store prepared
// and the event, nothing else: no clock, no randomness, no network. A [Projector]
// is the running loop:
//
//	log ─▶ follow ─▶ decode ─▶ batch ─▶ prepare ─▶ one transaction of the store:
//	                                      fence        is my epoch still the newest?
//	                                      drop         what the checkpoint covers
//	                                      claim        identities: known ones are dropped and counted
//	                                      reduce       in Go, in order
//	                                      save         rows, failed events, checkpoint
//
// Few projections prepare anything: it is for what takes long, such as the calls of an
// enricher, and happens before anything is locked. The checkpoint lies in the same
// transaction as the rows. There is no other
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
// # Who drives a partition
//
// One process alone drives all of them. A store that is a file is locked by its process,
// which keeps others away. A server has no such lock: of two processes that write to it
// without leases the newer one wins, and the older one is fenced and halts. Processes
// that are to write to one store share the partitions by leases ([Shared]): keys of a
// bucket that lies in the memory of the NATS server and whose keys expire, after 2 s, if
// they are not renewed.
//
// Processes of two NATS servers do not see each other's leases. A process that follows
// another log than the one that the read model was made from says so and halts before it
// takes a partition over, and leaves no trace in the store. That it can only know of a
// partition on which something was applied.
//
//	member.<store>.<projection>.<generation>.<process>     I am there
//	lease.<store>.<projection>.<generation>.<partition>    I drive it; the value is the process
//
// Every process watches the keys and works out for itself who should have what: shares
// differ by one at most, and as few partitions move as that allows. It gives back what
// it should not have, and takes what it should have once that is free:
//
//	         Create succeeds              Acquire
//	free ─────────────────────▶ held ───────────────▶ driven
//	  ▲                          │                       │
//	  │ key deleted, at once     │                       │ should be another's, or Stop:
//	  ├──────────────────────────┴───────────────────────┤ the batch in hand is finished
//	  │ key expired, up to TTL + 0.25 s                  │ a renewal fails or is late:
//	  └──────────────────────────────────────────────────┘ the work is cut off at once
//
// A lease spares work; what keeps the read model right is the fence. So these hold:
//
//   - A partition is acquired only behind a Create of its lease. Two may believe that
//     they have the lease (a process that did not run for a while, a bucket that was
//     made anew), but the store takes writes of the one only that acquired last.
//   - The other gets ErrFenced: it drops what it holds, gives the lease back, and asks
//     for it again, one TTL later. Without leases it halts.
//   - A process whose own member key is lost has no leases either.
//   - The batch in hand of a partition that is given back has 10 s. Then it is cut off,
//     and whoever drives the partition next applies it: a store that does not answer
//     holds up neither the others nor the end of the process.
//   - Time is measured by the monotonic clock of each process alone; the wall clock
//     may jump.
//   - A partition that is halted keeps its lease: who holds it is who says why.
//   - If the bucket is away all partitions stand still; whoever misses it makes it again.
//
// A projector is idle on partitions that other processes hold, and Status.Holder says
// who does. What it could say of them is in the store, see [Progress]; announcements
// reach everyone. A request such as [Projector.Repair] goes to the process that holds
// the partition, others return [ErrElsewhere].
//
// # Generations
//
// A read model is built anew beside the one that serves: in another store, a generation,
// by another projector, which waits for the serving one between its batches ([Yield]).
// [Generations] is how a backend says which one serves. Who wishes for a rebuild, when
// the new generation takes over, and when the old one goes is not the engine's business.
//
// # The returned error is the contract
//
//	a reducer returns nil         applied
//	a reducer returns an error    the event becomes a failed event, the rest goes on
//	a store returns ErrRejected   the data is the reason: the batch is bisected down to the event, which becomes a failed event
//	Prepare returns an error      as if the store had returned it
//	a store returns ErrTooLarge   the batch is halved; one event that is too large is the store's trouble;
//	                              a repair is not split, it fails and changes nothing
//	a store returns ErrFenced     another owner took the partition: drop what is held, and halt, or ask for the lease again
//	a store returns ErrRebuild    the read model was built by another version or with other settings: halted
//	a store returns ErrSuperseded the generation was discarded, or another one serves: halted
//	a store returns anything else the store's trouble: wait and try again, nothing is skipped
//
// # What is lost if the process dies here
//
// Nothing: before the commit the checkpoint has not moved and the log delivers the
// batch again, to whoever drives the partition then; after it the effect and the
// position are stored together. A lease that nobody renews any more costs the partition
// one TTL; so does the Create of a lease whose answer did not arrive.
package projection
