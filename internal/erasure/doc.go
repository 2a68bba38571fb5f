// Package erasure removes conversations permanently: from the log, byte by byte, and from all that is
// derived from it.
//
// An erasure is a record in the bucket AGENT_CONTROL. A process that serves the API carries it out, and
// only the one that holds the lease "erase". If it dies, another one continues: what is left to do is
// read from the log, except for the batch of messages that was being overwritten, which the record
// names.
//
//	marking ──▶ waiting ──▶ overwriting ──▶ cleaning ──▶ done
//	                             ▲              │
//	                             └──────────────┘ events came meanwhile
//
//	marking      each conversation gets an event conversation.deleted: from here on no read model
//	             shows it, and none accepts an event of it
//	waiting      until every read model has applied these events. Before that, a read model could be
//	             taken for the last copy of what the log has lost. Embeddings, which others do without,
//	             are not waited for longer than [Config.Patience]
//	overwriting  every other event of each conversation is overwritten in the log and removed
//	cleaning     each conversation is repaired in every generation of every read model, so that it has
//	             what the log has: the tombstone. Then the store overwrites its deleted rows
//
// See docs/adr/0023-erasure.md.
package erasure
