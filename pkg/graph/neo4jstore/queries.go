package neo4jstore

import "strings"

// Query is an example question and its Cypher. The parameter $listed is
// "<generation>/<tenant>": "1/default" until the graph is rebuilt. $vector is the vector that the
// model of the projection "embeddings" computes for a text.
type Query struct{ Question, Cypher string }

// Queries returns examples for people who know Cypher. A test runs them.
func Queries() []Query {
	return []Query{
		{"Which conversations read or changed a file?", `
MATCH (f:File {path: $path})<-[:OF_FILE]-(a:FileAccess)
WHERE a.revoked IS NULL AND a.conversation STARTS WITH $listed + '/'
WITH a.conversation AS key, collect(DISTINCT a.kind) AS kinds, count(*) AS accesses, max(a.seq) AS last
MATCH (c:Conversation {key: key})
RETURN c.id, c.title, kinds, accesses ORDER BY last DESC`},
		{"Which conversations are about a piece of code?", `
MATCH (s:Scope {file: $file})<-[:REFERENCES_CODE]-(m:Message)
WHERE m.conversation STARTS WITH $listed + '/'
MATCH (c:Conversation {key: m.conversation})
RETURN c.id, c.title, s.name, s.start_line, s.end_line, count(m) AS messages, max(m.seq) AS last ORDER BY last DESC`},
		{"Which tools fail most?", `
MATCH (c:Conversation) WHERE c.listed = $listed AND c.last_seq > 0
MATCH (t:ToolCall) WHERE t.conversation = c.key AND t.seq > 0
WITH t.tool_name AS tool, count(*) AS calls, count(CASE WHEN t.success = false THEN 1 END) AS failed
WHERE failed > 0
RETURN tool, calls, failed, round(100.0 * failed / calls, 1) AS percent ORDER BY failed DESC, tool`},
		{"How long do tools take?", `
MATCH (c:Conversation) WHERE c.listed = $listed AND c.last_seq > 0
MATCH (t:ToolCall) WHERE t.conversation = c.key AND t.seq > 0 AND t.duration_ms IS NOT NULL
RETURN t.tool_name AS tool, count(*) AS calls, percentileDisc(t.duration_ms, 0.5) AS p50_ms, percentileDisc(t.duration_ms, 0.99) AS p99_ms
ORDER BY p99_ms DESC, tool`},
		{"Which files are changed together in one turn?", `
MATCH (c:FilesConversation) WHERE c.key STARTS WITH $listed + '/'
MATCH (a:FileAccess) WHERE a.conversation = c.key AND a.at > 0 AND a.kind = 'write' AND a.revoked IS NULL
WITH c.key AS conversation, a.turn AS turn, collect(DISTINCT a.path) AS paths
UNWIND paths AS one UNWIND paths AS other
WITH one, other WHERE one < other
RETURN one, other, count(*) AS turns ORDER BY turns DESC, one, other LIMIT 20`},
		{"What happened in a turn?", `
MATCH (c:Conversation {key: $listed + '/' + $id})-[:HAS_MESSAGE]->(m:Message) WHERE m.turn = $turn
OPTIONAL MATCH (m)-[:HAS_TOOL_CALL]->(t:ToolCall)
OPTIONAL MATCH (t)-[:HAS_RESULT]->(r:ToolResult)
RETURN m.seq, m.role, left(m.content, 80) AS said, t.tool_name AS tool, left(t.arguments, 80) AS arguments, r.success AS success, left(r.result, 80) AS result
ORDER BY m.seq, t.seq`},
		{"Which calls never got a result?", `
MATCH (c:Conversation) WHERE c.listed = $listed AND c.last_seq > 0
MATCH (t:ToolCall) WHERE t.conversation = c.key AND t.seq > 0 AND NOT EXISTS { (t)-[:HAS_RESULT]->() }
RETURN c.id, t.turn, t.tool_name, left(t.arguments, 80) AS arguments ORDER BY t.seq DESC LIMIT 20`},
		{"Which failed calls were retried successfully in the same turn?", `
MATCH (c:Conversation) WHERE c.listed = $listed AND c.last_seq > 0
MATCH (failed:ToolCall) WHERE failed.conversation = c.key AND failed.seq > 0 AND failed.success = false
MATCH (again:ToolCall) WHERE again.conversation = c.key AND again.seq > failed.seq
  AND again.turn = failed.turn AND again.tool_name = failed.tool_name AND again.success = true
WITH failed, min(again.seq) AS fixed
RETURN failed.tool_name AS tool, count(*) AS fixed, round(avg(fixed - failed.seq), 1) AS events_later ORDER BY fixed DESC, tool`},
		{"Which tools' results fill the context?", `
MATCH (c:Conversation) WHERE c.listed = $listed AND c.last_seq > 0
MATCH (t:ToolCall) WHERE t.conversation = c.key AND t.seq > 0
MATCH (t)-[:HAS_RESULT]->(r:ToolResult)
RETURN t.tool_name AS tool, count(*) AS results, sum(r.result_chars) AS chars, max(r.result_chars) AS largest ORDER BY chars DESC, tool LIMIT 20`},
		{"Which conversations branched, and where?", `
MATCH (parent:Conversation)-[:HAS_BRANCH]->(branch:Conversation) WHERE parent.listed = $listed
OPTIONAL MATCH (at:Message) WHERE at.conversation = parent.key AND at.id = branch.branched_at
RETURN parent.id, branch.id, at.turn AS turn, left(at.content, 80) AS said ORDER BY branch.first_seq`},
		{"What is the story of a conversation so far?", `
MATCH (s:Summary) WHERE s.conversation = $listed + '/' + $id AND s.level > 0 AND s.seq > 0
  AND NOT EXISTS { MATCH (p:Summary) WHERE p.conversation = s.conversation AND p.level = s.level + 1 AND p.last_seq >= s.last_seq AND p.seq > 0 }
  AND NOT EXISTS { MATCH (r:Summary) WHERE r.conversation = s.conversation AND r.level = s.level AND r.last_seq = s.last_seq AND r.seq > s.seq }
RETURN s.level, s.first_turn, s.last_turn, left(s.said, 80) AS said ORDER BY s.first_seq`},
		{"Which messages are closest in meaning to a text?", `
CALL db.index.vector.queryNodes('message_embedding_index', 20, $vector) YIELD node AS p, score
MATCH (c:Conversation {key: $listed + '/' + p.conversation_id}) WHERE c.tenant = p.tenant
MATCH (m:Message {conversation: c.key, seq: p.seq})
RETURN c.id, m.role, left(m.content, 80) AS said, round(max(score), 2) AS score ORDER BY score DESC`},
		{"How did a conversation describe itself over time?", `
MATCH (c:Conversation {key: $listed + '/' + $id})-[:HAS_VERSION]->(v:Version)
RETURN v.seq, v.ended, v.title, v.tags, v.status, v.model ORDER BY v.seq`},
		{"How much happens per day?", `
MATCH (c:Conversation) WHERE c.listed = $listed AND c.last_seq > 0
MATCH (m:Message) WHERE m.conversation = c.key AND m.seq > 0 AND m.time IS NOT NULL
RETURN left(m.time, 10) AS day, count(DISTINCT c) AS conversations, count(*) AS messages, sum(m.char_count) AS chars ORDER BY day DESC LIMIT 30`},
	}
}

// nameOf returns the name in a statement that creates an index or a constraint.
func nameOf(statement string) string {
	before, _, _ := strings.Cut(statement, " IF NOT EXISTS")
	return before[strings.LastIndexByte(before, ' ')+1:]
}
