// Package readmodel declares read models in one place. A [Spec] says everything about one: its
// projection, and one codec for each backend. With that it can be run, rebuilt, verified and asked
// for its status and its failed events, on SQLite and on Neo4j.
//
//	events ──▶ projection ──▶ unit of work ──▶ codec ──▶ tables or nodes
//	           reducers       yours            yours     checkpoint, claims, failed events: the engine's
//
// A program with a read model of its own makes a Spec, checks it with [Check], and calls [Spec.Run].
// docs/read-models.md shows how, and examples/projection is such a program.
//
// [Ours] are the read models of mneme. Everything that lists them, in the API, the commands, the
// checks and the metrics, takes them from here; their order is the order of every list.
package readmodel
