-- Cursor 0.50, before it had a table of the chats, and its chats of 2024
CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
INSERT INTO cursorDiskKV VALUES ('composerData:c0a50000-0000-4000-8000-000000000006', '{"_v": 3, "composerId": "c0a50000-0000-4000-8000-000000000006", "name": "Total", "createdAt": 1767225601000, "lastUpdatedAt": 1767225609000, "status": "completed", "conversation": [{}, {}, {}], "fullConversationHeadersOnly": [{"bubbleId": "b1", "type": 1}, {"bubbleId": "b2", "type": 2}]}');
INSERT INTO cursorDiskKV VALUES ('bubbleId:c0a50000-0000-4000-8000-000000000006:b1', '{"type": 1, "bubbleId": "b1", "text": "Why is the total 0?", "workspaceUris": ["file:///c%3A/shop"]}');
INSERT INTO cursorDiskKV VALUES ('bubbleId:c0a50000-0000-4000-8000-000000000006:b2', '{"type": 2, "bubbleId": "b2", "text": "It starts at zero.", "createdAt": 1767225609000}');
INSERT INTO cursorDiskKV VALUES ('composerData:c0a50000-0000-4000-8000-000000000005', '{"composerId": "c0a50000-0000-4000-8000-000000000005", "createdAt": 1767225600000, "status": "aborted", "conversation": [{"type": 1, "bubbleId": "b1", "text": "Hello"}, {"type": 2, "bubbleId": "b2", "text": "Hello!", "thinking": "Greet."}, "torn", null]}');
INSERT INTO cursorDiskKV VALUES ('composerData:c0a50000-0000-4000-8000-000000000007', '{torn');
