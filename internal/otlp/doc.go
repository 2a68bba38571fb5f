// Package otlp takes logs and traces of OpenTelemetry as a source: spans of model calls and log records of agents
// become the events of the conversations that they tell.
//
//	exporter ──HTTP or gRPC──▶ Server ──▶ entries ──read──▶ model call, run of a tool, message
//	                                                              │
//	               log ◀── importer: frames, secrets, lookup ◀── plan ◀──▶ memory of histories
//
// # What an entry tells
//
// The readers know the semantic conventions for generative AI and what libraries and agents write instead. An entry that
// tells nothing of a conversation is left out and counted by the library that made it: an exporter that sends everything
// must not be told to send it again. One that tells of a conversation but can't be read is refused, which the answer says.
//
// # What of it is new
//
// A model call has the whole history again. Each message is chained to those before it by hashes of what stays the same
// when a client sends it again, see canonical; the end of the chain is the message's id. So the same history
// has the same ids in every process, and the log drops what it has. The memory is needed for what a chain can't tell: where a
// history left the known one, and which messages are known behind a summary or behind others that were left out.
//
// Events are published before they are remembered. A process that dies between the two publishes the same ids again.
// The memory is a file that is written every two seconds.
//
// # Results of tools
//
// The run of a tool and the next history both tell of a result. The one that comes first counts.
//
// # Why not pdata
//
// The messages are those of go.opentelemetry.io/proto/otlp, which the exporter of mneme's own traces links anyway.
// The collector's pdata adds 340 kB to each program that uses it, and is not needed: only the ids of spans and
// traces differ in JSON, see idOf. The server of gRPC adds 30 kB.
package otlp
