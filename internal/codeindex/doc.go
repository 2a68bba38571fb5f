// Package codeindex reads the files of a project and publishes what they hold, as events for the read model "code".
//
// A file is read only if its size or time has changed since the last run, and published only if its bytes have. What was
// published is remembered in a [State], which is kept in a file from one run to the next.
//
//	what dies here                    what is lost
//	before a batch is acknowledged    nothing: the next run reads and publishes the same files, under the same ids
//	before the state is written       nothing: the log drops the events that it has
//	without the state                 nothing, if the server says what it holds; see [Options].Known
//
// The id of an event is a hash of the path, the bytes, and the id of the previous event of this path. So the same change
// has the same id however often it is published, but a file that returns to earlier content gets a new id.
package codeindex
