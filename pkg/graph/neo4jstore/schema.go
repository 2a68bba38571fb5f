package neo4jstore

const dropMessageVectors = "DROP INDEX message_embedding_index IF EXISTS"

// movedFrom maps each statement that drops a moved index to the index's old label.
var movedFrom = map[string]string{dropMessageVectors: "Message"}

// migrations lists all steps of the schema, in order.
var migrations = []migration{
	{"constraints and indexes of the projections graph and files", []string{
		"CREATE CONSTRAINT mneme_schema IF NOT EXISTS FOR (s:MnemeSchema) REQUIRE s.n IS UNIQUE",

		// The engine: positions and failed events of both projections.
		"CREATE CONSTRAINT graph_checkpoint IF NOT EXISTS FOR (k:GraphCheckpoint) REQUIRE k.key IS UNIQUE",
		"CREATE CONSTRAINT graph_settled IF NOT EXISTS FOR (s:GraphSettled) REQUIRE s.key IS UNIQUE",
		"CREATE CONSTRAINT graph_failed_event IF NOT EXISTS FOR (f:GraphFailedEvent) REQUIRE (f.generation, f.seq) IS UNIQUE",
		"CREATE INDEX graph_failed_event_conversation IF NOT EXISTS FOR (f:GraphFailedEvent) ON (f.conversation)",
		"CREATE CONSTRAINT files_checkpoint IF NOT EXISTS FOR (k:FilesCheckpoint) REQUIRE k.key IS UNIQUE",
		"CREATE CONSTRAINT files_settled IF NOT EXISTS FOR (s:FilesSettled) REQUIRE s.key IS UNIQUE",
		"CREATE CONSTRAINT files_failed_event IF NOT EXISTS FOR (f:FilesFailedEvent) REQUIRE (f.generation, f.seq) IS UNIQUE",
		"CREATE INDEX files_failed_event_conversation IF NOT EXISTS FOR (f:FilesFailedEvent) ON (f.conversation)",

		// Claims: an event's identity is unique, and its payload's id is unique in its kind.
		"CREATE CONSTRAINT graph_event_identity IF NOT EXISTS FOR (e:GraphEvent) REQUIRE e.identity IS UNIQUE",
		"CREATE CONSTRAINT message_payload_key IF NOT EXISTS FOR (m:Message) REQUIRE m.payload_key IS UNIQUE",
		"CREATE CONSTRAINT tool_call_payload_key IF NOT EXISTS FOR (t:ToolCall) REQUIRE t.payload_key IS UNIQUE",
		"CREATE CONSTRAINT tool_result_payload_key IF NOT EXISTS FOR (r:ToolResult) REQUIRE r.payload_key IS UNIQUE",
		"CREATE CONSTRAINT files_event_identity IF NOT EXISTS FOR (e:FilesEvent) REQUIRE e.identity IS UNIQUE",
		"CREATE CONSTRAINT files_event_payload_key IF NOT EXISTS FOR (e:FilesEvent) REQUIRE e.payload_key IS UNIQUE",
		"CREATE CONSTRAINT files_event_seq IF NOT EXISTS FOR (e:FilesEvent) REQUIRE (e.conversation, e.seq) IS UNIQUE",

		// Conversations. listed is the tenant, and is missing from deleted conversations.
		"CREATE CONSTRAINT conversation_key IF NOT EXISTS FOR (c:Conversation) REQUIRE c.key IS UNIQUE",
		"CREATE INDEX conversation_tenant_id IF NOT EXISTS FOR (c:Conversation) ON (c.tenant, c.id)",
		"CREATE INDEX conversation_by_activity IF NOT EXISTS FOR (c:Conversation) ON (c.listed, c.last_seq)",
		"CREATE INDEX conversation_by_creation IF NOT EXISTS FOR (c:Conversation) ON (c.listed, c.first_seq)",
		"CREATE INDEX conversation_awaits IF NOT EXISTS FOR (c:Conversation) ON (c.awaits)",
		"CREATE INDEX conversation_sweep IF NOT EXISTS FOR (c:Conversation) ON (c.sweep)",
		"CREATE CONSTRAINT version_seq IF NOT EXISTS FOR (v:Version) REQUIRE (v.conversation, v.seq) IS UNIQUE",

		// Their rows. begins_turn is the turn of a user message, and is missing from others.
		"CREATE CONSTRAINT message_seq IF NOT EXISTS FOR (m:Message) REQUIRE (m.conversation, m.seq) IS UNIQUE",
		"CREATE INDEX message_role IF NOT EXISTS FOR (m:Message) ON (m.conversation, m.role, m.seq)",
		"CREATE INDEX message_begins_turn IF NOT EXISTS FOR (m:Message) ON (m.conversation, m.begins_turn)",
		"CREATE CONSTRAINT tool_call_seq IF NOT EXISTS FOR (t:ToolCall) REQUIRE (t.conversation, t.seq) IS UNIQUE",
		"CREATE CONSTRAINT tool_result_seq IF NOT EXISTS FOR (r:ToolResult) REQUIRE (r.conversation, r.seq) IS UNIQUE",
		"CREATE CONSTRAINT scope_key IF NOT EXISTS FOR (s:Scope) REQUIRE s.key IS UNIQUE",
		"CREATE INDEX scope_file IF NOT EXISTS FOR (s:Scope) ON (s.file)",

		// Children whose parent has not arrived.
		"CREATE INDEX tool_call_awaits IF NOT EXISTS FOR (t:ToolCall) ON (t.awaits)",
		"CREATE INDEX tool_result_awaits IF NOT EXISTS FOR (r:ToolResult) ON (r.awaits)",

		// Files. place is the path and kind of an access in its conversation and is missing
		// from revoked ones; current is the position of the newest access of a place.
		"CREATE CONSTRAINT files_conversation_key IF NOT EXISTS FOR (c:FilesConversation) REQUIRE c.key IS UNIQUE",
		"CREATE INDEX files_conversation_sweep IF NOT EXISTS FOR (c:FilesConversation) ON (c.sweep)",
		"CREATE CONSTRAINT file_access_at IF NOT EXISTS FOR (a:FileAccess) REQUIRE (a.conversation, a.at) IS UNIQUE",
		"CREATE INDEX file_access_current IF NOT EXISTS FOR (a:FileAccess) ON (a.conversation, a.current)",
		"CREATE INDEX file_access_place IF NOT EXISTS FOR (a:FileAccess) ON (a.place, a.at)",
		"CREATE CONSTRAINT file_key IF NOT EXISTS FOR (f:File) REQUIRE f.key IS UNIQUE",
		"CREATE INDEX file_path IF NOT EXISTS FOR (f:File) ON (f.path)",
		"CREATE CONSTRAINT tracked_call_key IF NOT EXISTS FOR (t:TrackedCall) REQUIRE t.key IS UNIQUE",
		"CREATE INDEX tracked_call_conversation IF NOT EXISTS FOR (t:TrackedCall) ON (t.conversation)",
		"CREATE CONSTRAINT early_result_key IF NOT EXISTS FOR (r:EarlyResult) REQUIRE r.key IS UNIQUE",
		"CREATE INDEX early_result_conversation IF NOT EXISTS FOR (r:EarlyResult) ON (r.conversation)",

		// Embeddings, not written yet at this migration.
		"CREATE VECTOR INDEX message_embedding_index IF NOT EXISTS FOR (m:Message) ON (m.embedding) OPTIONS {indexConfig: {`vector.similarity_function`: 'cosine'}}",
		"CREATE VECTOR INDEX scope_embedding_content_vector IF NOT EXISTS FOR (s:Scope) ON (s.embedding) OPTIONS {indexConfig: {`vector.similarity_function`: 'cosine'}}",
	}},
	{"which generation of each projection serves", []string{
		"CREATE CONSTRAINT graph_serving IF NOT EXISTS FOR (s:GraphServing) REQUIRE s.key IS UNIQUE",
		"CREATE CONSTRAINT files_serving IF NOT EXISTS FOR (s:FilesServing) REQUIRE s.key IS UNIQUE",
	}},
	{"summaries and condensations of the projection graph", []string{
		"CREATE CONSTRAINT summary_payload_key IF NOT EXISTS FOR (s:Summary) REQUIRE s.payload_key IS UNIQUE",
		"CREATE CONSTRAINT summary_seq IF NOT EXISTS FOR (s:Summary) REQUIRE (s.conversation, s.seq) IS UNIQUE",
		"CREATE INDEX summary_level IF NOT EXISTS FOR (s:Summary) ON (s.conversation, s.level, s.seq)",
		"CREATE INDEX summary_range IF NOT EXISTS FOR (s:Summary) ON (s.conversation, s.level, s.last_seq, s.seq)",
		"CREATE CONSTRAINT condensed_seq IF NOT EXISTS FOR (d:Condensed) REQUIRE (d.conversation, d.seq) IS UNIQUE",
		"CREATE INDEX condensed_call IF NOT EXISTS FOR (d:Condensed) ON (d.conversation, d.tool_call_id, d.seq)",
	}},
	{"constraints and indexes of the projection summaries", []string{
		"CREATE CONSTRAINT summaries_checkpoint IF NOT EXISTS FOR (k:SummariesCheckpoint) REQUIRE k.key IS UNIQUE",
		"CREATE CONSTRAINT summaries_settled IF NOT EXISTS FOR (s:SummariesSettled) REQUIRE s.key IS UNIQUE",
		"CREATE CONSTRAINT summaries_failed_event IF NOT EXISTS FOR (f:SummariesFailedEvent) REQUIRE (f.generation, f.seq) IS UNIQUE",
		"CREATE INDEX summaries_failed_event_conversation IF NOT EXISTS FOR (f:SummariesFailedEvent) ON (f.conversation)",
		"CREATE CONSTRAINT summaries_serving IF NOT EXISTS FOR (s:SummariesServing) REQUIRE s.key IS UNIQUE",
		"CREATE CONSTRAINT summaries_event_identity IF NOT EXISTS FOR (e:SummariesEvent) REQUIRE e.identity IS UNIQUE",
		"CREATE CONSTRAINT summaries_event_payload_key IF NOT EXISTS FOR (e:SummariesEvent) REQUIRE e.payload_key IS UNIQUE",
		"CREATE CONSTRAINT summaries_event_seq IF NOT EXISTS FOR (e:SummariesEvent) REQUIRE (e.conversation, e.seq) IS UNIQUE",

		// ends is the end of a range, and is missing from revisions.
		"CREATE CONSTRAINT summaries_conversation_key IF NOT EXISTS FOR (c:SummariesConversation) REQUIRE c.key IS UNIQUE",
		"CREATE INDEX summaries_conversation_by_id IF NOT EXISTS FOR (c:SummariesConversation) ON (c.generation, c.tenant, c.id)",
		"CREATE INDEX summaries_conversation_sweep IF NOT EXISTS FOR (c:SummariesConversation) ON (c.sweep)",
		"CREATE CONSTRAINT summaries_state_seq IF NOT EXISTS FOR (s:SummariesState) REQUIRE (s.conversation, s.seq) IS UNIQUE",
		"CREATE CONSTRAINT summaries_mark_seq IF NOT EXISTS FOR (m:SummariesMark) REQUIRE (m.conversation, m.seq) IS UNIQUE",
		"CREATE CONSTRAINT summaries_range_seq IF NOT EXISTS FOR (r:SummariesRange) REQUIRE (r.conversation, r.seq) IS UNIQUE",
		"CREATE INDEX summaries_range_ends IF NOT EXISTS FOR (r:SummariesRange) ON (r.conversation, r.level, r.ends)",
	}},
	{"a search over all conversations", []string{
		// Each text begins with a word for its generation and tenant. See graph_words.go.
		"CREATE FULLTEXT INDEX words IF NOT EXISTS FOR (n:Message|Conversation) ON EACH [n.words]" +
			" OPTIONS {indexConfig: {`fulltext.analyzer`: 'whitespace', `fulltext.eventually_consistent`: true}}",
	}},
	{"constraints and indexes of the projection embeddings, and its cache", []string{
		"CREATE CONSTRAINT embeddings_checkpoint IF NOT EXISTS FOR (k:EmbeddingsCheckpoint) REQUIRE k.key IS UNIQUE",
		"CREATE CONSTRAINT embeddings_settled IF NOT EXISTS FOR (s:EmbeddingsSettled) REQUIRE s.key IS UNIQUE",
		"CREATE CONSTRAINT embeddings_failed_event IF NOT EXISTS FOR (f:EmbeddingsFailedEvent) REQUIRE (f.generation, f.seq) IS UNIQUE",
		"CREATE INDEX embeddings_failed_event_conversation IF NOT EXISTS FOR (f:EmbeddingsFailedEvent) ON (f.conversation)",
		"CREATE CONSTRAINT embeddings_serving IF NOT EXISTS FOR (s:EmbeddingsServing) REQUIRE s.key IS UNIQUE",
		"CREATE CONSTRAINT embeddings_event_identity IF NOT EXISTS FOR (e:EmbeddingsEvent) REQUIRE e.identity IS UNIQUE",
		"CREATE CONSTRAINT embeddings_event_payload_key IF NOT EXISTS FOR (e:EmbeddingsEvent) REQUIRE e.payload_key IS UNIQUE",
		"CREATE CONSTRAINT embeddings_event_seq IF NOT EXISTS FOR (e:EmbeddingsEvent) REQUIRE (e.conversation, e.seq) IS UNIQUE",
		"CREATE CONSTRAINT embeddings_conversation_key IF NOT EXISTS FOR (c:EmbeddingsConversation) REQUIRE c.key IS UNIQUE",
		"CREATE INDEX embeddings_conversation_sweep IF NOT EXISTS FOR (c:EmbeddingsConversation) ON (c.sweep)",
		"CREATE CONSTRAINT passage_part IF NOT EXISTS FOR (p:Passage) REQUIRE (p.conversation, p.seq, p.part) IS UNIQUE",
		"CREATE CONSTRAINT cached_embedding_key IF NOT EXISTS FOR (e:CachedEmbedding) REQUIRE e.key IS UNIQUE",

		// Vectors are on passages and have the model's number of dimensions: an index
		// without vector.dimensions keeps different numbers apart. The index with this name
		// was on messages, where nothing wrote vectors.
		dropMessageVectors,
		"CREATE VECTOR INDEX message_embedding_index IF NOT EXISTS FOR (p:Passage) ON (p.embedding) OPTIONS {indexConfig: {`vector.similarity_function`: 'cosine'}}",
	}},
	{"conversations about a piece of code", []string{
		// about is a tenant with the last component of a path; symbol is a tenant with a name.
		"CREATE INDEX references_code_about IF NOT EXISTS FOR ()-[r:REFERENCES_CODE]-() ON (r.about, r.seq)",
		"CREATE INDEX references_code_symbol IF NOT EXISTS FOR ()-[r:REFERENCES_CODE]-() ON (r.symbol, r.seq)",
		"CREATE INDEX references_code_about_in IF NOT EXISTS FOR ()-[r:REFERENCES_CODE]-() ON (r.conversation, r.about, r.seq)",
		"CREATE INDEX references_code_symbol_in IF NOT EXISTS FOR ()-[r:REFERENCES_CODE]-() ON (r.conversation, r.symbol, r.seq)",
		"CREATE INDEX file_access_about IF NOT EXISTS FOR (a:FileAccess) ON (a.about, a.current)",
	}},
	{"constraints and indexes of the projection projects", []string{
		"CREATE CONSTRAINT projects_checkpoint IF NOT EXISTS FOR (k:ProjectsCheckpoint) REQUIRE k.key IS UNIQUE",
		"CREATE CONSTRAINT projects_settled IF NOT EXISTS FOR (s:ProjectsSettled) REQUIRE s.key IS UNIQUE",
		"CREATE CONSTRAINT projects_failed_event IF NOT EXISTS FOR (f:ProjectsFailedEvent) REQUIRE (f.generation, f.seq) IS UNIQUE",
		"CREATE INDEX projects_failed_event_conversation IF NOT EXISTS FOR (f:ProjectsFailedEvent) ON (f.conversation)",
		"CREATE CONSTRAINT projects_serving IF NOT EXISTS FOR (s:ProjectsServing) REQUIRE s.key IS UNIQUE",
		"CREATE CONSTRAINT projects_event_identity IF NOT EXISTS FOR (e:ProjectsEvent) REQUIRE e.identity IS UNIQUE",
		"CREATE CONSTRAINT projects_event_payload_key IF NOT EXISTS FOR (e:ProjectsEvent) REQUIRE e.payload_key IS UNIQUE",
		"CREATE CONSTRAINT projects_event_seq IF NOT EXISTS FOR (e:ProjectsEvent) REQUIRE (e.conversation, e.seq) IS UNIQUE",
		"CREATE CONSTRAINT projects_conversation_key IF NOT EXISTS FOR (c:ProjectsConversation) REQUIRE c.key IS UNIQUE",
		"CREATE INDEX projects_conversation_sweep IF NOT EXISTS FOR (c:ProjectsConversation) ON (c.sweep)",

		// based is the sequence of a step with a whole digest, and is missing from others.
		"CREATE CONSTRAINT project_step_seq IF NOT EXISTS FOR (n:ProjectStep) REQUIRE (n.conversation, n.seq) IS UNIQUE",
		"CREATE INDEX project_step_based IF NOT EXISTS FOR (n:ProjectStep) ON (n.conversation, n.based)",
		"CREATE INDEX project_member_conversation IF NOT EXISTS FOR (m:ProjectMember) ON (m.conversation, m.seq)",
		"CREATE INDEX project_member_project IF NOT EXISTS FOR (m:ProjectMember) ON (m.project, m.seq)",
		"CREATE CONSTRAINT project_name_key IF NOT EXISTS FOR (n:ProjectName) REQUIRE n.key IS UNIQUE",
		"CREATE INDEX project_name_listed IF NOT EXISTS FOR (n:ProjectName) ON (n.listed, n.name)",
	}},
	{"constraints and indexes of the projection insight", []string{
		"CREATE CONSTRAINT insight_checkpoint IF NOT EXISTS FOR (k:InsightCheckpoint) REQUIRE k.key IS UNIQUE",
		"CREATE CONSTRAINT insight_settled IF NOT EXISTS FOR (s:InsightSettled) REQUIRE s.key IS UNIQUE",
		"CREATE CONSTRAINT insight_failed_event IF NOT EXISTS FOR (f:InsightFailedEvent) REQUIRE (f.generation, f.seq) IS UNIQUE",
		"CREATE INDEX insight_failed_event_conversation IF NOT EXISTS FOR (f:InsightFailedEvent) ON (f.conversation)",
		"CREATE CONSTRAINT insight_serving IF NOT EXISTS FOR (s:InsightServing) REQUIRE s.key IS UNIQUE",
		"CREATE CONSTRAINT insight_event_identity IF NOT EXISTS FOR (e:InsightEvent) REQUIRE e.identity IS UNIQUE",
		"CREATE CONSTRAINT insight_event_payload_key IF NOT EXISTS FOR (e:InsightEvent) REQUIRE e.payload_key IS UNIQUE",
		"CREATE CONSTRAINT insight_event_seq IF NOT EXISTS FOR (e:InsightEvent) REQUIRE (e.conversation, e.seq) IS UNIQUE",
		"CREATE CONSTRAINT insight_conversation_key IF NOT EXISTS FOR (c:InsightConversation) REQUIRE c.key IS UNIQUE",
		"CREATE INDEX insight_conversation_sweep IF NOT EXISTS FOR (c:InsightConversation) ON (c.sweep)",

		// listed is a tenant, and is missing from days of deleted conversations.
		"CREATE CONSTRAINT insight_day_key IF NOT EXISTS FOR (d:InsightDay) REQUIRE d.key IS UNIQUE",
		"CREATE INDEX insight_day_conversation IF NOT EXISTS FOR (d:InsightDay) ON (d.conversation, d.day)",
		"CREATE INDEX insight_day_listed IF NOT EXISTS FOR (d:InsightDay) ON (d.listed, d.day)",
	}},
	{"constraints and indexes of the projection code", []string{
		"CREATE CONSTRAINT code_checkpoint IF NOT EXISTS FOR (k:CodeCheckpoint) REQUIRE k.key IS UNIQUE",
		"CREATE CONSTRAINT code_settled IF NOT EXISTS FOR (s:CodeSettled) REQUIRE s.key IS UNIQUE",
		"CREATE CONSTRAINT code_failed_event IF NOT EXISTS FOR (f:CodeFailedEvent) REQUIRE (f.generation, f.seq) IS UNIQUE",
		"CREATE INDEX code_failed_event_conversation IF NOT EXISTS FOR (f:CodeFailedEvent) ON (f.conversation)",
		"CREATE CONSTRAINT code_serving IF NOT EXISTS FOR (s:CodeServing) REQUIRE s.key IS UNIQUE",
		"CREATE CONSTRAINT code_event_identity IF NOT EXISTS FOR (e:CodeEvent) REQUIRE e.identity IS UNIQUE",
		"CREATE CONSTRAINT code_event_payload_key IF NOT EXISTS FOR (e:CodeEvent) REQUIRE e.payload_key IS UNIQUE",
		"CREATE CONSTRAINT code_event_seq IF NOT EXISTS FOR (e:CodeEvent) REQUIRE (e.conversation, e.seq) IS UNIQUE",
		"CREATE CONSTRAINT code_conversation_key IF NOT EXISTS FOR (c:CodeConversation) REQUIRE c.key IS UNIQUE",
		"CREATE INDEX code_conversation_sweep IF NOT EXISTS FOR (c:CodeConversation) ON (c.sweep)",

		// listed is the tenant, and is missing from deleted indexes. Scopes are also of the index scope_embedding_content_vector.
		"CREATE INDEX code_conversation_listed IF NOT EXISTS FOR (c:CodeConversation) ON (c.listed)",
		"CREATE CONSTRAINT code_version_seq IF NOT EXISTS FOR (n:CodeVersion) REQUIRE (n.conversation, n.seq) IS UNIQUE",
		"CREATE CONSTRAINT code_scan_seq IF NOT EXISTS FOR (n:CodeScan) REQUIRE (n.conversation, n.seq) IS UNIQUE",
		"CREATE CONSTRAINT code_scope_part IF NOT EXISTS FOR (n:CodeScope) REQUIRE (n.conversation, n.seq, n.part) IS UNIQUE",
	}},
	{"the newest deletion of the projection projects", []string{
		"CREATE INDEX projects_conversation_deletion IF NOT EXISTS FOR (c:ProjectsConversation) ON (c.generation, c.tenant, c.deleted_seq)",
	}},
}
