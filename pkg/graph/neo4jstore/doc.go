// Package neo4jstore keeps the read models in Neo4j (5.26 or later, Community is
// enough): a graph that people query with Cypher beside mneme, and that several
// processes write and read at once.
//
//	(:Conversation)-[:HAS_VERSION]->(:Version)
//	(:Conversation)-[:HAS_BRANCH]->(:Conversation)
//	(:Conversation)-[:HAS_MESSAGE]->(:Message)-[:HAS_TOOL_CALL]->(:ToolCall)-[:HAS_RESULT]->(:ToolResult)
//	                                (:Message)-[:REFERENCES_CODE]->(:Scope)      (:ToolResult)-[:CONDENSED_TO]->(:Condensed)
//	(:Conversation)-[:HAS_SUMMARY]->(:Summary)-[:CONSOLIDATES]->(:Summary)
//	(:FileAccess)-[:OF_FILE]->(:File)
//	(:SummariesConversation), (:SummariesState), (:SummariesMark), (:SummariesRange)
//	(:EmbeddingsConversation), (:EmbeddingsEvent), (:Passage), (:CachedEmbedding)
//
// Each projection writes labels of its own only. What joins them is the property
// conversation, "<generation>/<tenant>/<id>": it is the key of the conversation and
// stands on each of its rows. Relationships are for people: the store seeks the
// indexes on (conversation, seq), whose cost does not depend on how many messages a
// conversation has. Parents that come after their children are linked when they come.
//
// # Exactly once
//
// One transaction holds the changes of a batch and its checkpoint. It begins with a
// write lock on the checkpoint, which fences: an older owner waits there, then finds a
// newer epoch. So what the checkpoint protects is created without looking. A claim is
// a property of the row that its event made, under a uniqueness constraint: a batch is
// written as if all of its keys were free, and once more with a look at each if one is
// not, or if a reducer refuses an event, which may be a repeat. If a connection is lost during a commit nobody knows what became of it: the
// store reports trouble, and the engine, which begins again with [Graph.Acquire], reads
// the checkpoint that tells.
//
// # What a reader sees
//
// Neo4j is read committed and shows a commit piece by piece, a node before its index.
// So when a commit is done the writer says so in a node of its own, and readers see
// nothing beyond that sequence: rows never change, and what does change is read from
// rows and versions as of it. Which accesses of files are current does change: what is
// no longer current says since when and stays among the current ones until the commit
// after the next. A read that several commits have overtaken is made again, at last among
// all accesses. Some reads are not as exact: a list of conversations can show one with
// counts of a commit in progress, and so can the count of accesses of a file whose last
// call failed. Of the conversations that accessed a file one can be missing, for the moment
// of a commit that accesses it again. And a repair, which replaces the rows of a conversation,
// can be seen half done. It is counted, in projection.Checkpoint.Repairs, only when all of it
// can be seen, so nothing that was read meanwhile is cached as the new rows. What a search over all conversations finds is a full-text
// index that follows the commits a moment later, see [Graph.Candidates].
//
// # Deletion
//
// A deleted conversation is a tombstone at once. Its rows go in transactions of their
// own after that, so that their number is not limited by the server's memory; if the
// process dies, whoever owns the partition next goes on.
//
// # Generations
//
// Every key begins with a generation, so a rebuild is written beside what serves. Which
// one serves says a node of each projection, (:GraphServing) for example, see
// [Generations]. A generation that was discarded, or an older one, can't be begun anew.
// The cache of embeddings is of no generation: what fills it is paid for once.
//
// # Errors
//
// Data that Neo4j refuses (a constraint, a value that can't be indexed) is
// projection.ErrRejected; a batch that is too large for the server's memory is
// projection.ErrTooLarge; a schema made by a newer program is [ErrSchema], data of
// another program under our labels [ErrForeign], a server that is too old [ErrVersion];
// wrong credentials are [ErrUnauthorized], a certificate that is not trusted is [ErrTLS].
// A server that does not answer is projection.ErrUnavailable. Everything else is the
// server's trouble now.
package neo4jstore
