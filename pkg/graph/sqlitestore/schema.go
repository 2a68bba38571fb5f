package sqlitestore

// engineSchema holds the tables that every projection's file has. Conversations are numbered;
// identity holds the claimed keys (see projection.Claim).
const engineSchema = `
CREATE TABLE checkpoint (
  partition INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, seq INTEGER NOT NULL, event BLOB NOT NULL,
  fingerprint TEXT NOT NULL, applied INTEGER NOT NULL, duplicates INTEGER NOT NULL, halted TEXT NOT NULL,
  repairs INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE failed (
  seq INTEGER PRIMARY KEY, tenant TEXT NOT NULL, conversation TEXT NOT NULL,
  event_id TEXT NOT NULL, type TEXT NOT NULL, class TEXT NOT NULL, reason TEXT NOT NULL
);
CREATE INDEX failed_by_conversation ON failed (tenant, conversation);
CREATE TABLE identity (
  c INTEGER NOT NULL, key BLOB NOT NULL, seq INTEGER NOT NULL, content BLOB NOT NULL,
  PRIMARY KEY (c, key)
) WITHOUT ROWID;
`

// engineIndexes are like Codec.Indexes.
const engineIndexes = `
CREATE INDEX IF NOT EXISTS failed_by_class ON failed (class);
`

// graphSchema is the read model "graph". The rows of summaries never change: a read finds in
// summary_by_range which summary consolidated or superseded another. base and symbol are lookup
// keys of references, see graph.CodeBase and graph.CodeName.
const graphSchema = `
CREATE TABLE conversation (
  c INTEGER PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL,
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
  message_count INTEGER NOT NULL, turn_count INTEGER NOT NULL, step_count INTEGER NOT NULL,
  tool_call_count INTEGER NOT NULL, tool_result_count INTEGER NOT NULL,
  summary_count INTEGER NOT NULL, condensed_count INTEGER NOT NULL, total_chars INTEGER NOT NULL,
  first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL, deleted_seq INTEGER NOT NULL, ledger TEXT NOT NULL,
  UNIQUE (tenant, id)
);
CREATE INDEX conversation_by_activity ON conversation (tenant, last_seq) WHERE deleted_seq = 0;
CREATE INDEX conversation_by_creation ON conversation (tenant, first_seq) WHERE deleted_seq = 0;
CREATE TABLE version (
  c INTEGER NOT NULL, seq INTEGER NOT NULL, ended INTEGER NOT NULL, time TEXT NOT NULL,
  title TEXT NOT NULL, tags TEXT NOT NULL, status TEXT NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL,
  cwd TEXT NOT NULL, project TEXT NOT NULL, profile TEXT NOT NULL, max_context_chars INTEGER NOT NULL,
  branched_from TEXT NOT NULL,
  PRIMARY KEY (c, seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX version_now ON version (c) WHERE ended = 0;
CREATE TABLE message (
  seq INTEGER PRIMARY KEY, c INTEGER NOT NULL, n INTEGER NOT NULL, turn INTEGER NOT NULL, step INTEGER NOT NULL,
  event_id TEXT NOT NULL, source TEXT NOT NULL, time TEXT NOT NULL,
  message_id TEXT NOT NULL, role TEXT NOT NULL,
  content TEXT NOT NULL, content_bytes INTEGER NOT NULL, content_chars INTEGER NOT NULL, content_hash BLOB NOT NULL,
  reasoning TEXT NOT NULL, reasoning_bytes INTEGER NOT NULL, reasoning_chars INTEGER NOT NULL, reasoning_hash BLOB NOT NULL,
  speaker TEXT NOT NULL, session TEXT NOT NULL, model TEXT NOT NULL, usage TEXT NOT NULL, via TEXT NOT NULL,
  cum_chars INTEGER NOT NULL, reference_count INTEGER NOT NULL
);
CREATE INDEX message_by_conversation ON message (c, seq);
CREATE INDEX message_by_role ON message (c, role, seq);
CREATE INDEX message_by_turn ON message (c, turn) WHERE role = 'user';
CREATE TABLE bag (
  seq INTEGER PRIMARY KEY, c INTEGER NOT NULL, n INTEGER NOT NULL, terms BLOB NOT NULL, vectors BLOB NOT NULL
);
CREATE INDEX bag_by_conversation ON bag (c, seq);
` + wordsSchema + `
CREATE TABLE reference (
  seq INTEGER NOT NULL, i INTEGER NOT NULL, c INTEGER NOT NULL,
  file TEXT NOT NULL, start_line INTEGER NOT NULL, end_line INTEGER NOT NULL, name TEXT NOT NULL,
  tenant TEXT NOT NULL, base TEXT NOT NULL, symbol TEXT NOT NULL,
  PRIMARY KEY (seq, i)
) WITHOUT ROWID;
CREATE INDEX reference_by_file ON reference (tenant, base, seq);
CREATE INDEX reference_by_symbol ON reference (tenant, symbol, seq) WHERE symbol <> '';
CREATE INDEX reference_of_file ON reference (c, base, seq);
CREATE INDEX reference_of_symbol ON reference (c, symbol, seq) WHERE symbol <> '';
CREATE TABLE tool_call (
  seq INTEGER PRIMARY KEY, c INTEGER NOT NULL, n INTEGER NOT NULL, turn INTEGER NOT NULL, step INTEGER NOT NULL,
  event_id TEXT NOT NULL, source TEXT NOT NULL, time TEXT NOT NULL,
  tool_call_id TEXT NOT NULL, message_id TEXT NOT NULL, tool_name TEXT NOT NULL,
  arguments TEXT NOT NULL, arguments_bytes INTEGER NOT NULL, arguments_chars INTEGER NOT NULL, arguments_hash BLOB NOT NULL,
  iteration INTEGER NOT NULL
);
CREATE INDEX tool_call_by_conversation ON tool_call (c, seq);
CREATE TABLE tool_result (
  seq INTEGER PRIMARY KEY, c INTEGER NOT NULL, n INTEGER NOT NULL, turn INTEGER NOT NULL, step INTEGER NOT NULL,
  event_id TEXT NOT NULL, source TEXT NOT NULL, time TEXT NOT NULL,
  tool_call_id TEXT NOT NULL, success INTEGER,
  result TEXT NOT NULL, result_bytes INTEGER NOT NULL, result_chars INTEGER NOT NULL, result_hash BLOB NOT NULL,
  error TEXT NOT NULL, duration_ms REAL
);
CREATE INDEX tool_result_by_conversation ON tool_result (c, seq);
CREATE TABLE summary (
  seq INTEGER PRIMARY KEY, c INTEGER NOT NULL, n INTEGER NOT NULL, turn INTEGER NOT NULL, step INTEGER NOT NULL,
  event_id TEXT NOT NULL, source TEXT NOT NULL, time TEXT NOT NULL,
  summary_id TEXT NOT NULL, level INTEGER NOT NULL, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL,
  first_turn INTEGER NOT NULL, last_turn INTEGER NOT NULL, children TEXT NOT NULL, supersedes TEXT NOT NULL,
  conversation TEXT NOT NULL, actions TEXT NOT NULL, findings TEXT NOT NULL, topics TEXT NOT NULL, files TEXT NOT NULL, tools TEXT NOT NULL,
  turn_count INTEGER NOT NULL, method TEXT NOT NULL, fallback_reason TEXT NOT NULL, model TEXT NOT NULL, prompt_hash TEXT NOT NULL,
  chars_in INTEGER NOT NULL, chars_out INTEGER NOT NULL
);
CREATE INDEX summary_by_conversation ON summary (c, seq);
CREATE INDEX summary_by_level ON summary (c, level, seq);
CREATE INDEX summary_by_range ON summary (c, level, last_seq, seq);
CREATE TABLE condensed (
  seq INTEGER PRIMARY KEY, c INTEGER NOT NULL, n INTEGER NOT NULL, turn INTEGER NOT NULL, step INTEGER NOT NULL,
  event_id TEXT NOT NULL, source TEXT NOT NULL, time TEXT NOT NULL,
  tool_call_id TEXT NOT NULL,
  content TEXT NOT NULL, content_bytes INTEGER NOT NULL, content_chars INTEGER NOT NULL, content_hash BLOB NOT NULL,
  model TEXT NOT NULL, prompt_hash TEXT NOT NULL, chars_in INTEGER NOT NULL, chars_out INTEGER NOT NULL
);
CREATE INDEX condensed_by_conversation ON condensed (c, seq);
CREATE INDEX condensed_by_call ON condensed (c, tool_call_id, seq);
`

// wordsSchema is the index for searches over all conversations: words has the terms of messages
// under their sequences, title_words those of titles under the numbers of their conversations.
// Terms are made in Go, each prefixed with the [tag] of its tenant, so that each tenant has its own
// term lists. They are stored as [token] returns them, so the tokenizer only splits at spaces. The
// index stores neither texts nor positions, because results are ranked by their bags.
const wordsSchema = `
CREATE VIRTUAL TABLE words USING fts5(text, ` + wordsOptions + `);
CREATE VIRTUAL TABLE title_words USING fts5(text, ` + wordsOptions + `);
`

const wordsOptions = `content='', contentless_delete=1, detail=none, tokenize="ascii tokenchars '` + tokenMarks + `'"`

// tokenMarks are the ASCII characters besides letters and digits at which the tokenizer does not split.
const tokenMarks = `./\-_:`

// filesSchema is the read model "files". tracked_call and early_result hold calls and results that
// wait for each other. Among the accesses of a path and kind, the newest one not revoked is
// current, and only its count is kept up to date; revoked is the sequence of the result that
// reported the call's failure, else 0. Indexes leave out rows that reads of the present never need,
// so that repeated failures on one file cost nothing. base is the lookup key of a file in all
// conversations, see graph.CodeBase.
const filesSchema = `
CREATE TABLE conversation (
  c INTEGER PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL,
  cwd TEXT NOT NULL, turn_count INTEGER NOT NULL, last_seq INTEGER NOT NULL, deleted_seq INTEGER NOT NULL,
  UNIQUE (tenant, id)
);
CREATE TABLE tracked_call (
  c INTEGER NOT NULL, tool_call_id TEXT NOT NULL, seq INTEGER NOT NULL, tool TEXT NOT NULL,
  arguments TEXT NOT NULL, cwd TEXT NOT NULL, turn INTEGER NOT NULL,
  PRIMARY KEY (c, tool_call_id)
) WITHOUT ROWID;
CREATE TABLE early_result (
  c INTEGER NOT NULL, tool_call_id TEXT NOT NULL, seq INTEGER NOT NULL, failed INTEGER NOT NULL,
  result TEXT NOT NULL, files TEXT NOT NULL,
  PRIMARY KEY (c, tool_call_id)
) WITHOUT ROWID;
CREATE TABLE file_access (
  c INTEGER NOT NULL, seq INTEGER NOT NULL, rank INTEGER NOT NULL,
  path TEXT NOT NULL, kind TEXT NOT NULL, tool TEXT NOT NULL, turn INTEGER NOT NULL,
  count INTEGER NOT NULL, current INTEGER NOT NULL, revoked INTEGER NOT NULL,
  tenant TEXT NOT NULL, base TEXT NOT NULL,
  PRIMARY KEY (c, seq, rank)
) WITHOUT ROWID;
CREATE INDEX file_access_now ON file_access (c, seq, rank) WHERE current = 1;
CREATE INDEX file_access_by_file ON file_access (tenant, base, seq, rank) WHERE current = 1;
CREATE INDEX file_access_by_path ON file_access (c, path, kind, seq, rank) WHERE revoked = 0;
`

// summariesSchema is the read model "summaries". pending is [summary.Conversation.Pending];
// untitled is 1 for a conversation that waits for a title, which keeps the scan for waiting
// conversations short. Marks that level 1 covers are deleted.
const summariesSchema = `
CREATE TABLE conversation (
  c INTEGER PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL,
  first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL, deleted_seq INTEGER NOT NULL,
  ledger TEXT NOT NULL, turn INTEGER NOT NULL, chars INTEGER NOT NULL, covered_turn INTEGER NOT NULL, covered_chars INTEGER NOT NULL,
  max_context_chars INTEGER NOT NULL, profile TEXT NOT NULL, titled INTEGER NOT NULL, first_user INTEGER NOT NULL, answered INTEGER NOT NULL,
  pending INTEGER NOT NULL, uncovered_turns INTEGER NOT NULL, untitled INTEGER NOT NULL,
  UNIQUE (tenant, id)
);
CREATE TABLE mark (
  c INTEGER NOT NULL, seq INTEGER NOT NULL, turn INTEGER NOT NULL, chars INTEGER NOT NULL,
  PRIMARY KEY (c, seq)
) WITHOUT ROWID;
CREATE TABLE summary (
  c INTEGER NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL, level INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
  first_turn INTEGER NOT NULL, last_turn INTEGER NOT NULL, chars INTEGER NOT NULL, revised INTEGER NOT NULL,
  PRIMARY KEY (c, id)
) WITHOUT ROWID;
CREATE INDEX summary_by_range ON summary (c, level, last) WHERE revised = 0;
`

// embeddingsSchema is the read model "embeddings".
const embeddingsSchema = `
CREATE TABLE conversation (
  c INTEGER PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL, last_seq INTEGER NOT NULL, deleted_seq INTEGER NOT NULL,
  UNIQUE (tenant, id)
);
CREATE TABLE embedding (
  seq INTEGER PRIMARY KEY, c INTEGER NOT NULL, message_id TEXT NOT NULL, dimensions INTEGER NOT NULL, vectors BLOB NOT NULL
);
CREATE INDEX embedding_by_conversation ON embedding (c, seq);
`

// cacheVersion is the version of the embeddings cache, which is kept when the tables of the read models change.
const cacheVersion = 1

const cacheSchema = `
CREATE TABLE cached_embedding (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;
`
