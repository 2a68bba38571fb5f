-- the tables of version 2
CREATE TABLE session_v2 (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL);
CREATE TABLE session_message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, type TEXT NOT NULL, seq INTEGER NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);
INSERT INTO session_v2 VALUES ('ses_9', 'p', NULL, '/home/lea/shop', 'Cart total', 1767225600000, 1767225604000);
INSERT INTO session_message VALUES ('msg_1', 'ses_9', 'user', 1, 1767225600001, 1767225600001, '{"time":{"created":1767225600001},"text":"Why is the total 0?"}'),
  ('msg_2', 'ses_9', 'assistant', 2, 1767225601000, 1767225604000, '{"time":{"created":1767225601000,"completed":1767225604000},"model":{"id":"model-o"},"content":[{"type":"reasoning","id":"r1","text":"Look."},{"type":"text","text":"I read it."},{"type":"tool","id":"call_0","name":"read","state":{"status":"completed","input":{"filePath":"cart.go"},"content":[{"type":"text","text":"total := 0"}]}}]}'),
  ('msg_3', 'ses_9', 'oracle', 3, 1767225605000, 1767225605000, '{}');
