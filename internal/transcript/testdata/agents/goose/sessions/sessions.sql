-- goose 1.46
CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', description TEXT NOT NULL DEFAULT '', working_dir TEXT NOT NULL, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT NOT NULL, role TEXT NOT NULL, content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL, timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP, metadata_json TEXT);
INSERT INTO sessions VALUES ('20260101_1', 'Cart total', '', '/home/lea/shop', '2026-01-01 00:00:00', '2026-01-01 00:00:05');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, metadata_json) VALUES
  ('msg_1', '20260101_1', 'user', '[{"type":"text","text":"Why is the total 0?"}]', 1767225601, '{"userVisible":true,"agentVisible":true}'),
  (NULL, '20260101_1', 'assistant', '[{"type":"thinking","thinking":"Look.","signature":"s"},{"type":"text","text":"I read it."},{"type":"toolRequest","id":"call_0","toolCall":{"status":"success","value":{"name":"developer__shell","arguments":{"command":"cat cart.go"}}}}]', 1767225602, NULL),
  ('msg_3', '20260101_1', 'user', '[{"type":"toolResponse","id":"call_0","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"total := 0"}],"isError":false}}}]', 1767225603, NULL),
  ('msg_4', '20260101_1', 'user', '[{"type":"text","text":"They read the cart."}]', 1767225604, '{"userVisible":false,"agentVisible":true}'),
  ('msg_5', '20260101_1', 'assistant', 'no JSON', 1767225605, NULL),
  ('msg_6', '20260101_1', 'assistant', '[{"type":"hologram"},{"type":"text","text":"It starts at zero."}]', 1767225606, NULL);
