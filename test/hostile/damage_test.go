package hostile

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"mneme.dev/mneme/internal/mnemetest"
)

// recording writes messages as a file to import, and returns its path.
func recording(t *testing.T, name string, messages, size int) string {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var out bytes.Buffer
	for i := range messages {
		text := make([]byte, size)
		for k := range text {
			text[k] = "abcdefghijklmnopqrstuvwxyz    "[random.IntN(30)]
		}
		line, err := json.Marshal(map[string]any{
			"specversion": "1.0", "type": "dev.mneme.message.created.v1", "source": name, "id": fmt.Sprintf("e%d", i), "subject": fmt.Sprintf("%s-%d", name, i/100),
			"data": map[string]any{"message_id": fmt.Sprintf("m%d", i), "role": "user", "content": string(text)},
		})
		require.NoError(t, err)
		out.Write(append(line, '\n'))
	}
	path := filepath.Join(t.TempDir(), name+".ndjson")
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
	return path
}

// diagnosis returns what doctor finds on the server and in its directory: for each check, the first
// finding that is not ok. code is its exit code.
func diagnosis(t *testing.T, s *mnemetest.Server, data string) (bad map[string]string, code int) {
	t.Helper()
	out, stderr, code := s.Run("doctor", "--json", "--data", data)
	var d struct {
		Checks []struct{ Check, Level, Detail, Remedy string }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &d), "%s%s", out, stderr)
	bad = map[string]string{}
	for _, c := range d.Checks {
		if c.Level != "ok" && bad[c.Check] == "" {
			bad[c.Check] = c.Level + " " + c.Detail + " → " + c.Remedy
		}
	}
	return bad, code
}

// requireEqual checks that the read models match the log.
func requireEqual(t *testing.T, s *mnemetest.Server) {
	t.Helper()
	out, stderr, code := s.Run("verify")
	require.Zero(t, code, "%s%s", out, stderr)
}

// status returns the server's status.
func status(t *testing.T, s *mnemetest.Server) (status mnemetest.Status) {
	t.Helper()
	a := do(t, http.MethodGet, s.HTTP+"/v1/status", nil, nil)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	require.NoError(t, json.Unmarshal(a.Body, &status))
	return status
}

// overwrite changes bytes of a file.
func overwrite(t *testing.T, path string, change func(data []byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, change(data), 0o600))
}

func TestUpMovesAReadModelAsideThatItCantOpenAndMakesItAgain(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func([]byte) []byte{
		"its header is zeroed":    func(data []byte) []byte { clear(data[:100]); return data },
		"its first page is zeros": func(data []byte) []byte { clear(data[:4096]); return data },
		"it is cut to a half":     func(data []byte) []byte { return data[:len(data)/2] },
		"it is a text":            func([]byte) []byte { return []byte("this is no database\n") },
	} {
		if name != "its header is zeroed" && name != "it is cut to a half" && !mnemetest.All {
			continue // SQLite opens a truncated file, and says that all others are not databases
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			s := mnemetest.Up(t, data)
			_, stderr, code := s.Run("import", recording(t, "talk", 500, 300), "--wait")
			require.Zero(t, code, stderr)
			require.Zero(t, s.Stop())

			for round := 1; round <= 2; round++ {
				var damaged []byte
				file := filepath.Join(data, "models", fmt.Sprintf("graph-%d.db", round))
				overwrite(t, file, func(data []byte) []byte { damaged = damage(data); return damaged })
				s = mnemetest.Up(t, data)
				require.Eventually(t, func() bool { return status(t, s).Projections[0].Applied == 500 }, patience, tick)
				requireEqual(t, s)
				aside := file + ".damaged-1"
				kept, err := os.ReadFile(aside)
				require.NoError(t, err)
				require.Equal(t, damaged, kept)
				bad, code := diagnosis(t, s, data)
				require.Zero(t, code, "%v", bad)
				require.Contains(t, bad["damaged files"], "graph-1.db.damaged-1")
				require.Zero(t, s.Stop())
				require.Contains(t, s.Stderr(), aside)
				require.Contains(t, s.Stderr(), "moved aside")
			}
		})
	}
}

func TestUpLeavesAReadModelOfAnotherVersionWhereItIs(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := mnemetest.Up(t, data)
	require.Zero(t, s.Stop())
	file := filepath.Join(data, "models", "graph-1.db")
	db, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "PRAGMA user_version = 99")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, stderr, code := mnemetest.Run(t, nil, "up", "--data", data, "--listen", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0")
	require.NotZero(t, code)
	require.Contains(t, stderr, "rebuild needed")
	require.FileExists(t, file)
	require.NoFileExists(t, file+".damaged-1")
}

// page returns the offset at which a table of a file begins.
func page(t *testing.T, path, table string) (offset int64) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT (rootpage - 1) * (SELECT page_size FROM pragma_page_size) FROM sqlite_schema WHERE name = ?", table).Scan(&offset))
	return offset
}

func TestARebuildReplacesAReadModelThatIsDamagedWithin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(t *testing.T, path string, data []byte)
		state  string
	}{
		"in 40 places": {func(t *testing.T, path string, data []byte) {
			random := rand.New(rand.NewPCG(3, 4))
			for range 40 {
				at := 8192 + random.IntN(len(data)-8192-16)
				for i := range 16 {
					data[at+i] ^= 0xff
				}
			}
		}, ""},
		"where messages are": {func(t *testing.T, path string, data []byte) {
			at := page(t, path, "message")
			clear(data[at : at+4096])
		}, "halted"},
		"where its position is": {func(t *testing.T, path string, data []byte) {
			at := page(t, path, "checkpoint")
			clear(data[at : at+4096])
		}, "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			s := mnemetest.Up(t, data)
			_, stderr, code := s.Run("import", recording(t, "talk", 500, 300), "--wait")
			require.Zero(t, code, stderr)
			require.Zero(t, s.Stop())
			file := filepath.Join(data, "models", "graph-1.db")
			overwrite(t, file, func(raw []byte) []byte { c.damage(t, file, raw); return raw })
			s = mnemetest.Up(t, data)

			bad, code := diagnosis(t, s, data)
			if c.state == "" && bad["damaged files"] != "" { // where tables begin depends on the machine: it found the damage at startup
				require.Zero(t, code, "%v", bad)
				require.FileExists(t, file+".damaged-1")
				requireEqual(t, s)
				return
			}
			require.Equal(t, 3, code, "%v", bad)
			require.Contains(t, bad["read model graph"], "failed the read model graph is damaged")
			require.Contains(t, bad["read model graph"], "→ mneme rebuild graph")
			if c.state != "" {
				// A writer that meets the damage halts, and says what to do.
				require.Equal(t, http.StatusCreated, publish(t, s, "talk-0", "later", "message.created", map[string]any{"message_id": "later", "role": "user", "content": "later"}).Status)
				require.Eventually(t, func() bool { return status(t, s).Projections[0].State == c.state }, patience, tick)
				require.Contains(t, status(t, s).Projections[0].Error, "mneme rebuild graph")
				out, stderr, code := s.Run("verify")
				require.NotZero(t, code, out)
				require.Contains(t, stderr, "the read model graph is damaged")
				require.Contains(t, stderr, "mneme rebuild graph")
				a := do(t, http.MethodGet, s.HTTP+"/v1/conversations/talk-0/messages", nil, nil)
				if a.Status != http.StatusOK { // it may be on an intact page
					require.Equal(t, http.StatusServiceUnavailable, a.Status)
					require.Contains(t, string(a.Body), "mneme rebuild graph")
				}
				_, stderr, code = s.Run("import", recording(t, "more", 10, 10), "--wait")
				require.NotZero(t, code)
				require.Contains(t, stderr, "mneme rebuild graph")
			}

			out, stderr, code := s.Run("rebuild", "graph", "--wait")
			require.Zero(t, code, "%s%s", out, stderr)
			requireEqual(t, s)
			bad, code = diagnosis(t, s, data)
			require.Zero(t, code, "%v", bad)
			require.Empty(t, bad["read model graph"])
		})
	}
}

func TestALogThatTakesNoWritesIsToldUntilARestart(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := mnemetest.UpUnder(t, "ulimit -f 600", "--data", data) // blocks of 1,024 bytes
	var refused string
	stored := 0
	for ; refused == ""; stored++ {
		require.Less(t, stored, 100, "nothing reaches the limit")
		a := publish(t, s, "c", fmt.Sprint(stored), "message.created", map[string]any{"message_id": fmt.Sprint(stored), "role": "user", "content": strings.Repeat("x", 20_000)})
		if a.Status != http.StatusCreated {
			refused = string(a.Body)
			break
		}
	}
	require.Contains(t, refused, "mneme doctor")
	require.Contains(t, status(t, s).Stream.Error, "file too large")
	bad, code := diagnosis(t, s, data)
	require.Equal(t, 3, code)
	require.Contains(t, bad["log writes"], "failed")
	require.Contains(t, bad["log writes"], "restart")
	out, stderr, _ := s.Run("status")
	require.Contains(t, out+stderr, "the log takes no writes")

	require.Zero(t, s.Stop())
	s = mnemetest.Up(t, data)
	require.Equal(t, http.StatusCreated, publish(t, s, "c", "last", "message.created", map[string]any{"message_id": "last", "role": "user", "content": "x"}).Status)
	require.Eventually(t, func() bool { return status(t, s).Projections[0].Applied >= uint64(stored)+1 }, patience, tick)
	requireEqual(t, s)
	bad, code = diagnosis(t, s, data)
	require.Zero(t, code, "%v", bad)
}

func TestAnImportSaysThatTheLogCouldNotStoreABatch(t *testing.T) {
	t.Parallel()
	s := mnemetest.UpUnder(t, "ulimit -f 600", "--data", t.TempDir())
	_, stderr, code := s.Run("import", recording(t, "large", 1000, 2000))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "the log could not store the events")
	require.Contains(t, stderr, "mneme doctor")
}

func TestAFullDiskIsToldAndLosesNothing(t *testing.T) {
	t.Parallel()
	small := t.TempDir()
	mount := func(options string) ([]byte, error) {
		return exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", options, "tmpfs", small).CombinedOutput()
	}
	if out, err := mount("size=400m"); err != nil {
		t.Skipf("NO SMALL DISK CAN BE MOUNTED, SO A FULL ONE IS NOT TRIED: %v: %s", err, out)
	}
	t.Cleanup(func() { require.NoError(t, exec.Command("umount", "-l", small).Run()) })
	data := filepath.Join(small, "data")
	s := mnemetest.Up(t, data)
	out, err := mount("remount,size=24m") // less than the log may take
	require.NoError(t, err, "%s", out)
	published := 0
	var said string
	for part := 0; said == ""; part++ {
		require.Less(t, part, 40, "the disk does not get full")
		out, stderr, code := s.Run("import", recording(t, fmt.Sprintf("part%d", part), 200, 3000), "--wait", "--json")
		var report struct{ Published int }
		require.NoError(t, json.Unmarshal([]byte(out), &report), stderr)
		published += report.Published
		if code != 0 {
			said = stderr
		}
	}
	require.Regexp(t, "disk is full|disk of its server may be full|did not confirm", said)
	bad, code := diagnosis(t, s, data)
	require.Equal(t, 3, code)
	require.Contains(t, bad["disk"], "failed")
	require.Contains(t, bad["disk"], "make room")
	for check, text := range bad {
		if strings.Contains(text, "database or disk is full") {
			require.Regexp(t, "^failed .*make room", text, check)
		}
	}
	s.Kill()

	// On a larger disk, everything acknowledged is still in the log.
	large := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.CopyFS(large, os.DirFS(data)))
	s = mnemetest.Up(t, large)
	require.Eventually(t, func() bool {
		for _, p := range status(t, s).Projections {
			if p.State != "live" || p.Lag > 0 {
				return false
			}
		}
		return true
	}, patience, tick)
	require.GreaterOrEqual(t, status(t, s).Stream.Messages, uint64(published))
	requireEqual(t, s)
}
