// Package sqlitestore keeps the read models in SQLite: the embedded default, on
// which everything runs in one process without a server.
//
// Each projection and generation is a file of its own with one writer, locked for
// its process, and any number of read-only readers, in other processes too:
//
//	graph-1.db  graph-1.db.lock      files-1.db  files-1.db.lock
//
// A rebuild makes the file of the next generation; which one serves is in the files, see
// [Generations].
//
// The cache of embeddings is a file of its own, of no generation, which is kept when read
// models are made anew.
//
// Files are in WAL mode with synchronous=NORMAL: a power cut can take back the
// last commits but leaves the file consistent, and the log delivers again what
// was taken back, because the checkpoint went with it.
//
// Rows have the stream sequence as their key, so appends go to the end of each
// table; reads go through indexes on (conversation, sequence). Conversations are
// small integers inside of a file.
//
// Errors: data that SQLite refuses (a constraint, a value too big) is
// projection.ErrRejected; a file of another schema is projection.ErrRebuild; a file
// in use by another process is ErrLocked; a damaged file is a projection.DamagedError;
// a disk that is full or fails is projection.ErrDisk; everything else is SQLite's own
// error and means that the store has trouble now.
package sqlitestore
