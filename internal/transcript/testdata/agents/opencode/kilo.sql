-- Kilo 7.3, which is made of opencode
CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT NOT NULL, title TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER NOT NULL, data TEXT NOT NULL);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, data TEXT NOT NULL);
INSERT INTO session VALUES ('ses_k', NULL, '/home/lea/shop', 'Cart total', 1767225600000, 1767225604000);
INSERT INTO message VALUES ('kmsg_1', 'ses_k', 1767225600001, '{"role":"user","time":{"created":"2026-01-01T00:00:00.001Z"}}'),
  ('kmsg_2', 'ses_k', 1767225601000, '{"role":"assistant","modelID":"model-o","time":{"created":1767225601000,"completed":1767225604000}}');
INSERT INTO part VALUES ('kprt_1', 'kmsg_1', '{"type":"text","text":"Why is the total 0?"}'), ('kprt_2', 'kmsg_2', '{"type":"text","text":"I read it."}');
