package neo4jstore

// insightLabels describes the nodes of the projection "insight".
func insightLabels() []Label {
	return []Label{
		{"InsightConversation", "What the projection insight remembers of a conversation. It has the same key as the Conversation.", []Property{
			{"key", "`<generation>/<tenant>/<id>`, unique"}, {"generation", "generation of the read model"}, {"checkpoint", "key of its partition's checkpoint"},
			{"tenant", "tenant"}, {"id", "unique in its tenant"}, {"last_seq", "sequence of its newest event"},
			{"memory", "what its next events need to know of those before, JSON; for the writer"},
			{"deleted_seq", "sequence of the event that deleted it"}, {"sweep", "true while rows of the deleted conversation remain"},
		}},
		{"InsightDay", "What a conversation did on one UTC day.", []Property{
			{"key", "key of the conversation and the day, unique"}, {"conversation", "key of the conversation"}, {"id", "its id"},
			{"day", "2026-03-01; empty if the events have no time, or none of this century"},
			{"listed", "`<generation>/<tenant>`; missing once the conversation is deleted"},
			{"project", "the project of the conversation at the day's last event"}, {"agent", "its agent then"},
			{"counts", "counts by model and tool, JSON"}, {"detail", "counts by error, file and command, JSON"},
		}},
		{"InsightEvent", "An event that the projection insight has applied.", claimedDocs},
	}
}
