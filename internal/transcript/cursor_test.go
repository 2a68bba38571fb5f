package transcript

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const cursorFixture = "testdata/agents/cursor/state.sql"

func TestAnAnswerOfCursorIsOpenUntilTheChatSaysThatItIsWritten(t *testing.T) {
	path, db := makeDatabase(t, cursorFixture)
	_, _, until := readDatabase(t, path, time.Time{})
	require.Equal(t, int64(1767225613000), until.UnixMilli(), "it waits for the chat in which the model is writing")
	_, err := db.Exec(`UPDATE cursorDiskKV SET value = json_set(value, '$.status', 'completed', '$.generatingBubbleIds', json('[]')) WHERE key LIKE 'composerData:%1'`)
	require.NoError(t, err)
	items, _, until := readDatabase(t, path, until)
	require.Equal(t, int64(1767225660000), until.UnixMilli())
	for _, i := range items {
		require.False(t, i.Open, i.Event.ID)
	}
	require.Contains(t, ids(items), "cursor:c0a50000-0000-4000-8000-000000000001:b11:call", "a call that never ended")
}

func TestAMessageOfCursorThatIsTooLargeIsRefusedAlone(t *testing.T) {
	path, db := makeDatabase(t, cursorFixture)
	_, err := db.Exec("UPDATE cursorDiskKV SET value = zeroblob(?) WHERE key LIKE 'bubbleId:%2:b1'", MaxDocumentBytes+1)
	require.NoError(t, err)
	items, _, _ := readDatabase(t, path, time.Time{})
	var refused []string
	for _, i := range items {
		if i.Err != nil {
			refused = append(refused, i.Err.Error())
		}
	}
	require.Contains(t, strings.Join(refused, "\n"), "bubbleId:c0a50000-0000-4000-8000-000000000002:b1: has 67108865 bytes, the limit is 67108864")
	require.Contains(t, ids(items), "cursor:c0a50000-0000-4000-8000-000000000002:b3")
}

// Cursor keeps its database without a write-ahead log in some versions. Whoever reads one then keeps it from writing.
func TestAnAgentCanWriteWhileItsSessionsAreBeingPublished(t *testing.T) {
	statements, err := os.ReadFile(cursorFixture)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "state.vscdb")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(0)")
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec(string(statements))
	require.NoError(t, err)
	published := 0
	_, err = ReadDatabase(t.Context(), path, Auto, time.Time{}, func(Item) error {
		published++
		_, err := db.Exec("INSERT INTO ItemTable VALUES ('written', ?)", published)
		return err
	})
	require.NoError(t, err)
	require.Positive(t, published)
}

// An editor gives up a write after a second. Older versions have no table of the chats, and the states of all are read to list them.
func TestAnEditorCanWriteWhileItsChatsAreListed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.vscdb")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(300)")
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec(`CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 800)
		INSERT INTO cursorDiskKV SELECT 'composerData:' || printf('%04d', i), json_object('createdAt', i, 'pad', hex(zeroblob(50000))) FROM n`)
	require.NoError(t, err)
	read, cancel := context.WithCancel(t.Context())
	defer cancel()
	listed := make(chan error, 1)
	go func() {
		_, err := ReadDatabase(read, path, Auto, time.Now(), func(Item) error { return nil })
		listed <- err
	}()
	for n := 0; ; n++ {
		_, err = db.Exec("INSERT INTO cursorDiskKV VALUES ('written', ?)", n)
		require.NoError(t, err)
		select {
		case err := <-listed:
			require.NoError(t, err)
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func TestAChatOfTheCLIOfCursorIsNamedByTheFileBesideIt(t *testing.T) {
	path, _ := makeDatabase(t, "testdata/agents/cursor/store.sql")
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "meta.json"), []byte(`{"schemaVersion":1,"title":"Cart","cwd":"/elsewhere"}`), 0o600))
	items, _, _ := readDatabase(t, path, time.Time{})
	require.Contains(t, string(items[len(items)-1].Event.Data), `"Cart"`)
	require.Contains(t, string(items[0].Event.Data), "/home/lea/shop", "the database names the folder")
}

// The program writes the messages and then the state that lists them; a copy may have been made in between.
func TestAChatOfTheCLIOfCursorThatLacksAMessageIsReadLater(t *testing.T) {
	path, db := makeDatabase(t, "testdata/agents/cursor/store.sql")
	_, err := db.Exec("DELETE FROM blobs WHERE CAST(data AS TEXT) LIKE '%Done.%'")
	require.NoError(t, err)
	published := 0
	_, err = ReadDatabase(t.Context(), path, Auto, time.Time{}, func(Item) error { published++; return nil })
	require.ErrorContains(t, err, "3356d6f519928636")
	require.ErrorContains(t, err, "is missing")
	require.Zero(t, published)
}

func TestOnlyTheDatabasesOfCursorAreItsRecordings(t *testing.T) {
	for path, want := range map[string]bool{
		"/home/lea/.config/Cursor/User/globalStorage/state.vscdb":                true,
		"/home/lea/.cursor/chats/0123456789abcdef0123456789abcdef/c0a5/store.db": true,
		"/home/lea/.config/Code/User/globalStorage/state.vscdb":                  false,
		"/home/lea/.config/Cursor/User/workspaceStorage/x/state.vscdb":           false,
		"store.db": false,
	} {
		require.Equal(t, want, IsRecordingOf(cursorFormat, path), path)
	}
}
