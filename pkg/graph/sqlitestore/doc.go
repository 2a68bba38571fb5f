// Package sqlitestore keeps the read models in SQLite: the embedded default, which runs in one
// process and needs no server.
//
// Each generation of a projection is one file, with one writer, locked for its process, and any
// number of read-only readers, in other processes too:
//
//	graph-1.db  graph-1.db.lock      files-1.db  files-1.db.lock
//
// A rebuild makes the file of the next generation; the files themselves record which one serves,
// see [Generations].
//
// A [Store] is the engine's half of a file: positions, claims, failed events, repairs. A [Codec] is
// the other half, and all that a read model of your own needs to write.
//
// The cache of embeddings is a separate file without generations, and survives rebuilds.
//
// Files are in WAL mode with synchronous=NORMAL: a power cut can take back the last commits but
// leaves the file consistent. The checkpoint is taken back with them, so the log delivers their
// events again.
//
// Rows have the stream sequence as their key, so appends go to the end of each table; reads go
// through indexes on (conversation, sequence). Inside a file, conversations are small integers.
//
// Errors: data that SQLite refuses (a constraint, a value too big) is projection.ErrRejected; a
// file of another schema is projection.ErrRebuild; a file in use by another process is ErrLocked; a
// damaged file is a projection.DamagedError; a full or failing disk is projection.ErrDisk; any
// other error is SQLite's own and means temporary trouble with the store.
package sqlitestore
