// Package storetest is the suite that every backend of the read models must pass.
// A backend runs it from a three-line test:
//
//	func TestGraphConformance(t *testing.T) {
//		storetest.RunGraph(t, storetest.Backend[graph.Store]{Open: …, Refuse: …})
//	}
//
// The other projections have similar suites, and RunBranches runs over the stores of graph
// and files together.
//
// [Run] runs the part of the suite that holds for any read model, yours too: see
// examples/projection.
//
// Cases drive a store through projection.Projection.Apply, with messages as the log
// delivers them but without a log, and check it through its own reads. None of them looks
// at tables, labels or queries.
//
// A backend that can't pass a case names it in Backend.Without with the reason. The case is
// then skipped and the reason printed, with or without -v.
package storetest
