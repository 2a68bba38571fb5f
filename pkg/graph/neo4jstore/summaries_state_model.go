package neo4jstore

// summaryStateDocs are of a conversation and of each of its states.
var summaryStateDocs = []Property{
	{"ledger", "how far the summaries of each level have come, JSON"},
	{"covered_seq", "the end of what level 1 covers"},
	{"turn_count", "user messages"},
	{"chars", "characters as a summary reads them: of each tool result at most 2,000"},
	{"covered_turn", "the turn at the beginning of what level 1 does not cover"},
	{"covered_chars", "characters before it"},
	{"max_context_chars", "size of the model's context in code points, if the conversation says so"},
	{"profile", "profile of settings"},
	{"titled", "somebody has named it"},
	{"first_user", "sequence of the first message of a user"},
	{"answered", "an assistant's message came after it"},
}

var claimedDocs = []Property{
	{"conversation", "key of the conversation"},
	{"seq", "sequence of its event in the log"},
	{"identity", "key of tenant, conversation, source and id"},
	{"payload_key", "key of the id that its payload has in the conversation"},
	{"content_digest", "hash of its content"},
}

// summariesLabels describes the nodes of the projection "summaries".
func summariesLabels() []Label {
	return []Label{
		{"SummariesConversation", "A conversation as the projection summaries knows it now. Its key is that of the Conversation.", properties([]Property{
			{"key", "`<generation>/<tenant>/<id>`, unique"}, {"generation", "build of the read model"}, {"checkpoint", "key of the partition that it belongs to"},
			{"tenant", "tenant"}, {"id", "unique in its tenant"}, {"first_seq", "sequence of its first event"}, {"last_seq", "sequence of its newest event"},
			{"pending", "characters that wait for a summary of some level"}, {"uncovered_turns", "turns that no summary covers"}, {"untitled", "it is time for a title"},
			{"deleted_seq", "sequence of the event that deleted it"}, {"sweep", "it is deleted and its rows are not all gone yet"},
			{"states", "batches since older states of it went last"}, {"states_from", "sequence of the state that was its newest then"},
		}, summaryStateDocs)},
		{"SummariesState", "A conversation as it was after a batch, for readers, who see what is settled. Of each conversation the newest 9 to 16 stay.",
			properties([]Property{{"conversation", "key of the conversation"}, {"seq", "sequence of its newest event"}}, summaryStateDocs)},
		{"SummariesMark", "Where a turn or a step begins: a summary of level 1 ends before one. It has a second label, SummariesEvent. Those up to covered_seq have served.",
			properties(claimedDocs, []Property{{"turn", "the turn that it belongs to"}, {"chars", "characters of the conversation before it"}})},
		{"SummariesRange", "What a summary covers. It has a second label, SummariesEvent.", properties(claimedDocs, []Property{
			{"id", "summary_id, unique in the conversation"}, {"level", "level, from 1"}, {"first_seq", "sequence at which it begins"}, {"last_seq", "sequence at which it ends"},
			{"first_turn", "turn at which it begins"}, {"last_turn", "turn at which it ends"}, {"chars", "code points of its text; of what supersedes another, those of the first revision"},
			{"revised", "it supersedes another, which counts in its place"}, {"ends", "its `last_seq`; missing from what supersedes another"},
		})},
		{"SummariesEvent", "An event that the projection summaries has applied. A mark or a range is one too, and has more.", claimedDocs},
	}
}
