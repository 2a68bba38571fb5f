// Package files says which files a tool call touched: read, written, found by a
// search or listed.
//
// Everything here is a pure function of its arguments: it reads no file system and no clock
// and does not depend on map order. So a reducer may use it: the same call gives the same
// accesses in every replay.
//
//	tool.called   ──Table.FromCall──▶  accesses that the arguments name
//	tool.returned ──Table.FromResult─▶ accesses that only the result names:
//	                                   search hits, listed files, what the
//	                                   runtime reported itself
//
// A [Table] declares what tools' arguments and results mean, with a rule for each tool.
// [DefaultTable] knows the usual agents. Store the table's [Table.Fingerprint] with the
// checkpoint of whatever was derived with it.
//
// # Never guess
//
// A path that is not certain is left out. For an unknown tool only the files that its
// runtime reports count. Shell commands are parsed, and only obvious reads and writes
// count. Left out are operands with a variable, a glob or a substitution, the branches of
// an if, the right side of ||, the body of a function, and files that a command removes,
// since they can no longer be read.
//
// # What the caller does
//
// A failed call accesses nothing, but only its result tells that it failed. So record the
// accesses of FromCall at the call, take them back if the result says that the call failed,
// and use FromResult only for calls that succeeded.
//
// Apply exclusion patterns ([Exclude]) when reading, so that they can change without a
// rebuild.
//
// # Limits
//
// At most [MaxArgumentBytes], [MaxCommandBytes] and [MaxResultBytes] of input are read. A
// call or a result gives at most [MaxAccesses] accesses, and a path has at most
// [MaxPathBytes]. The rest is ignored. Nothing here panics or returns an error.
//
// # Traps
//
// A relative path means nothing without its folder. Paths are resolved against the
// conversation's working directory. If an agent's shell keeps a cd from one call to the
// next, later relative paths come out wrong, and nothing in the calls shows it.
package files
