package hostile

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/mnemetest"
)

// line is a line of a recording.
func line(id, text string) string {
	return fmt.Sprintf(`{"kind":"message","conversation_id":"rec:1","id":%q,"role":"user","content":%q}`, id, text) + "\n"
}

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func TestAnImportFailsUnlessEverythingIsIn(t *testing.T) {
	s := up(t)
	whole := line("1", "a") + line("2", "b") + line("3", "c")
	packed := gzipped(t, whole+line("4", strings.Repeat("incompressible? ", 5)))
	outside := filepath.Join(t.TempDir(), "passwd")
	require.NoError(t, os.WriteFile(outside, []byte("root:x:0:0\n"), 0o600))
	for _, c := range []struct {
		name    string
		content []byte
		exit    int
		says    string
	}{
		{"whole.jsonl", []byte(whole), 0, ""},
		{"packed.gz", packed, 0, ""},
		{"cut.gz", packed[:len(packed)-20], 1, "the compressed data is truncated or damaged here"},
		{"latin1.jsonl", []byte(whole + "{\"kind\":\"\xff\"}\n"), 1, "1 line rejected"},
		{"ends.jsonl", []byte(whole + line("5", "e")[:30]), 1, "the recording ends inside this line"},
		{"passwd", []byte("root:x:0:0\n"), 1, "line 1: is not JSON"},
		{"contrary.jsonl", []byte(line("1", "another")), 1, `different content under the id "1"`},
	} {
		file := filepath.Join(t.TempDir(), c.name)
		require.NoError(t, os.WriteFile(file, c.content, 0o600))
		_, stderr, code := s.Run("import", file, "--wait")
		require.Equal(t, c.exit, code, "%s: %s", c.name, stderr)
		require.Contains(t, stderr, c.says, c.name)
		require.NotContains(t, stderr, "root:x", "no content of a file that is not a recording is shown")
	}
}

func TestAnImportedFolderReadsNothingOutsideOfIt(t *testing.T) {
	s := up(t)
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "passwd")
	require.NoError(t, os.WriteFile(outside, []byte("root:x:0:0\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.jsonl"), []byte(line("1", "a")), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "pw.jsonl")))
	out, stderr, code := s.Run("import", dir, "--json")
	require.Equal(t, 1, code, "the link is not in")
	require.Contains(t, stderr, "pw.jsonl: is a link to a file outside ")
	require.NotContains(t, stderr, "root:x")
	require.Contains(t, out, `"published":1`)
}

func TestALineThatAnAgentStillWritesIsLeftForLater(t *testing.T) {
	s := up(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "live.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(line("1", "a")+line("2", "b")[:40]), 0o600))
	_, stderr, code := s.Run("import", dir)
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "held back: 1 event")
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(file, old, old))
	_, stderr, code = s.Run("import", dir)
	require.Equal(t, 1, code, "nobody writes it any more")
	require.Contains(t, stderr, "line 2: the recording ends inside this line")
}

// control is the bucket with the requests for rebuilds.
func control(t *testing.T, s *mnemetest.Server) jetstream.KeyValue {
	t.Helper()
	conn, err := nats.Connect(s.NATS, nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	bucket, err := natsdeploy.ApplyControl(mnemetest.Context(t), js)
	require.NoError(t, err)
	return bucket
}

func TestARecordNobodyCanReadStopsNeitherStatusNorRebuild(t *testing.T) {
	s := up(t)
	talk(t, s, "c")
	bucket := control(t, s)
	for _, record := range []string{"garbage", "", `{"generation":-1,"from":0,"state":"building"}`, `{"generation":4000000000,"from":1,"state":"serving"}`} {
		_, err := bucket.PutString(mnemetest.Context(t), "rebuild.sqlite.graph", record)
		require.NoError(t, err)
		for _, path := range []string{"/v1/status", "/v1/rebuilds"} {
			a := do(t, http.MethodGet, s.HTTP+path, nil, nil)
			require.Equal(t, http.StatusOK, a.Status, "%q: %s", record, a.Body)
			var list struct {
				Rebuilds []struct{ State, Error string }
			}
			require.NoError(t, json.Unmarshal(a.Body, &list))
			require.Equal(t, "unreadable", list.Rebuilds[0].State)
			require.Contains(t, list.Rebuilds[0].Error, "rebuild.sqlite.graph in the bucket AGENT_CONTROL")
		}
		out, stderr, code := s.Run("doctor", "--data", s.Data)
		require.Zero(t, code, stderr)
		require.Contains(t, out, "rebuild.sqlite.graph")
		out, stderr, code = s.Run("rebuild", "graph")
		require.Zero(t, code, "%q: %s", record, stderr)
		require.Contains(t, out, "rebuilt")
	}

	// A record that can be read, but cannot be rebuilt.
	_, err := bucket.PutString(mnemetest.Context(t), "rebuild.sqlite.graph", `{"generation":900000,"from":5,"state":"building"}`)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		a := do(t, http.MethodGet, s.HTTP+"/v1/rebuilds", nil, nil)
		return strings.Contains(string(a.Body), "something other than mneme made it")
	}, mnemetest.Patience, 20*time.Millisecond)
	out, stderr, code := s.Run("rebuild", "graph")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "generation 6 serves")
}

func TestTheFirstRebuildAfterTheControlBucketWasDeletedSucceeds(t *testing.T) {
	s := up(t)
	talk(t, s, "c")
	conn, err := nats.Connect(s.NATS, nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	control(t, s)
	require.NoError(t, js.DeleteKeyValue(mnemetest.Context(t), natsdeploy.ControlBucket))
	out, stderr, code := s.Run("rebuild", "graph")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "generation 2 serves")
}

func TestNoCheckpointLiesBeyondTheHead(t *testing.T) {
	s := up(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 150 {
			publish(t, s, fmt.Sprint("c", i%7), fmt.Sprint(i), "message.created", message(fmt.Sprint("m", i), "x"))
		}
	}()
	for asked := 0; ; asked++ {
		a := do(t, http.MethodGet, s.HTTP+"/v1/status", nil, nil)
		var status struct {
			Stream      struct{ Head uint64 }
			Projections []struct{ Checkpoint uint64 }
		}
		require.NoError(t, json.Unmarshal(a.Body, &status), "%s", a.Body)
		for _, p := range status.Projections {
			require.LessOrEqual(t, p.Checkpoint, status.Stream.Head)
		}
		select {
		case <-done:
			require.Positive(t, asked)
			return
		default:
		}
	}
}
