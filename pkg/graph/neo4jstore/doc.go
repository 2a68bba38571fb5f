// Package neo4jstore keeps the read models in Neo4j (5.26 or later; Community is
// enough): a graph that people can query with Cypher, and that several processes can
// write and read at once.
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
// Each projection writes only its own labels. The property conversation,
// "<generation>/<tenant>/<id>", joins them: it is the key of the conversation and is on
// each of its rows. Relationships are for people. The store itself seeks the indexes on
// (conversation, seq), because their cost does not depend on the number of messages.
// A parent that arrives after its children is linked on arrival.
//
// A [Store] is the engine's half of a read model: positions, claims, failed events, repairs. A [Codec]
// is the other half, and all that a read model of your own needs to write.
//
// # Exactly once
//
// One transaction holds the changes of a batch and its checkpoint. It starts with a write
// lock on the checkpoint, which is the fence: an older owner waits there, then finds a
// newer epoch. So rows that the checkpoint protects are created without a look-up. A claim
// is a property of the row that its event made, under a uniqueness constraint. A batch is
// written as if all of its keys were free. If one is not, or a reducer refuses an event,
// which may be a repeat, the batch is written again after looking up every key. If a
// connection is lost during a commit, nobody knows its outcome: the store returns an
// error, and the engine starts again with [Graph.Acquire], which reads the checkpoint.
//
// # What a reader sees
//
// Neo4j's isolation is read committed, and a commit becomes visible piece by piece, a node before
// its index. So after each commit the writer records its sequence as settled, in a separate node,
// and readers see nothing beyond that sequence: rows never change, and changing values are read from
// rows and versions as of it. Which file accesses are current does change: a superseded access
// records since when, and stays among the current ones until the commit after the next. A read
// overtaken by several commits is repeated, in the end over all accesses. Some reads are not as
// exact: a list of conversations can show one with counts of a commit in progress, and so can the
// count of accesses of a file whose last call failed. A list of the conversations that accessed a
// file can miss one during a commit in which it accesses the file again. A repair, which replaces
// the rows of a conversation, can be seen half done. It is counted, in
// projection.Checkpoint.Repairs, only when all of it can be seen, so that nobody caches what was
// read during the repair as the new rows. A search over all conversations uses a full-text index
// that follows the commits a moment later, see [Graph.Candidates].
//
// # Deletion
//
// A deleted conversation becomes a tombstone at once. Its rows are deleted later, in
// separate transactions, so that the server's memory does not limit their number; if the
// process dies, the partition's next owner continues.
//
// # Generations
//
// Every key begins with a generation, so a rebuild and the serving read model coexist. A
// node of each projection, for example (:GraphServing), records which generation serves,
// see [Generations]. A discarded generation, or an older one, can't be started again. The
// cache of embeddings belongs to no generation, so that its vectors are paid for once.
//
// # Errors
//
// Data that Neo4j refuses (a constraint, a value that can't be indexed) is
// projection.ErrRejected; a batch that is too large for the server's memory or time limit is
// projection.ErrTooLarge; a schema made by a newer program is [ErrSchema], data of
// another program under our labels [ErrForeign], a server that is too old [ErrVersion];
// wrong credentials are [ErrUnauthorized], an untrusted certificate is [ErrTLS].
// A server that does not answer is projection.ErrUnavailable. Any other error is a
// temporary problem of the server.
package neo4jstore
