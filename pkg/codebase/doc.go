// Package codebase is the read model "code": what the files of projects hold, as their indexes say, and the search in it.
//
// Each project has an index of its own, a conversation whose id begins with code:. Its rows never change:
//
//	version    what a file held from an event on, or that it was removed
//	scan       that reading a folder began or ended
//
// So an index can be read as of any sequence: the newest version of each path up to it counts. An [Index] holds the
// terms and vectors of all versions in memory, in the order of the log, and so finds the same whenever it is asked.
package codebase
