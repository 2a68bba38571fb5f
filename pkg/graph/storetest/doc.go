// Package storetest is the suite that every backend of the read models must pass.
// A backend runs it from a test of three lines:
//
//	func TestGraphConformance(t *testing.T) {
//		storetest.RunGraph(t, storetest.Backend[storetest.GraphStore]{Open: …, Refuse: …})
//	}
//
// Files have a suite like it, and RunBranches runs over both stores together.
//
// Cases drive a store through projection.Projection.Apply, with messages as the log
// delivers them but without a log, and look at it through its own reads. None of
// them looks at tables, labels or queries.
//
// A backend that can't pass a case names it in Backend.Without with the reason. It
// is then skipped and the reason is printed, with or without -v.
package storetest
