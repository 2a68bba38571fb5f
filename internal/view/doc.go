// Package view is the one way to read a conversation. It stands between the read models and
// the programs that show them, and knows no transport.
//
// A caller takes [Pins], which keep each read model in one generation for as long as the
// caller reads. [Pins.Open] then opens a conversation:
//
//  1. wait until the read models have applied the requested sequences ([At]),
//  2. find the conversation's ancestors,
//  3. compare [View.Positions] with what the caller already has,
//  4. load the search index, if the caller will search ([View.Load]),
//  5. wait for one of the places for reads, which tenants share ([View.Begin]), and read.
//
// Whatever the number of callers that wait, one watcher for each partition of a read model
// reads its checkpoint. Every wait ends when its context ends.
//
// The package also caches what searches and contexts need from the most recently searched
// conversations, within a memory budget ([Cache]): the search index, the rows that the last
// context read, and the code that contexts show.
//
// # Errors
//
//	graph.ErrNotFound  there is no such conversation
//	*BeyondError       the log does not have the requested sequence yet
//	*BehindError       a read model did not apply the requested sequence in time
//	*OtherLogError     a read model was built from another log
//	ErrBusy            no place for the read became free in time
//	others             from the log or the store of a read model; try again
package view
