// Package health says what is odd about a conversation: an agent that goes round in circles,
// that repeats what fails, or that reads again what it has read.
//
// The rules are few and pure: they see the rows of a conversation in log order, one by one, and
// remember hashes of texts, not texts. They use no clock, store or model. A [Checker] applies all of them;
// [Check] reads a conversation for it, with one query for each 100 rows.
//
// # Rules
//
//	loop        the same call had the same result [LoopCalls] times, and nothing new happened between
//	failing     the same call failed [FailedCalls] times, and nothing new happened between
//	rereads     the same part of a file was read [Reads] times, and the file was not written between
//	long_turn   a turn has [TurnSteps] steps or more
//	unanswered  the conversation ends with a request that got neither an answer nor a call
//
// Two calls are the same if tool and arguments are equal, apart from arguments that only describe the
// call or limit its time. Something new is a message of a user, a call that the user refused, or a
// call that may have changed something and had no such result before. A call that only looks ([files.Table.Looks]) is nothing new,
// and neither is an edit that failed. When in doubt, a call counts as something new, so a finding is
// worth looking at.
package health
