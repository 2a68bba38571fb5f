package capture

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"mneme.dev/mneme/internal/mnemetest"
)

func TestADatabaseIsReadAsItIsWritten(t *testing.T) {
	for name, p := range map[string]pace{"the system tells": told, "folders are walked": walked} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			path := b.path("opencode.db")
			db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)&_pragma=wal_autocheckpoint(0)")
			require.NoError(t, err)
			defer func() { require.NoError(t, db.Close()) }()
			run := func(statement string, arguments ...any) {
				t.Helper()
				_, err := db.Exec(statement, arguments...)
				require.NoError(t, err)
			}
			say := func(session, id string) {
				now := time.Now().UnixMilli()
				run(`INSERT INTO message VALUES (?, ?, ?, ?, '{"role":"user"}')`, id, session, now, now)
				run(`INSERT INTO part VALUES (?, ?, '{"type":"text","text":"hi"}')`, "prt_"+id, id)
			}
			run(`CREATE TABLE session (id TEXT PRIMARY KEY, directory TEXT, time_created INTEGER, time_updated INTEGER)`)
			run(`CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT)`)
			run(`CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, data TEXT)`)
			run(`INSERT INTO session VALUES ('ses_1', '/', 1767225600000, 1767225600000)`)
			say("ses_1", "msg_1")

			marks := filepath.Join(t.TempDir(), "marks")
			follow := func() []Folder { return []Folder{{"opencode", b.root}} }
			r := b.follower(Config{Follow: follow, Marks: marks}, p)
			b.awaitEvents(2)
			say("ses_1", "msg_2")
			b.awaitEvents(3)
			require.EqualValues(t, 1, r.Status().Followed[0].Files, "not the log of the database")
			r.Close()

			say("ses_1", "msg_3")
			r = b.follower(Config{Follow: follow, Marks: marks}, p)
			b.awaitEvents(4)
			require.Zero(t, r.Status().Rings)
		})
	}
}

func TestADatabaseThatItsAgentHasClosedIsRead(t *testing.T) {
	b := setup(t)
	path := b.path("opencode.db")
	statements, err := os.ReadFile("../transcript/testdata/agents/opencode/opencode.sql")
	require.NoError(t, err)
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)")
	require.NoError(t, err)
	_, err = db.Exec(string(statements))
	require.NoError(t, err)
	require.NoError(t, db.Close())
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(path, old, old))
	require.NoFileExists(t, path+"-wal")

	r := b.follower(Config{Follow: func() []Folder { return []Folder{{"opencode", b.root}} }}, told)
	b.awaitEvents(12) // the last message and its call are unfinished
	await(t, r, done)
	require.Equal(t, 2, r.Status().RefusedLines, "what is no JSON")
	names, err := filepath.Glob(path + "*")
	require.NoError(t, err)
	require.Equal(t, []string{path}, names, "reading leaves nothing beside it")
}

func TestSessionsOfGeminiCLIAreReadAndNoOtherFiles(t *testing.T) {
	b := setup(t)
	session := `{"sessionId":"g","projectHash":"h","startTime":"2026-10-05T09:00:00Z"}` + "\n"
	prompt := func(id string) string {
		return `{"id":"` + id + `","timestamp":"2026-10-05T09:00:01Z","type":"user","content":"hi"}` + "\n"
	}
	path := b.path("shop/chats/session-2026-10-05T09-00-g.jsonl")
	add(t, path, session+prompt("m1")+prompt("m2"))
	add(t, b.path("shop/logs.json"), "[]")
	add(t, b.path("shop/other.jsonl"), "{}\n")
	r := b.follower(Config{Follow: func() []Folder { return []Folder{{"gemini-cli", b.root}} }}, told)
	b.awaitEvents(2)
	add(t, path, prompt("m3"))
	b.awaitEvents(3)
	require.EqualValues(t, 1, r.Status().Followed[0].Files)
	require.Zero(t, r.Status().RefusedLines)
}

func TestSubagentsOfQwenCodeAreRead(t *testing.T) {
	b := setup(t)
	line := func(uuid, agent string) string {
		return `{"uuid":"` + uuid + `","sessionId":"s","timestamp":"2026-10-05T09:00:01Z","type":"user","agentId":"` + agent + `","message":{"role":"user","parts":[{"text":"hi"}]}}` + "\n"
	}
	add(t, b.path("shop/chats/s.jsonl"), line("u1", ""))
	add(t, b.path("shop/subagents/s/agent-look-call_1.jsonl"), line("u2", "look-call_1"))
	add(t, b.path("shop/usage/tokens.jsonl"), "{}\n")
	r := b.follower(Config{Follow: func() []Folder { return []Folder{{"qwen-code", b.root}} }}, told)
	b.awaitEvents(4)
	require.EqualValues(t, 2, r.Status().Followed[0].Files)
	require.Zero(t, r.Status().RefusedLines)
}

func TestATaskThatIsWrittenAnewAsAWholeIsReadAsItGrows(t *testing.T) {
	b := setup(t)
	path := b.path("1767225600000/api_conversation_history.json")
	write := func(messages ...string) {
		t.Helper()
		next := path + ".new"
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(next, []byte("["+strings.Join(messages, ",")+"]"), 0o600))
		require.NoError(t, os.Rename(next, path))
	}
	message := func(role, text string) string {
		return `{"role":"` + role + `","content":[{"type":"text","text":"` + text + `"}]}`
	}
	one, two, three := message("user", "one"), message("assistant", "two"), message("user", "three")
	write(one)
	add(t, b.path("1767225600000/ui_messages.json"), "[]")
	r := b.follower(Config{Follow: func() []Folder { return []Folder{{"cline", b.root}} }, StillWritten: time.Millisecond}, told)
	b.awaitEvents(2) // the conversation and its first message
	write(one, two, three)
	b.awaitEvents(4)
	write(one, three) // the agent cut its history
	write(one, three, message("assistant", "four"))
	b.awaitEvents(5)
	await(t, r, done)
	require.EqualValues(t, 1, r.Status().Followed[0].Files)
	require.Zero(t, r.Status().RefusedLines)
}

func TestEventsOfOpenHandsAreReadInTheirOrder(t *testing.T) {
	b := setup(t)
	event := func(n int) {
		t.Helper()
		path := b.path(fmt.Sprintf("0123456789abcdef0123456789abcdef/events/event-%05d-e-%d.json", n, n))
		add(t, path, fmt.Sprintf(`{"id":"e-%d","kind":"MessageEvent","timestamp":"2026-10-05T09:00:00","source":"user","llm_message":{"role":"user","content":[{"type":"text","text":"message %d"}]}}`, n, n))
		old := time.Now().Add(time.Duration(n-100) * time.Hour) // so it is history
		require.NoError(t, os.Chtimes(path, old, old))
	}
	for n := range 5 {
		event(n)
	}
	r := b.follower(Config{Follow: func() []Folder { return []Folder{{"openhands", b.root}} }}, told)
	b.awaitEvents(6) // the conversation and its messages
	event(5)
	b.awaitEvents(7)
	for n, e := range b.held["t"][1:] {
		require.Contains(t, string(e.Data), fmt.Sprintf("message %d", n))
	}
	await(t, r, done)
	require.Zero(t, r.Status().RefusedLines)
}

func TestADatabaseOfKiloIsFollowedWithIdsOfItsOwn(t *testing.T) {
	b := setup(t)
	statements, err := os.ReadFile("../transcript/testdata/agents/opencode/opencode.sql")
	require.NoError(t, err)
	db, err := sql.Open("sqlite", "file:"+b.path("kilo.db"))
	require.NoError(t, err)
	_, err = db.Exec(string(statements))
	require.NoError(t, err)
	require.NoError(t, db.Close())
	b.follower(Config{Follow: func() []Folder { return []Folder{{"kilo", b.root}} }}, told)
	b.awaitEvents(12)
	for _, e := range b.held["t"] {
		require.Regexp(t, "^kilo:", e.Subject)
	}
}

func TestTasksAreLookedForInTheFolderOfEachEditor(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "USERPROFILE", "XDG_CONFIG_HOME", "AppData"} {
		t.Setenv(name, home)
	}
	settings, err := os.UserConfigDir()
	require.NoError(t, err)
	roo, err := Roots("roo")
	require.NoError(t, err)
	require.Len(t, roo, len(editors))
	require.Contains(t, roo, filepath.Join(settings, "VSCodium", "User", "globalStorage", "rooveterinaryinc.roo-cline", "tasks"))
	cline, err := Roots("cline")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(home, ".cline", "data", "sessions"), cline[0])
	require.Len(t, cline, 1+len(editors))
}

// An agent's very first hook calls before the agent has made its folder.
func TestADoorbellBeforeTheAgentHasMadeItsFolderIsNotRefused(t *testing.T) {
	b := setup(t)
	b.root = b.path("projects")
	r := b.receiver(Config{})
	path := b.path("shop/s.jsonl")
	require.NoError(t, r.Ring("claude-code", "s", path))
	require.Eventually(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		f := r.files[key{"claude-code", path}]
		return f != nil && f.missing
	}, mnemetest.Patience, time.Millisecond, "it was looked at")
	add(t, path, line("s", 0))
	b.awaitEvents(2)
	require.Zero(t, r.Status().Refused)
	require.Empty(t, r.Status().LastError)
}

// Hermes Agent keeps its program, its caches and the folders of its sandboxes beside its database.
func TestOfHermesAgentOnlyTheFoldersOfItsProfilesAreWatched(t *testing.T) {
	b := setup(t)
	statements, err := os.ReadFile("../transcript/testdata/agents/hermes/state.sql")
	require.NoError(t, err)
	for _, folder := range []string{".", "profiles/coder", "profiles/coder/sandboxes", "hermes-agent/node_modules/x"} {
		require.NoError(t, os.MkdirAll(b.path(folder), 0o700))
		db, err := sql.Open("sqlite", "file:"+filepath.Join(b.path(folder), "state.db"))
		require.NoError(t, err)
		_, err = db.Exec(string(statements))
		require.NoError(t, err)
		require.NoError(t, db.Close())
	}
	r := b.follower(Config{Follow: func() []Folder { return []Folder{{"hermes", b.root}} }}, told)
	await(t, r, done)
	followed := r.Status().Followed
	require.Len(t, followed, 1)
	require.Equal(t, 2, followed[0].Files)
}

// OpenClaw keeps locks, and what other agents that it runs write, beside the database of an agent.
func TestTheDatabasesOfOpenClawsAgentsAreFollowed(t *testing.T) {
	b := setup(t)
	statements, err := os.ReadFile("../transcript/testdata/agents/openclaw/openclaw-agent.sql")
	require.NoError(t, err)
	var main *sql.DB
	for _, path := range []string{"main/agent/openclaw-agent.sqlite", "main/agent/codex-home/agent/openclaw-agent.sqlite", "main/agent/openclaw-agent.sqlite.lock.sqlite"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(b.path(path)), 0o700))
		db, err := sql.Open("sqlite", "file:"+b.path(path)+"?_pragma=journal_mode(wal)")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		_, err = db.Exec(string(statements))
		require.NoError(t, err)
		if main == nil {
			main = db
		}
	}
	r := b.follower(Config{Follow: func() []Folder { return []Folder{{"openclaw", b.root}} }}, told)
	b.awaitEvents(18)
	await(t, r, done)
	require.Equal(t, 1, r.Status().Followed[0].Files)
	_, err = main.Exec(`INSERT INTO transcript_events SELECT session_id, 99, replace(event_json, 'It is short.', 'It is long.'), created_at + 1000, NULL, NULL FROM transcript_events WHERE event_json LIKE '%short%';
		UPDATE transcript_events SET event_json = json_set(event_json, '$.id', 'last') WHERE seq = 99`)
	require.NoError(t, err)
	b.awaitEvents(19) // the log of the database changes, and not the database
	require.Contains(t, string(b.held["t"][18].Data), "It is long.")
}

func TestChatsOfVSCodeAreReadInTheFoldersOfWorkspacesAlone(t *testing.T) {
	b := setup(t)
	const session = "11111111-0000-4000-8000-000000000002.json"
	raw, err := os.ReadFile("../transcript/testdata/agents/vscode-chat/abc123/chatSessions/" + session)
	require.NoError(t, err)
	for _, folder := range []string{"abc/chatSessions", "abc/some.extension/chatSessions", "abc/other"} {
		require.NoError(t, os.MkdirAll(b.path(folder), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(b.path(folder), session), raw, 0o600))
	}
	require.NoError(t, os.WriteFile(b.path("abc/workspace.json"), []byte(`{"folder":"file:///shop"}`), 0o600))
	r := b.follower(Config{Follow: func() []Folder { return []Folder{{"vscode-chat", b.root}} }}, told)
	await(t, r, done)
	require.Equal(t, 1, r.Status().Followed[0].Files)
	said := strings.Join(b.said(t, "t"), "\n")
	require.Contains(t, said, `"cwd":"/shop"`)
	require.Contains(t, said, "Thanks")
}

// Factory Droid writes the title into the first line of the file, and then gives the file its old times.
func TestANewTitleOfAnEarlierSessionOfFactoryDroidIsRead(t *testing.T) {
	b := setup(t)
	path := b.path("-shop/11111111-0000-4000-8000-000000000001.jsonl")
	write := func(title string) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(`{"type":"session_start","id":"11111111-0000-4000-8000-000000000001","title":"`+title+`","version":2,"cwd":"/shop"}
{"type":"message","id":"m1","timestamp":"2026-10-05T09:00:00.000Z","message":{"role":"user","content":[{"type":"text","text":"hello"}]}}
`), 0o600))
		old := time.Now().Add(-time.Hour)
		require.NoError(t, os.Chtimes(path, old, old))
	}
	write("hello")
	r := b.follower(Config{Follow: func() []Folder { return []Folder{{"droid", b.root}} }}, told)
	b.awaitEvents(3) // the conversation, its title and its message
	write("A greeting")
	b.awaitEvents(4)
	require.Contains(t, string(b.held["t"][3].Data), "A greeting")
	await(t, r, done)
	require.Zero(t, r.Status().RefusedLines)
}

// At a compaction, Continue throws away what came before. It has a list of the sessions beside them.
func TestASessionOfContinueThatIsCompactedGoesOn(t *testing.T) {
	b := setup(t)
	path := b.path("sessions/c0000001-0000-4000-8000-000000000001.json")
	write := func(history ...string) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		next := b.path("next")
		require.NoError(t, os.WriteFile(next, []byte(`{"sessionId":"c0000001-0000-4000-8000-000000000001","title":"Untitled Session","workspaceDirectory":"/shop","history":[`+strings.Join(history, ",")+`]}`), 0o600))
		require.NoError(t, os.Rename(next, path))
	}
	item := func(role, text, more string) string {
		return `{"message":{"role":"` + role + `","content":"` + text + `"},"contextItems":[]` + more + `}`
	}
	one, two, three := item("user", "one", ""), item("assistant", "two", ""), item("user", "one", "")
	write(one, two)
	add(t, b.path("sessions/sessions.json"), `[{"sessionId":"c0000001-0000-4000-8000-000000000001"}]`)
	r := b.follower(Config{Follow: func() []Folder { return []Folder{{"continue", b.root}} }, StillWritten: time.Millisecond}, told)
	b.awaitEvents(3) // the conversation and its messages
	write(one, two, three)
	b.awaitEvents(4) // the same prompt again is another message
	write(item("assistant", "sum", `,"conversationSummary":"sum"`), three)
	b.awaitEvents(6)
	await(t, r, done)
	require.EqualValues(t, 1, r.Status().Followed[0].Files)
	require.Zero(t, r.Status().RefusedLines)
	require.Len(t, b.held["t"], 6)
}

// Extensions keep databases of their own beside that of the editor.
func TestChatsOfCursorAreReadFromTheEditorAndFromItsCLI(t *testing.T) {
	b := setup(t)
	made := func(fixture, path string) *sql.DB {
		t.Helper()
		statements, err := os.ReadFile("../transcript/testdata/agents/cursor/" + fixture)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(b.path(path)), 0o700))
		db, err := sql.Open("sqlite", "file:"+b.path(path)+"?_pragma=journal_mode(wal)")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		_, err = db.Exec(string(statements))
		require.NoError(t, err)
		return db
	}
	const editor, hash = "Cursor/User/globalStorage", "0123456789abcdef0123456789abcdef"
	made("store.sql", editor+"/chats/some/extension/store.db")
	made("store.sql", ".cursor/chats/"+hash+"/c0a5/store.db")
	db := made("old.sql", editor+"/state.vscdb")
	for _, folder := range []string{editor, ".cursor/chats"} {
		r := b.follower(Config{Follow: func() []Folder { return []Folder{{"cursor", b.path(folder)}} }}, pace{looks: looks, walk: told.walk, poll: told.poll, notify: true})
		await(t, r, done)
		require.Equal(t, 1, r.Status().Followed[0].Files, folder)
	}
	before := len(b.said(t, "t"))
	require.Contains(t, strings.Join(b.said(t, "t"), "\n"), "Summary: the cart starts at zero.")
	_, err := db.Exec(`INSERT INTO cursorDiskKV VALUES ('bubbleId:c0a50000-0000-4000-8000-000000000006:b3', '{"type":1,"bubbleId":"b3","text":"Mend it."}');
		UPDATE cursorDiskKV SET value = json_insert(value, '$.fullConversationHeadersOnly[#]', json('{"bubbleId":"b3"}')) WHERE key LIKE 'composerData:%6'`)
	require.NoError(t, err)
	b.awaitEvents(before + 1)
	require.Contains(t, strings.Join(b.said(t, "t"), "\n"), "Mend it.")
}

// The log of a database may have grown, but not the part of it that others read.
func TestADatabaseThatChangedJustBeforeItWasReadIsReadOnceMore(t *testing.T) {
	b := setup(t)
	add(t, b.path("opencode.db"), "SQLite")
	info, err := os.Lstat(b.path("opencode.db"))
	require.NoError(t, err)
	at := info.ModTime()
	require.True(t, isInFlux("opencode.db", info, at.Add(flux/2)))
	require.False(t, isInFlux("opencode.db", info, at.Add(flux)), "what was written by then is readable")
	require.False(t, isInFlux("opencode.db", info, at.Add(-flux)), "a clock that was ahead must not have it read for ever")
	require.False(t, isInFlux("session.jsonl", info, at.Add(flux/2)), "what is in a file can be read")
}
