package neo4jstore

import "slices"

// Label is a label as people meet it who read the graph with Cypher.
type Label struct {
	Name, Is   string
	Properties []Property
}

// Property is a property of a label. It is missing where it would be empty.
type Property struct{ Name, Is string }

// Relationship is a type of relationship.
type Relationship struct{ From, Type, To, Is string }

// Index is an index or a constraint of the schema.
type Index struct{ Name, Statement string }

// What rows of all kinds have in common.
var (
	ownerDocs = []Property{
		{"conversation", "key of the conversation, `<generation>/<tenant>/<id>`"},
		{"tenant", "tenant"},
		{"conversation_id", "id of the conversation, unique in its tenant"},
	}
	eventDocs = []Property{
		{"seq", "sequence of its event in the log"},
		{"n", "counts rows of its kind in the conversation, from 1"},
		{"turn", "user messages up to here"},
		{"step", "assistant messages up to here"},
		{"event_id", "CloudEvents id of its event"},
		{"source", "CloudEvents source of its event"},
		{"time", "the producer's time, RFC 3339 in UTC, as text: `datetime(m.time)`"},
	}
	claimDocs = []Property{
		{"identity", "key of the event that made it: tenant, conversation, source and id"},
		{"payload_key", "key of the id that its payload has in the conversation"},
		{"content_digest", "hash of the event's content"},
		{"updated_at", "time of the newest event that has one, if its own has none"},
	}
	descriptionDocs = []Property{
		{"title", "title"},
		{"tags", "list of texts"},
		{"status", "active or archived"},
		{"agent", "name of the agent"},
		{"model", "model it runs on"},
		{"cwd", "its working directory"},
		{"project", "project"},
		{"profile", "profile of settings"},
		{"max_context_chars", "size of the model's context in code points"},
		{"branched_from", "id of the conversation it is a branch of"},
		{"branched_at", "id of the message that it branched at"},
	}
)

func bodyDocs(name, bytes, chars, digest string) []Property {
	return []Property{
		{name, "the text, up to 64 KiB of it; the whole is in the log"},
		{bytes, "bytes of the whole"},
		{chars, "code points of the whole"},
		{digest, "hash of the whole, if it is longer than what is here"},
	}
}

func properties(lists ...[]Property) (all []Property) {
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// Labels describes the nodes that the projections write, without those of the engine.
func Labels() []Label {
	return append([]Label{
		{"Conversation", "A conversation as it is now. A deleted one is a tombstone: it has neither `listed` nor a description.", properties(
			[]Property{
				{"key", "`<generation>/<tenant>/<id>`, unique; rows have it as `conversation`"},
				{"generation", "build of the read model"},
				{"checkpoint", "key of the partition that it belongs to"},
				{"tenant", "tenant"},
				{"id", "unique in its tenant"},
				{"listed", "`<generation>/<tenant>`; missing if it is deleted"},
				{"first_seq", "sequence of its first event"},
				{"last_seq", "sequence of its newest event"},
				{"created_at", "time of the first event that has one"},
				{"updated_at", "time of the newest event that has one"},
				{"version_seq", "sequence of its current Version"},
				{"message_count", "messages"}, {"turn_count", "user messages"}, {"step_count", "assistant messages"},
				{"tool_call_count", "tool calls"}, {"tool_result_count", "results of tool calls"},
				{"summary_count", "summaries, with their revisions"}, {"condensed_count", "condensations of results"},
				{"total_chars", "code points of all messages"},
				{"ledger", "how far its summaries have come, JSON"},
				{"deleted_seq", "sequence of the event that deleted it"},
				{"sweep", "it is deleted and its rows are not all gone yet"},
				{"branch_of", "key of the conversation it is a branch of"},
				{"awaits", "the same, as long as that has not come"},
				{"words", "the terms of its title, see Message"},
			}, descriptionDocs)},
		{"Version", "What a conversation said of itself from one sequence to another. It has a second label, GraphEvent.", properties(ownerDocs,
			[]Property{{"seq", "sequence of the event that made it"}, {"ended", "sequence of the event that ended it; missing from the current one"}, {"time", "time of the event that made it"}},
			descriptionDocs, claimDocs)},
		{"Message", "A message. It has a second label, GraphEvent.", properties(ownerDocs, eventDocs,
			[]Property{{"id", "message_id, unique in the conversation"}, {"role", "user, assistant or system"}},
			bodyDocs("content", "content_bytes", "char_count", "content_hash"), bodyDocs("reasoning", "reasoning_bytes", "reasoning_chars", "reasoning_hash"),
			[]Property{
				{"speaker", "who speaks, where there are several"}, {"session", "session of the runtime"}, {"model", "model that wrote it"},
				{"usage", "what it cost, JSON as the runtime said it"}, {"via", "what made it, for example compaction"},
				{"references", "code it is about, JSON; the same as REFERENCES_CODE"},
				{"cum_chars", "code points of the conversation's messages up to and with it"},
				{"terms", "what it is found by in its conversation: its passages and their terms, as package recall encodes them"},
				{"vectors", "of its passages by the built-in embeddings, 128 bytes each"},
				{"words", "what it is found by over all conversations: a word for generation and tenant, then the terms of its beginning"},
				{"begins_turn", "on user messages: the turn"},
			}, claimDocs)},
		{"ToolCall", "A call of a tool. It has a second label, GraphEvent.", properties(ownerDocs, eventDocs,
			[]Property{{"id", "tool_call_id, unique in the conversation"}, {"message_id", "id of the message that made it"}, {"tool_name", "tool"}},
			bodyDocs("arguments", "arguments_bytes", "arguments_chars", "arguments_hash"),
			[]Property{
				{"iteration", "iteration of the agent's loop"},
				{"success", "of its result, once it is there"}, {"duration_ms", "of its result, once it is there"},
				{"awaits", "key of its message, as long as that has not come"},
			}, claimDocs)},
		{"ToolResult", "The result of a call. It has a second label, GraphEvent.", properties(ownerDocs, eventDocs,
			[]Property{{"tool_call_id", "the call"}, {"success", "missing if nobody said"}},
			bodyDocs("result", "result_size_bytes", "result_chars", "result_hash"),
			[]Property{{"error", "what went wrong"}, {"duration_ms", "how long the call took"}, {"awaits", "key of its call, as long as that has not come"}}, claimDocs)},
		{"Condensed", "A shorter text for a result; the newest counts. It has a second label, GraphEvent.", properties(ownerDocs, eventDocs,
			[]Property{{"tool_call_id", "the call whose result it is"}},
			bodyDocs("content", "content_bytes", "char_count", "content_hash"),
			[]Property{{"model", "model that wrote it"}, {"prompt_hash", "hash of its prompt"}, {"chars_in", "code points that the model read"}, {"chars_out", "code points that it wrote"}},
			claimDocs)},
		{"Summary", "A summary of a range of its conversation. Ranges of one level follow each other; one of the next level holds whole ranges. It has a second label, GraphEvent.", properties(ownerDocs, eventDocs,
			[]Property{
				{"id", "summary_id, unique in the conversation"}, {"level", "1 summarises turns, each higher level the one below"},
				{"first_seq", "sequence where the range begins"}, {"last_seq", "sequence where it ends"}, {"first_turn", "turn where it begins"}, {"last_turn", "turn where it ends"},
				{"children", "ids of the summaries that it consolidates; the same as CONSOLIDATES"}, {"supersedes", "id of an older revision of the same range; of all revisions that with the highest `seq` counts"},
				{"said", "what was said"}, {"actions", "what was done"}, {"findings", "list of texts"}, {"topics", "list of texts"}, {"files", "list of paths"}, {"tools", "list of names"},
				{"turn_count", "turns that it covers"}, {"method", "llm or extractive"}, {"fallback_reason", "why a model was to write it and did not"},
				{"model", "model that wrote it"}, {"prompt_hash", "hash of its prompt"}, {"chars_in", "code points that it was made from"}, {"chars_out", "its code points"},
			}, claimDocs)},
		{"Scope", "A piece of code that messages are about, shared by a tenant.", []Property{
			{"key", "unique"}, {"tenant", "tenant"}, {"file", "path; longer ones than 4 KiB have no Scope"}, {"start_line", "first line"}, {"end_line", "last line"}, {"name", "name, for example of a function"},
		}},
		{"FilesConversation", "A conversation as the projection files knows it. Its key is that of the Conversation.", []Property{
			{"key", "`<generation>/<tenant>/<id>`, unique"}, {"generation", "build of the read model"}, {"checkpoint", "key of the partition that it belongs to"},
			{"tenant", "tenant"}, {"id", "unique in its tenant"}, {"cwd", "the agent's working directory"}, {"turn_count", "user messages"},
			{"last_seq", "sequence of its newest event"}, {"deleted_seq", "sequence of the event that deleted it"}, {"sweep", "it is deleted and its rows are not all gone yet"},
		}},
		{"FileAccess", "One access of one file by one tool call.", properties(ownerDocs, []Property{
			{"at", "where it stands in the conversation: `seq * 1000 + rank`"}, {"seq", "sequence of its event"}, {"rank", "orders accesses of one event"},
			{"path", "path, absolute where it could be told"}, {"kind", "read, write, search or list"}, {"tool", "tool"}, {"turn", "turn"},
			{"count", "accesses of the path with this kind in the conversation, up to and with it"},
			{"current", "its `at`, if it is the newest of its path and kind, or was until lately"}, {"until", "sequence that ended its being the newest"}, {"since", "sequence of the failure that made it the newest again"},
			{"place", "key of path and kind in the conversation; missing if it was taken back"},
			{"revoked", "sequence of the result that says its call failed"},
			{"about", "`<generation>/<tenant>/<last component of the path>`"},
		})},
		{"File", "A file, shared by a tenant.", []Property{{"key", "unique"}, {"tenant", "tenant"}, {"path", "path"}}},
		{"TrackedCall", "A call whose result has not come.", []Property{
			{"key", "unique"}, {"conversation", "key of the conversation"}, {"tool_call_id", "the call"}, {"seq", "its sequence"}, {"tool", "tool"},
			{"arguments", "what reading the result needs"}, {"cwd", "working directory"}, {"turn", "turn"},
		}},
		{"EarlyResult", "A result that came before its call.", []Property{
			{"key", "unique"}, {"conversation", "key of the conversation"}, {"tool_call_id", "the call"}, {"seq", "its sequence"},
			{"failed", "whether the call failed"}, {"result", "the text"}, {"files", "what the runtime reported, JSON"},
		}},
		{"FilesEvent", "An event that the projection files has applied.", []Property{
			{"conversation", "key of the conversation"}, {"seq", "its sequence"}, {"identity", "key of tenant, conversation, source and id"},
			{"payload_key", "key of the id that its payload has in the conversation"}, {"content_digest", "hash of its content"},
		}},
	}, append(summariesLabels(), embeddingsLabels()...)...)
}

// Relationships describes them.
func Relationships() []Relationship {
	return []Relationship{
		{"Conversation", "HAS_MESSAGE", "Message", "its messages; to read the newest of a long conversation use the index on `conversation` and `seq`"},
		{"Conversation", "HAS_VERSION", "Version", "its descriptions, one after the other"},
		{"Conversation", "HAS_BRANCH", "Conversation", "a conversation that began as its branch"},
		{"Message", "HAS_TOOL_CALL", "ToolCall", "the calls that it made"},
		{"ToolCall", "HAS_RESULT", "ToolResult", "at most one"},
		{"ToolResult", "CONDENSED_TO", "Condensed", "shorter texts for it"},
		{"Message", "REFERENCES_CODE", "Scope", "code that it is about; the relationship has `conversation` and `seq` of the message, and as `about` and `symbol` behind `<generation>/<tenant>/` the last component of the file and the name"},
		{"Conversation", "HAS_SUMMARY", "Summary", "its summaries, with their revisions"},
		{"Summary", "CONSOLIDATES", "Summary", "those of the level below that it was written from"},
		{"FileAccess", "OF_FILE", "File", "the file accessed"},
	}
}

// Indexes lists what the schema makes and leaves, in order.
func Indexes() (list []Index) {
	for _, m := range migrations {
		for _, statement := range m.statements {
			if name := droppedBy(statement); name != "" {
				list = slices.DeleteFunc(list, func(i Index) bool { return i.Name == name })
				continue
			}
			list = append(list, Index{nameOf(statement), statement})
		}
	}
	return list
}
