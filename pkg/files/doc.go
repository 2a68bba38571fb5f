// Package files says which files a tool call touched: read, written, found by a
// search or listed.
//
// Everything here is a pure function of its arguments. No file system is asked,
// no clock is read, no map order shows, so a reducer may use it: the same call
// gives the same accesses in every replay.
//
//	tool.called   ──Table.FromCall──▶  accesses that the arguments name
//	tool.returned ──Table.FromResult─▶ accesses that only the result names:
//	                                   search hits, listed files, what the
//	                                   runtime reported itself
//
// What a tool's arguments and results mean is a [Table]: a declared value, with a
// rule for each tool. [DefaultTable] knows the usual agents. The table's
// [Table.Fingerprint] belongs beside the checkpoint of whatever was derived with
// it.
//
// # Never guess
//
// A path is named or it is left out. An unknown tool touches what its runtime
// reports and nothing else. Shell commands are parsed, and only obvious reads and
// writes count: an operand with a variable, a glob or a substitution in it, the
// branches of an if, the right side of || and the body of a function are left
// out. A file that a command removes is left out too: it is not there to be read.
//
// # What the caller does
//
// A failed call is no access. Whether it failed is known when its result comes,
// so the caller records FromCall's accesses at the call, takes them back if the
// result says that the call failed, and asks FromResult only for one that did not.
//
// Exclusion patterns ([Exclude]) belong to reading: they may change without a
// rebuild.
//
// # Limits
//
// Input is examined up to [MaxArgumentBytes], [MaxCommandBytes] and
// [MaxResultBytes]; a call or a result makes at most [MaxAccesses] accesses, a path
// has at most [MaxPathBytes]. What lies beyond is ignored. Nothing here panics or
// returns an error.
//
// # Traps
//
// A relative path means nothing without its folder. Paths are resolved against
// the conversation's working directory; an agent whose shell keeps a cd from one
// call to the next makes later relative paths wrong, and no call says so.
package files
