package transcript

import (
	"database/sql"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

// databases are synthetic recordings in databases of SQLite, written as SQL.
func databases(t testing.TB) (paths []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(os.DirFS("testdata/agents"), ".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".sql") {
			paths = append(paths, "testdata/agents/"+path)
		}
		return err
	}))
	require.Len(t, paths, 12)
	return paths
}

// make makes a database of a fixture, and keeps it open as an agent would.
func makeDatabase(t *testing.T, fixture string) (path string, db *sql.DB) {
	t.Helper()
	statements, err := os.ReadFile(fixture)
	require.NoError(t, err)
	path = filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(fixture), ".sql")+".db")
	db, err = sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	_, err = db.Exec(string(statements))
	require.NoError(t, err)
	return path, db
}

func readDatabase(t *testing.T, path string, since time.Time) (items []Item, skips []string, until time.Time) {
	t.Helper()
	until, err := ReadDatabase(t.Context(), path, Auto, since, func(i Item) error {
		items = append(items, i)
		return nil
	}, OnSkip(func(s Skip) { skips = append(skips, s.String()) }))
	require.NoError(t, err)
	return items, skips, until
}

func TestDatabasesOfEachAgentBecomeTheEventsOfTheirGoldenFiles(t *testing.T) {
	for _, fixture := range databases(t) {
		t.Run(strings.TrimPrefix(fixture, "testdata/agents/"), func(t *testing.T) {
			path, _ := makeDatabase(t, fixture)
			items, skips, _ := readDatabase(t, path, time.Time{})
			golden(t, fixture, items, skips)
			for _, i := range items {
				assert.Equal(t, formatOf(fixture), i.Format)
			}
			f, err := os.Open(path)
			require.NoError(t, err)
			defer f.Close()
			assert.True(t, IsDatabase(f))
		})
	}
}

func TestOnlySessionsThatChangedAreReadAgain(t *testing.T) {
	path, db := makeDatabase(t, "testdata/agents/opencode/opencode.sql")
	_, err := db.Exec(`UPDATE message SET data = json_set(data, '$.time.completed', 1767225612000) WHERE id = 'msg_5'; UPDATE session SET time_updated = time_updated + 86400000 WHERE id = 'ses_2'`)
	require.NoError(t, err)
	all, _, until := readDatabase(t, path, time.Time{})
	require.Equal(t, int64(1767225610000+86400000), until.UnixMilli())

	items, _, again := readDatabase(t, path, until)
	require.Equal(t, until, again)
	require.Less(t, len(items), len(all))
	for _, i := range items {
		require.Equal(t, "opencode:ses_2", i.Event.Subject, "those of ten minutes before are read, and no others")
	}

	_, err = db.Exec(`INSERT INTO message VALUES ('msg_6', 'ses_1', 1767312020000, 1767400000000, '{"role":"user"}'); INSERT INTO part VALUES ('prt_9', 'msg_6', 'ses_1', 9, 9, '{"type":"text","text":"Go on"}')`)
	require.NoError(t, err)
	items, _, _ = readDatabase(t, path, again)
	require.Contains(t, ids(items), "msg_6", "also if the session itself was not written")
}

// The clock of the system may have been ahead when a session was written.
func TestASessionFromTheFutureHidesNoLaterOne(t *testing.T) {
	path, db := makeDatabase(t, "testdata/agents/opencode/opencode.sql")
	_, err := db.Exec(`UPDATE message SET data = json_set(data, '$.time.completed', 1767225612000) WHERE id = 'msg_5'; UPDATE session SET time_updated = 4102444800000 WHERE id = 'ses_1'`)
	require.NoError(t, err)
	_, _, until := readDatabase(t, path, time.Time{})
	_, err = db.Exec(`INSERT INTO session VALUES ('ses_9', 'p', NULL, '/', 'x', unixepoch() * 1000, unixepoch() * 1000);
		INSERT INTO message VALUES ('msg_9', 'ses_9', unixepoch() * 1000, unixepoch() * 1000, '{"role":"user"}');
		INSERT INTO part VALUES ('prt_99', 'msg_9', 'ses_9', 9, 9, '{"type":"text","text":"Go on"}')`)
	require.NoError(t, err)
	items, _, _ := readDatabase(t, path, until)
	require.Contains(t, ids(items), "msg_9")
}

func TestASessionWhoseLastMessageIsUnfinishedIsReadAgain(t *testing.T) {
	path, db := makeDatabase(t, "testdata/agents/opencode/opencode.sql")
	_, _, until := readDatabase(t, path, time.Time{})
	require.Equal(t, int64(1767225611000), until.UnixMilli())
	_, err := db.Exec(`INSERT INTO session VALUES ('ses_3', 'p', NULL, '/', 'x', 1767229000000, 1767229000000)`)
	require.NoError(t, err)
	_, _, until = readDatabase(t, path, until)
	require.Equal(t, int64(1767225611000), until.UnixMilli(), "it waits for the message of ses_2")
	_, err = db.Exec(`UPDATE session SET time_updated = 1767400000000 WHERE id = 'ses_3'`)
	require.NoError(t, err)
	items, _, until := readDatabase(t, path, until)
	require.Equal(t, int64(1767400000000), until.UnixMilli(), "but not for more than a day")
	for _, i := range items {
		require.False(t, i.Open)
	}
}

func TestASessionThatIsDeletedWhileOthersAreReadIsLeftOut(t *testing.T) {
	for fixture, deletion := range map[string]string{
		"crush/crush.sql":             "DELETE FROM messages; DELETE FROM sessions",
		"cursor/state.sql":            "DELETE FROM cursorDiskKV; DELETE FROM composerHeaders",
		"hermes/state.sql":            "DELETE FROM messages; DELETE FROM sessions",
		"openclaw/openclaw-agent.sql": "DELETE FROM transcript_events; DELETE FROM session_windows",
		"opencode/opencode.sql":       "DELETE FROM part; DELETE FROM message; DELETE FROM session",
	} {
		path, db := makeDatabase(t, "testdata/agents/"+fixture)
		subjects := map[string]bool{}
		_, err := ReadDatabase(t.Context(), path, Auto, time.Time{}, func(i Item) error {
			if i.Err == nil {
				subjects[i.Event.Subject] = true
			}
			_, err := db.Exec(deletion)
			return err
		})
		require.NoError(t, err, fixture)
		require.Len(t, subjects, 1, fixture)
	}
}

func TestAPromptThatWaitsForAnAnswerIsReadAfterIt(t *testing.T) {
	path, db := makeDatabase(t, "testdata/agents/opencode/opencode.sql")
	closed := func() (list []events.Event) {
		items, _, _ := readDatabase(t, path, time.Time{})
		for _, i := range items {
			if i.Event.Subject == "opencode:ses_2" && !i.Open {
				list = append(list, i.Event)
			}
		}
		return list
	}
	write := func(statements string) {
		_, err := db.Exec(statements)
		require.NoError(t, err)
	}
	before := closed()
	write(`INSERT INTO message VALUES ('msg_6', 'ses_2', 1767225611600, 1767225611600, '{"role":"user"}');
		INSERT INTO part VALUES ('prt_9', 'msg_6', 'ses_2', 9, 9, '{"type":"text","text":"And the discount."}')`)
	require.Equal(t, before, closed(), "msg_5 is still written")
	write(`UPDATE message SET data = json_set(data, '$.time.completed', 1767225612000) WHERE id = 'msg_5'`)
	finished := closed()
	require.Equal(t, before, finished[:len(before)])
	require.Equal(t, "msg_6", finished[len(finished)-1].ID)
	write(`UPDATE message SET data = json_remove(data, '$.time.completed') WHERE id = 'msg_5';
		INSERT INTO message VALUES ('msg_7', 'ses_2', 1767225613000, 1767225613000, '{"role":"assistant","time":{"created":1767225613000}}')`)
	require.Equal(t, finished, closed(), "an answer that another one follows is finished, even if its agent was killed")
}

func TestADatabaseOfNoKnownAgentIsUnknown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, err = db.Exec("CREATE TABLE session (id TEXT)")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, err = ReadDatabase(t.Context(), path, Auto, time.Time{}, func(Item) error { return nil })
	require.ErrorIs(t, err, ErrUnknownFormat)

	absent := filepath.Join(t.TempDir(), "absent.db")
	_, err = ReadDatabase(t.Context(), absent, Auto, time.Time{}, func(Item) error { return nil })
	require.Error(t, err)
	require.NoFileExists(t, absent, "reading makes no database")
}
