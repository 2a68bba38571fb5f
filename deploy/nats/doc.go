// Package natsdeploy owns everything mneme needs from NATS: the stream that holds
// the events, the buckets, and the settings of the server. Programs, tests and
// operators use the same definitions, whether the server runs inside the process
// or in a cluster.
//
//	embedded.Start ── Server.Apply ──▶ stream        one process (mneme up, tests)
//	server.conf    ── Apply ─────────▶ stream        your own server or cluster
//	                  Inspect ───────▶ Info          programs that must not create
//
// [ApplyLeases] creates the bucket through which processes agree on who drives which
// partition. It is in memory, so a process that finds it missing recreates it.
// [ApplyControl] creates the bucket for requests of operators, [ApplyTokens] the one for
// access tokens, [ApplyAudit] the audit log.
//
// # The returned error is the contract
//
//	nil               the stream exists, with all the settings that mneme requires
//	ErrNoStream       Inspect: the stream does not exist yet
//	ErrIncompatible   the stream exists with other settings; an *IncompatibleError says which and what to do
//	ErrRestoring      the stream is being restored, or its restore was cut off: wait, or run mneme restore again
//	ErrSplitting      a change of its partitions was cut off: run mneme partitions again
//	ErrDamaged        Server.Apply: the disk holds events that the server cannot read
//	ErrNoSpace        too little room on the disk, or below the server's limit, for a new stream
//	ErrNotLoopback, ErrPortInUse, ErrDirInUse
//	                  embedded.Start: as the names say
//	anything else     the server or the network failed: wait and try again
//
// An existing stream is never changed by [Apply] or [Inspect], and never created
// a second time over events that could not be read.
//
// # What fills first
//
// On a full disk the server stops answering: publishers time out, and the server
// needs a restart even after space was freed. A full stream refuses events at once
// (see [IsFull]). So the sizes are chosen to reach the limits in this order: the
// stream's MaxBytes, then the server's store limit, then the disk, of which the
// server leaves at least 20 %.
//
//	                 stream                              server
//	embedded         min(64 GiB, half of the server's)   80 % of (free + already stored)
//	server.conf      64 GiB, or MNEME_LOG_SIZE           65 GiB
//
// The other half of the embedded server's share is for the read models, which
// usually are on the same disk and grow with the log. The stream keeps its initial
// size until an operator edits it; the server's limit is computed at each start. If
// the disk has shrunk in between, the server's limit is reached first, which also
// refuses events at once. Your own server does not look at its disk: with less than
// 80 GiB, make the stream smaller.
//
// # What a power cut loses
//
// With sync_interval "always", nothing that was acknowledged. With the server's default
// it loses the last 30 seconds, and all of a stream younger than that.
// embedded.Server.Apply therefore also syncs the stream's files and directories itself.
// The operator of another server must set sync_interval: a client cannot see it.
package natsdeploy
