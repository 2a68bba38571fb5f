// Package graph is the model of the read models and the interfaces behind which
// a backend keeps them: conversations with their messages, tool calls and results,
// summaries and condensations (projection "graph"), and the files that were touched
// (projection "files").
//
//	Conversation ─┬─ Message ── Reference
//	              ├─ ToolCall ── ToolResult ── Condensed
//	              ├─ Summary ── Summary: those of the level below that it consolidates
//	              └─ Version: title, tags, status …, from one sequence to another
//	FileAccess: one access of one file by one tool call
//
// Both projections are declared here, with reducers that every backend shares. A
// backend (sqlitestore, later others) loads and saves units of work and answers
// reads; storetest is the suite that each of them must pass.
//
// Lists of messages, turns, steps and tool calls are made from a backend's reads by
// functions of this package, page by page. What one page looks at is bounded: a page
// may hold fewer rows than asked for, and only its Next says whether there is more.
//
// Rows carry the sequence that made them, and what is overwritten is kept as
// versions with the sequence that ended them, so every read can be asked as of a
// sequence. Rows are joined by key (message_id, tool_call_id), so a result may come
// before its call, and a call before its message.
//
// A conversation that branched from another one has its own rows only. [Lineage]
// puts them behind those of its ancestors when they are read, over any backend.
package graph
