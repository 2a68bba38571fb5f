-- Crush before messages were marked as summaries; times in seconds
CREATE TABLE sessions (id TEXT PRIMARY KEY, title TEXT NOT NULL, updated_at INTEGER NOT NULL, created_at INTEGER NOT NULL);
CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL, parts TEXT NOT NULL DEFAULT '[]', model TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, finished_at INTEGER);
INSERT INTO sessions VALUES ('s-old', '', 1767225605, 1767225600);
INSERT INTO messages VALUES ('o1', 's-old', 'user', '[{"type":"text","data":{"text":"hi"}}]', NULL, 1767225600, 1767225600, NULL), ('o2', 's-old', 'assistant', 'no JSON', NULL, 1767225601, 1767225601, 1767225601);
