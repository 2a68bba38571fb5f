// Package natsdeploy owns everything mneme asks of NATS: the stream that holds
// the events, the buckets, and the settings of the server. Programs, tests and
// operators use the same definitions, whether the server runs inside the process
// or in a cluster.
//
//	embedded.Start ── Server.Apply ──▶ stream        one process (mneme up, tests)
//	server.conf    ── Apply ─────────▶ stream        a server or cluster of one's own
//	                  Inspect ───────▶ Info          programs that must not create
//
// [ApplyLeases] makes the bucket in which processes agree on who drives which
// partition. It lies in memory, so whoever misses it makes it again. [ApplyControl]
// makes the one for what operators ask for.
//
// # The returned error is the contract
//
//	nil               the stream is there and every setting we decide is as we decide it
//	ErrNoStream       Inspect: nobody has applied it yet
//	ErrIncompatible   it is there with other settings; an *IncompatibleError says which and what to do
//	ErrDamaged        Server.Apply: events lie on the disk but the server cannot read them
//	ErrNoSpace        too little room on the disk, or below the server's limit, for a new stream
//	ErrNotLoopback, ErrPortInUse, ErrDirInUse
//	                  embedded.Start: what the name says
//	anything else     the server's or the network's trouble: wait and try again
//
// An existing stream is never changed by [Apply] or [Inspect], and never created
// a second time over events that could not be read.
//
// # What fills first
//
// A full disk answers nothing: publishers run into their time-outs, and the
// server needs a restart even after space was made. A full stream answers at
// once (see [IsFull]). So the sizes are chosen for the limits to be met in this
// order: the stream's MaxBytes, then the server's store limit, then the disk,
// of which at least 20 % stays out of the server's reach.
//
//	                 stream                              server
//	embedded         min(64 GiB, half of the server's)   80 % of (free + already stored)
//	server.conf      64 GiB, or MNEME_LOG_SIZE           65 GiB
//
// The other half of the embedded server's share is for the read models, which
// usually lie on the same disk and grow with the log. The stream's size is that of
// its creation until an operator edits it, the server's is derived again at each
// start; if the disk has shrunk in between, the server's is met first, which
// answers at once too. A server of one's own does not look at its disk: with less
// than 80 GiB the stream must be made smaller.
//
// # What a power cut takes
//
// Nothing that was acknowledged, with sync_interval "always". With the server's
// default a power cut takes the last 30 seconds, and a stream younger than that
// vanishes whole; embedded.Server.Apply therefore also syncs the stream's files and
// directories itself. What a server of one's own does is for its operator to
// set: a client cannot see its sync_interval.
package natsdeploy
