-- Hermes Agent 0.19
CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, model TEXT, model_config TEXT, parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL, end_reason TEXT, cwd TEXT, title TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL,
  reasoning TEXT, reasoning_content TEXT, active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0, api_content TEXT);
INSERT INTO sessions VALUES
  ('20260101_000000_aaaaaa', 'cli', 'glm-5', '{"max_iterations": 90}', NULL, 1767225600.25, NULL, 'branched', '/home/lea/shop', 'Cart total'),
  ('20260101_000100_bbbbbb', 'subagent', 'glm-5', '{"_delegate_from": "20260101_000000_aaaaaa"}', '20260101_000000_aaaaaa', 1767225660, 1767225661, 'agent_close', NULL, NULL),
  ('20260101_000200_cccccc', 'cli', 'glm-5', '{"_branched_from": "20260101_000000_aaaaaa"}', '20260101_000000_aaaaaa', 1767225720, NULL, 'compression', NULL, NULL),
  ('20260101_000300_dddddd', 'cli', 'glm-5', '{}', '20260101_000200_cccccc', 1767225780, NULL, NULL, NULL, 'Cart total #2');
-- A compaction archived the rows 1 to 7 and wrote those from 8 to 14, of which the last is what the user had just asked.
INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, timestamp, reasoning, active, compacted, api_content) VALUES
  ('20260101_000000_aaaaaa', 'user', 'Why is the total 0?', NULL, NULL, 1767225601.5, NULL, 0, 1, 'Why is the total 0?' || char(10) || char(10) || 'what a hook has shown'),
  ('20260101_000000_aaaaaa', 'assistant', 'I read it.', NULL, '[{"id": "call_1", "call_id": "call_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"cat cart.go\"}"}}, {"id": "call_2", "type": "function", "function": {"name": "read_file", "arguments": "{\"path\": \"none.go\"}"}}]', 1767225602, 'Look.', 0, 1, NULL),
  ('20260101_000000_aaaaaa', 'tool', '{"output": "total := 0", "exit_code": 0, "error": null}', 'call_1', NULL, 1767225603, NULL, 0, 1, NULL),
  ('20260101_000000_aaaaaa', 'tool', '{"error": "File not found: none.go", "similar_files": []}', 'call_2', NULL, 1767225604, NULL, 0, 1, NULL),
  ('20260101_000000_aaaaaa', 'assistant', 'It starts at zero.', NULL, NULL, 1767225605, NULL, 0, 1, NULL),
  ('20260101_000000_aaaaaa', 'user', char(0) || 'json:[{"type": "text", "text": "And this?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]', NULL, NULL, 1767225606, NULL, 0, 1, NULL),
  ('20260101_000000_aaaaaa', 'assistant', 'A cart.', NULL, NULL, 1767225607, NULL, 0, 1, NULL),
  ('20260101_000000_aaaaaa', 'user', 'Why is the total 0?', NULL, NULL, 1767225608, NULL, 1, 0, NULL),
  ('20260101_000000_aaaaaa', 'assistant', 'I read it.', NULL, '[{"id": "call_1", "function": {"name": "terminal", "arguments": "{}"}}, {"id": "call_2", "function": {"name": "read_file", "arguments": "{}"}}]', 1767225608.000001, NULL, 1, 0, NULL),
  ('20260101_000000_aaaaaa', 'tool', '[shortened]', 'call_1', NULL, 1767225608.000002, NULL, 1, 0, NULL),
  ('20260101_000000_aaaaaa', 'tool', '[shortened]', 'call_2', NULL, 1767225608.000003, NULL, 1, 0, NULL),
  ('20260101_000000_aaaaaa', 'assistant', '[CONTEXT COMPACTION — REFERENCE ONLY] They looked for the total.', NULL, NULL, 1767225608.000004, NULL, 1, 0, NULL),
  ('20260101_000000_aaaaaa', 'user', '[Your active task list was preserved across context compression]' || char(10) || '- [>] 1. total (in_progress)', NULL, NULL, 1767225608.000005, NULL, 1, 0, NULL),
  ('20260101_000000_aaaaaa', 'user', 'Go on', NULL, NULL, 1767225608.000006, NULL, 1, 0, NULL),
  -- The model counts its calls from 1 in each answer, and repeats itself.
  ('20260101_000000_aaaaaa', 'assistant', 'I read it.', NULL, '[{"id": "call_1", "function": {"name": "terminal", "arguments": "{\"command\": \"go test\"}"}}]', 1767225609, NULL, 1, 0, NULL),
  ('20260101_000000_aaaaaa', 'tool', '{"output": "FAIL", "exit_code": 1, "error": "timed out"}', 'call_1', NULL, 1767225610, NULL, 1, 0, NULL),
  ('20260101_000000_aaaaaa', 'assistant', 'A cart.', NULL, NULL, 1767225611, NULL, 1, 0, NULL),
  ('20260101_000000_aaaaaa', 'tool', 'nobody asked', 'call_9', NULL, 1767225612, NULL, 1, 0, NULL),
  ('20260101_000000_aaaaaa', 'assistant', '', NULL, 'no JSON', 1767225613, NULL, 1, 0, NULL),
  ('20260101_000000_aaaaaa', 'hologram', 'x', NULL, NULL, 1767225614, NULL, 1, 0, NULL),
  ('20260101_000100_bbbbbb', 'user', 'Count the carts', NULL, NULL, 1767225660.5, NULL, 1, 0, NULL),
  ('20260101_000100_bbbbbb', 'assistant', 'Two.', NULL, NULL, 1767225661, NULL, 1, 0, NULL),
  -- A branch begins with a copy of what the model saw, with new times.
  ('20260101_000200_cccccc', 'assistant', '[CONTEXT COMPACTION — REFERENCE ONLY] They looked for the total.', NULL, NULL, 1767225720.1, NULL, 1, 0, NULL),
  ('20260101_000200_cccccc', 'user', 'Go on', NULL, NULL, 1767225720.2, NULL, 1, 0, NULL),
  ('20260101_000200_cccccc', 'assistant', 'A cart.', NULL, NULL, 1767225720.3, NULL, 1, 0, NULL),
  ('20260101_000200_cccccc', 'user', 'Try another way', NULL, NULL, 1767225721, NULL, 1, 0, NULL),
  ('20260101_000200_cccccc', 'assistant', 'Done.', NULL, NULL, 1767225722, NULL, 1, 0, NULL),
  -- Older versions continued in a new session after a compaction.
  ('20260101_000300_dddddd', 'user', '[CONTEXT SUMMARY]: They tried.', NULL, NULL, 1767225780.1, NULL, 1, 0, NULL),
  ('20260101_000300_dddddd', 'user', 'Try another way', NULL, NULL, 1767225780.2, NULL, 1, 0, NULL),
  ('20260101_000300_dddddd', 'assistant', 'Done.', NULL, NULL, 1767225780.3, NULL, 1, 0, NULL),
  ('20260101_000300_dddddd', 'user', 'Thanks', NULL, NULL, 1767225781, NULL, 1, 0, NULL),
  ('20260101_000300_dddddd', 'assistant', 'Done.', NULL, NULL, 1767225782, NULL, 1, 0, NULL);
