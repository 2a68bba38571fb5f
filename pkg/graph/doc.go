// Package graph defines the data of three read models, and the interfaces that a backend
// implements to store them: conversations with their messages, tool calls and results,
// summaries and condensations (projection "graph"), the files that tools touched
// (projection "files"), and the vectors of an endpoint (projection "embeddings"). Packages
// summary, project, insight and codebase define the other four in the same way.
//
//	Conversation ─┬─ Message ── Reference
//	              ├─ ToolCall ── ToolResult ── Condensed
//	              ├─ Summary ── Summary: the summaries of the level below that it consolidates
//	              └─ Version: title, tags, status …, from one sequence to another
//	FileAccess: one access of one file by one tool call
//
// The three projections are declared here, with reducers that all backends share. A backend
// (sqlitestore, neo4jstore) loads and saves units of work and answers reads; storetest
// is the suite that every backend must pass.
//
// Functions of this package make lists of messages, turns, steps and tool calls from a
// backend's reads, page by page. The work for a page is bounded, so a page may hold fewer
// rows than requested, and only its Next says whether there is more.
//
// Rows carry the sequence of the event that made them, and overwritten values are kept as
// versions with the sequence that ended them, so every read can be as of a sequence. Rows
// are joined by key (message_id, tool_call_id), so a result may arrive before its call,
// and a call before its message.
//
// A branch stores only its own rows. On reading, [Lineage] adds them to the rows of its
// ancestors, over any backend.
package graph
