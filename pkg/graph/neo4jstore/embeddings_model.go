package neo4jstore

// embeddingsLabels describes the nodes of the projection "embeddings", and its cache.
func embeddingsLabels() []Label {
	return []Label{
		{"EmbeddingsConversation", "A conversation as the projection embeddings knows it. Its key is that of the Conversation.", []Property{
			{"key", "`<generation>/<tenant>/<id>`, unique"}, {"generation", "build of the read model"}, {"checkpoint", "key of the partition that it belongs to"},
			{"tenant", "tenant"}, {"id", "unique in its tenant"}, {"last_seq", "sequence of its newest event"},
			{"deleted_seq", "sequence of the event that deleted it"}, {"sweep", "it is deleted and its rows are not all gone yet"},
		}},
		{"EmbeddingsEvent", "An event that the projection embeddings has applied; with the vectors of a message that says something.", properties(claimedDocs, []Property{
			{"message_id", "id of the message"}, {"dimensions", "of its vectors"}, {"vectors", "of its passages one after the other, a signed byte for each dimension; all zero of one that says nothing"},
		})},
		{"Passage", "What a piece of a message means. The text is in the Message of the same `tenant`, `conversation_id` and `seq`; its generation may be another.", properties(ownerDocs, []Property{
			{"seq", "sequence of its message"}, {"part", "which piece of the message it is, from 0"}, {"message_id", "id of its message"},
			{"embedding", "list of floats, of which the direction counts and not the length: `message_embedding_index` finds the nearest"},
		})},
		{"CachedEmbedding", "A vector that a model was once asked for, of whatever generation.", []Property{
			{"key", "hash of model and text, unique"}, {"vector", "a signed byte for each dimension; empty if the text has none"},
		}},
	}
}
