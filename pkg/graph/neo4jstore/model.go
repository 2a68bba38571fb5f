package neo4jstore

import "slices"

// Label documents a label for people who read the graph with Cypher.
type Label struct {
	Name, Is   string
	Properties []Property
}

// Property documents a property of a label. Empty properties are missing.
type Property struct{ Name, Is string }

// Relationship documents a type of relationship.
type Relationship struct{ From, Type, To, Is string }

// Index is an index or a constraint of the schema.
type Index struct{ Name, Statement string }

// Properties that several labels share.
var (
	ownerDocs = []Property{
		{"conversation", "key of the conversation, `<generation>/<tenant>/<id>`"},
		{"tenant", "tenant"},
		{"conversation_id", "id of the conversation, unique in its tenant"},
	}
	eventDocs = []Property{
		{"seq", "sequence of its event in the log"},
		{"n", "number of the row among rows of its kind in the conversation, from 1"},
		{"turn", "number of user messages so far"},
		{"step", "number of assistant messages so far"},
		{"event_id", "CloudEvents id of its event"},
		{"source", "CloudEvents source of its event"},
		{"time", "the producer's time, RFC 3339 in UTC, as text: `datetime(m.time)`"},
	}
	claimDocs = []Property{
		{"identity", "key of the event that made it: tenant, conversation, source and id"},
		{"payload_key", "key of its payload's id in the conversation"},
		{"content_digest", "hash of the event's content"},
		{"updated_at", "time of the newest event with a time, if its own event has none"},
	}
	descriptionDocs = []Property{
		{"title", "title"},
		{"tags", "list of strings"},
		{"status", "active or archived"},
		{"agent", "name of the agent"},
		{"model", "model that the agent uses"},
		{"cwd", "working directory"},
		{"project", "project"},
		{"profile", "name of its settings profile"},
		{"max_context_chars", "size of the model's context in code points"},
		{"branched_from", "id of the conversation that it branched from"},
		{"branched_at", "id of the message where it branched"},
	}
)

func bodyDocs(name, bytes, chars, digest string) []Property {
	return []Property{
		{name, "the text with names in place of images and other files, up to 64 KiB; the log has all of it"},
		{bytes, "size of that text in bytes, also of what was cut"},
		{chars, "size of that text in code points, also of what was cut"},
		{digest, "hash of the recorded text, if it was cut or has names"},
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
		{"Conversation", "A conversation as it is now. A deleted conversation is a tombstone, without `listed` and without a description.", properties(
			[]Property{
				{"key", "`<generation>/<tenant>/<id>`, unique; rows refer to it as `conversation`"},
				{"generation", "generation of the read model"},
				{"checkpoint", "key of its partition's checkpoint"},
				{"tenant", "tenant"},
				{"id", "unique in its tenant"},
				{"listed", "`<generation>/<tenant>`; missing if the conversation is deleted"},
				{"first_seq", "sequence of its first event"},
				{"last_seq", "sequence of its newest event"},
				{"created_at", "time of the first event with a time"},
				{"updated_at", "time of the newest event with a time"},
				{"version_seq", "sequence of its current Version"},
				{"message_count", "number of messages"}, {"turn_count", "number of user messages"}, {"step_count", "number of assistant messages"},
				{"tool_call_count", "number of tool calls"}, {"tool_result_count", "number of tool results"},
				{"summary_count", "number of summaries, revisions included"}, {"condensed_count", "number of condensed results"},
				{"total_chars", "code points in all messages"},
				{"ledger", "how far its summaries reach, JSON"},
				{"deleted_seq", "sequence of the event that deleted it"},
				{"sweep", "true while rows of the deleted conversation remain"},
				{"branch_of", "key of the conversation that it branched from"},
				{"awaits", "the same, until that conversation exists"},
				{"words", "search terms of its title, see Message"},
			}, descriptionDocs)},
		{"Version", "A conversation's description between two sequences. It also has the label GraphEvent.", properties(ownerDocs,
			[]Property{{"seq", "sequence of the event that made it"}, {"ended", "sequence of the event that ended it; missing from the current Version"}, {"time", "time of the event that made it"}},
			descriptionDocs, claimDocs)},
		{"Message", "A message. It also has the label GraphEvent.", properties(ownerDocs, eventDocs,
			[]Property{{"id", "message_id, unique in the conversation"}, {"role", "user, assistant or system"}},
			bodyDocs("content", "content_bytes", "char_count", "content_hash"), bodyDocs("reasoning", "reasoning_bytes", "reasoning_chars", "reasoning_hash"),
			[]Property{
				{"speaker", "who speaks, if there are several speakers"}, {"session", "session of the runtime"}, {"model", "model that wrote it"},
				{"usage", "what it cost, JSON as the runtime reported it"}, {"via", "how it was made, for example by compaction"},
				{"references", "code that it is about, JSON; the same as REFERENCES_CODE"},
				{"cum_chars", "code points of the conversation's messages so far, this one included"},
				{"terms", "its passages and their terms, for searches in its conversation, as package recall encodes them"},
				{"vectors", "vectors of its passages from the built-in embeddings, 128 bytes each, then the number of their table"},
				{"words", "for searches over all conversations: a word for generation and tenant, then the terms of its beginning"},
				{"begins_turn", "the turn, on user messages only"},
			}, claimDocs)},
		{"ToolCall", "A tool call. It also has the label GraphEvent.", properties(ownerDocs, eventDocs,
			[]Property{{"id", "tool_call_id, unique in the conversation"}, {"message_id", "id of the message that made it"}, {"tool_name", "tool"}},
			bodyDocs("arguments", "arguments_bytes", "arguments_chars", "arguments_hash"),
			[]Property{
				{"iteration", "iteration of the agent's loop"},
				{"success", "copied from its result when that arrives"}, {"duration_ms", "copied from its result when that arrives"},
				{"awaits", "key of its message, until that arrives"},
			}, claimDocs)},
		{"ToolResult", "The result of a call. It also has the label GraphEvent.", properties(ownerDocs, eventDocs,
			[]Property{{"tool_call_id", "the call"}, {"success", "missing if unknown"}},
			bodyDocs("result", "result_size_bytes", "result_chars", "result_hash"),
			[]Property{{"error", "what went wrong"}, {"duration_ms", "how long the call took"}, {"awaits", "key of its call, until that arrives"}}, claimDocs)},
		{"Condensed", "A shorter text for a result; the newest one applies. It also has the label GraphEvent.", properties(ownerDocs, eventDocs,
			[]Property{{"tool_call_id", "the call whose result it is"}},
			bodyDocs("content", "content_bytes", "char_count", "content_hash"),
			[]Property{{"model", "model that wrote it"}, {"prompt_hash", "hash of its prompt"}, {"chars_in", "code points that the model read"}, {"chars_out", "code points that it wrote"}},
			claimDocs)},
		{"Summary", "A summary of a range of its conversation. Ranges of one level follow each other; a range of the next level consists of whole ranges. It also has the label GraphEvent.", properties(ownerDocs, eventDocs,
			[]Property{
				{"id", "summary_id, unique in the conversation"}, {"level", "1 summarizes turns, each higher level the level below"},
				{"first_seq", "sequence where the range begins"}, {"last_seq", "sequence where it ends"}, {"first_turn", "turn where it begins"}, {"last_turn", "turn where it ends"},
				{"children", "ids of the summaries that it consolidates; the same as CONSOLIDATES"}, {"supersedes", "id of an older revision of the same range; the revision with the highest `seq` applies"},
				{"said", "what was said"}, {"actions", "what was done"}, {"findings", "list of strings"}, {"topics", "list of strings"}, {"files", "list of paths"}, {"tools", "list of names"},
				{"turn_count", "number of turns that it covers"}, {"method", "llm or extractive"}, {"fallback_reason", "why no model wrote it although one was configured"},
				{"model", "model that wrote it"}, {"prompt_hash", "hash of its prompt"}, {"chars_in", "code points that its writer read"}, {"chars_out", "code points of its text"},
			}, claimDocs)},
		{"Scope", "A piece of code that messages are about, shared by a tenant.", []Property{
			{"key", "unique"}, {"tenant", "tenant"}, {"file", "path; a path over 4 KiB has no Scope"}, {"start_line", "first line"}, {"end_line", "last line"}, {"name", "name, for example of a function"},
		}},
		{"FilesConversation", "State of a conversation in the projection files. It has the same key as the Conversation.", []Property{
			{"key", "`<generation>/<tenant>/<id>`, unique"}, {"generation", "generation of the read model"}, {"checkpoint", "key of its partition's checkpoint"},
			{"tenant", "tenant"}, {"id", "unique in its tenant"}, {"cwd", "the agent's working directory"}, {"turn_count", "number of user messages"},
			{"last_seq", "sequence of its newest event"}, {"deleted_seq", "sequence of the event that deleted it"}, {"sweep", "true while rows of the deleted conversation remain"},
		}},
		{"FileAccess", "One access of one file by one tool call.", properties(ownerDocs, []Property{
			{"at", "its position in the conversation: `seq * 1000 + rank`"}, {"seq", "sequence of its event"}, {"rank", "its position among the accesses of one event"},
			{"path", "path, absolute if the working directory is known"}, {"kind", "read, write, search or list"}, {"tool", "tool"}, {"turn", "turn"},
			{"count", "accesses of this path and kind in the conversation so far, this one included"},
			{"current", "its `at`, if it is the newest of its path and kind, or recently was"}, {"until", "sequence from which it was no longer the newest"}, {"since", "sequence of the failure that made it the newest again"},
			{"place", "key of path and kind in the conversation; missing if it was revoked"},
			{"revoked", "sequence of the result that says its call failed"},
			{"about", "`<generation>/<tenant>/<last component of the path>`"},
		})},
		{"File", "A file, shared by a tenant.", []Property{{"key", "unique"}, {"tenant", "tenant"}, {"path", "path"}}},
		{"TrackedCall", "A call whose result has not arrived.", []Property{
			{"key", "unique"}, {"conversation", "key of the conversation"}, {"tool_call_id", "the call"}, {"seq", "its sequence"}, {"tool", "tool"},
			{"arguments", "the arguments needed to interpret the result"}, {"cwd", "working directory"}, {"turn", "turn"},
		}},
		{"EarlyResult", "A result that came before its call.", []Property{
			{"key", "unique"}, {"conversation", "key of the conversation"}, {"tool_call_id", "the call"}, {"seq", "its sequence"},
			{"failed", "whether the call failed"}, {"result", "the text"}, {"files", "what the runtime reported, JSON"},
		}},
		{"FilesEvent", "An event that the projection files has applied.", []Property{
			{"conversation", "key of the conversation"}, {"seq", "its sequence"}, {"identity", "key of tenant, conversation, source and id"},
			{"payload_key", "key of its payload's id in the conversation"}, {"content_digest", "hash of its content"},
		}},
	}, slices.Concat(summariesLabels(), embeddingsLabels(), projectsLabels(), insightLabels(), codebaseLabels())...)
}

// Relationships describes the relationships that the projections write.
func Relationships() []Relationship {
	return []Relationship{
		{"Conversation", "HAS_MESSAGE", "Message", "its messages; to read the newest messages of a long conversation, use the index on `conversation` and `seq`"},
		{"Conversation", "HAS_VERSION", "Version", "its descriptions over time"},
		{"Conversation", "HAS_BRANCH", "Conversation", "a conversation that branched from it"},
		{"Message", "HAS_TOOL_CALL", "ToolCall", "the calls that it made"},
		{"ToolCall", "HAS_RESULT", "ToolResult", "at most one"},
		{"ToolResult", "CONDENSED_TO", "Condensed", "shorter texts for it"},
		{"Message", "REFERENCES_CODE", "Scope", "code that it is about; the relationship has the message's `conversation` and `seq`, and `<generation>/<tenant>/` followed by the last component of the file (`about`) or the name (`symbol`)"},
		{"Conversation", "HAS_SUMMARY", "Summary", "its summaries, revisions included"},
		{"Summary", "CONSOLIDATES", "Summary", "the summaries of the level below that it was written from"},
		{"FileAccess", "OF_FILE", "File", "the file accessed"},
		{"ProjectMember", "IN_PROJECT", "ProjectName", "the project, or the repository"},
	}
}

// Indexes lists the indexes and constraints that exist after all migrations, in order.
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
