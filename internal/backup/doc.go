// Package backup copies the log to a directory and back.
//
// A backup is a directory of three files:
//
//	backup.json    the stream's configuration and extent, as the server gave them
//	stream.arc.s2  the server's snapshot: every message with its sequence, time and headers
//	manifest.json  what is in the snapshot, with a hash for every 8 MiB of it
//
// The first two are what `nats stream restore` reads, so a backup outlives this program. The
// snapshot is JetStream's own, because only that keeps sequences, times and message ids; it
// needs a server of version 2.15 or later, whose snapshots hold whole messages and end at the
// sequence that was the last one when the snapshot began, whatever is published meanwhile.
//
// What is left behind if the process dies:
//
//	in Create   a directory that ends in ".partial"; no program reads it, the next Create of the same name replaces it,
//	            and Prune removes it after a day
//	in Restore  part of the log, marked as such: programs refuse it, the next Restore replaces it
package backup
