package neo4jstore

// embeddingsLabels describes the nodes of the projection "embeddings", and its cache.
func embeddingsLabels() []Label {
	return []Label{
		{"EmbeddingsConversation", "State of a conversation in the projection embeddings. It has the same key as the Conversation.", []Property{
			{"key", "`<generation>/<tenant>/<id>`, unique"}, {"generation", "generation of the read model"}, {"checkpoint", "key of its partition's checkpoint"},
			{"tenant", "tenant"}, {"id", "unique in its tenant"}, {"last_seq", "sequence of its newest event"},
			{"deleted_seq", "sequence of the event that deleted it"}, {"sweep", "true while rows of the deleted conversation remain"},
		}},
		{"EmbeddingsEvent", "An event that the projection embeddings has applied. For a message with text it holds the vectors.", properties(claimedDocs, []Property{
			{"message_id", "id of the message"}, {"dimensions", "dimensions of its vectors"}, {"vectors", "vectors of its passages, concatenated, a signed byte for each dimension; all zero for a passage without a vector"},
		})},
		{"Passage", "The vector of a piece of a message. The text is in the Message with the same `tenant`, `conversation_id` and `seq`, possibly in another generation.", properties(ownerDocs, []Property{
			{"seq", "sequence of its message"}, {"part", "number of the piece in the message, from 0"}, {"message_id", "id of its message"},
			{"embedding", "list of floats; only its direction matters, not its length. `message_embedding_index` finds the nearest"},
		})},
		{"CachedEmbedding", "A vector that a model has computed, shared by all generations.", []Property{
			{"key", "hash of model and text, unique"}, {"vector", "a signed byte for each dimension; empty if the text has none"},
		}},
	}
}
