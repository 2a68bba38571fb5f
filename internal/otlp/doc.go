// Package otlp takes logs and traces of OpenTelemetry as a source: spans of model calls and log records of agents
// become the events of the conversations that they are about.
//
//	exporter ──HTTP or gRPC──▶ Server ──▶ entries ──read──▶ model call, run of a tool, message
//	                                                              │
//	               log ◀── importer: frames, secrets, lookup ◀── plan ◀──▶ memory of histories
//
// # What an entry contains
//
// The readers know the semantic conventions for generative AI and what libraries and agents write instead. An entry
// without content of a conversation is left out and counted by the library that made it: an exporter that sends everything
// must not be told to send it again. An entry with such content that can't be read is refused, and the answer says so.
//
// # What is new in it
//
// Each model call repeats the whole history. Each message is chained to those before it by hashes of what stays the same
// when a client sends it again, see canonical; the end of the chain is the message's id. So the same history
// has the same ids in every process, and the log drops what it has. The memory holds what a chain can't show: where a
// history left the known one, and which messages are known after a summary or after others that were left out.
//
// Events are published before they are remembered. A process that dies between the two publishes the same ids again.
// The memory is a file that is written every two seconds.
//
// # Results of tools
//
// A result is in both the run of the tool and the next history. The one that comes first counts.
//
// # Why not pdata
//
// The messages are those of go.opentelemetry.io/proto/otlp, which the exporter of mneme's own traces links anyway.
// The collector's pdata adds 340 kB to each program that uses it, and is not needed: only the ids of spans and
// traces differ in JSON, see idOf. The server of gRPC adds 30 kB.
package otlp
