-- opencode 1.18
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, directory TEXT NOT NULL, title TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);
INSERT INTO session VALUES ('ses_1', 'p', NULL, '/home/lea/shop', 'Cart total', 1767225600000, 1767225604000),
  ('ses_2', 'p', 'ses_1', '/home/lea/shop', 'New session - 2026', 1767225610000, 1767225610000);
INSERT INTO message VALUES ('msg_1', 'ses_1', 1767225600001, 1767225600001, '{"role":"user","time":{"created":1767225600001}}'),
  ('msg_2', 'ses_1', 1767225601000, 1767225604000, '{"role":"assistant","modelID":"model-o","time":{"created":1767225601000,"completed":1767225604000},"tokens":{"input":1,"output":2}}'),
  ('msg_3', 'ses_1', 1767225604500, 1767225604500, '{"role":'),
  ('msg_4', 'ses_2', 1767225610000, 1767225610000, '{"role":"user","time":{"created":1767225610000}}'),
  ('msg_5', 'ses_2', 1767225611000, 1767225611000, '{"role":"assistant","modelID":"model-o","time":{"created":1767225611000}}');
INSERT INTO part VALUES ('prt_1', 'msg_1', 'ses_1', 1, 1, '{"type":"text","text":"Why is the total 0?"}'),
  ('prt_2', 'msg_2', 'ses_1', 2, 2, '{"type":"text","text":"I read it."}'),
  ('prt_3', 'msg_2', 'ses_1', 3, 3, '{"type":"tool","callID":"call_0","tool":"read","state":{"status":"completed","input":{"filePath":"cart.go"},"output":"total := 0","time":{"start":1767225602000,"end":1767225602250}}}'),
  ('prt_3a', 'msg_2', 'ses_1', 3, 3, '{"type":"tool","callID":"call_1","tool":"bash","state":{"status":"completed","input":{"command":"go test"},"output":"FAIL shop","metadata":{"output":"FAIL shop","exit":1},"time":{"start":1767225603000,"end":1767225603250}}}'),
  ('prt_3b', 'msg_2', 'ses_1', 3, 3, '{"type":"tool","callID":"call_2","tool":"bash","state":{"status":"completed","input":{"command":"go vet"},"output":"","metadata":{"exit":0},"time":{"start":1767225603300,"end":1767225603400}}}'),
  ('prt_4', 'msg_2', 'ses_1', 4, 4, 'no JSON'),
  ('prt_5', 'msg_4', 'ses_2', 5, 5, '{"type":"text","text":"Look at the tax."}'),
  ('prt_6', 'msg_5', 'ses_2', 6, 6, '{"type":"tool","callID":"call_0","tool":"bash","state":{"status":"running","input":{"command":"sleep 9"},"time":{"start":1767225611500}}}');
