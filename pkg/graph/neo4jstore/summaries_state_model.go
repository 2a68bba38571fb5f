package neo4jstore

// summaryStateDocs documents the properties of a conversation and of each of its states.
var summaryStateDocs = []Property{
	{"ledger", "how far the summaries of each level reach, JSON"},
	{"covered_seq", "last sequence that level 1 covers"},
	{"turn_count", "number of user messages"},
	{"chars", "characters as a summary reads them: at most 2,000 of each tool result"},
	{"covered_turn", "first turn that level 1 does not cover"},
	{"covered_chars", "characters before that turn"},
	{"max_context_chars", "size of the model's context in code points, if the conversation sets it"},
	{"profile", "name of its settings profile"},
	{"titled", "true if someone set a title"},
	{"first_user", "sequence of the first user message"},
	{"answered", "true if an assistant message followed it"},
}

var claimedDocs = []Property{
	{"conversation", "key of the conversation"},
	{"seq", "sequence of its event in the log"},
	{"identity", "key of tenant, conversation, source and id"},
	{"payload_key", "key of its payload's id in the conversation"},
	{"content_digest", "hash of its content"},
}

// summariesLabels describes the nodes of the projection "summaries".
func summariesLabels() []Label {
	return []Label{
		{"SummariesConversation", "Current state of a conversation in the projection summaries. It has the same key as the Conversation.", properties([]Property{
			{"key", "`<generation>/<tenant>/<id>`, unique"}, {"generation", "generation of the read model"}, {"checkpoint", "key of its partition's checkpoint"},
			{"tenant", "tenant"}, {"id", "unique in its tenant"}, {"first_seq", "sequence of its first event"}, {"last_seq", "sequence of its newest event"},
			{"pending", "characters waiting for a summary on any level"}, {"uncovered_turns", "turns that no summary covers"}, {"untitled", "true if a title is due"},
			{"deleted_seq", "sequence of the event that deleted it"}, {"sweep", "true while rows of the deleted conversation remain"},
			{"states", "batches since its older states were last removed"}, {"states_from", "sequence of its newest state at that time"},
		}, summaryStateDocs)},
		{"SummariesState", "State of a conversation after a batch. Readers use the newest settled one. The newest 9 to 16 of each conversation are kept.",
			properties([]Property{{"conversation", "key of the conversation"}, {"seq", "sequence of its newest event"}}, summaryStateDocs)},
		{"SummariesMark", "Where a turn or a step begins, and a summary of level 1 may therefore end. It also has the label SummariesEvent. Marks up to covered_seq are no longer needed.",
			properties(claimedDocs, []Property{{"turn", "its turn"}, {"chars", "characters of the conversation before it"}})},
		{"SummariesRange", "The range that a summary covers. It also has the label SummariesEvent.", properties(claimedDocs, []Property{
			{"id", "summary_id, unique in the conversation"}, {"level", "level, from 1"}, {"first_seq", "sequence at which it begins"}, {"last_seq", "sequence at which it ends"},
			{"first_turn", "turn at which it begins"}, {"last_turn", "turn at which it ends"}, {"chars", "code points of the summary's text; for a revision, of the first revision's text"},
			{"revised", "true if it supersedes another, which is counted instead"}, {"ends", "its `last_seq`; missing from revisions"},
		})},
		{"SummariesEvent", "An event that the projection summaries has applied. Marks and ranges are events with more properties.", claimedDocs},
	}
}
