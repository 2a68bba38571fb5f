package mnemetest

import "context"

// Context ends with a test, or after [Patience]. Without such a deadline, the log's clients give a server only a few
// seconds to answer, which a busy machine needs for itself. What a test repeats until it succeeds must not use it: a
// request that was lost with a server or a connection would use up the time.
func Context(t interface {
	Cleanup(func())
	Context() context.Context
	Helper()
},
) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	return ctx
}
