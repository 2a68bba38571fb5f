package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/mnemetest"
)

func TestImportPublishesEveryEventOnceAndVerifies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "recording.jsonl")
	lines := recording(t, file, 1, 5, 10)
	s := up(t, filepath.Join(dir, "data"))

	first := read[importer.Report](s, "import", file, "--wait")
	require.Equal(t, lines, first.Read)
	require.Equal(t, lines, first.Published)
	require.Equal(t, 5, first.Conversations)
	before := read[[]httpapi.Conversation](s, "conversations", "list")
	require.Len(t, before, 5)
	verified := read[httpapi.Verification](s, "verify")
	require.True(t, verified.Equal)

	second := read[importer.Report](s, "import", file, "--wait")
	require.Equal(t, importer.Report{Read: lines, Duplicate: lines, Conversations: 5}, second, "everything is known the second time")
	require.Empty(t, cmp.Diff(before, read[[]httpapi.Conversation](s, "conversations", "list")))
	require.Empty(t, cmp.Diff(verified, read[httpapi.Verification](s, "verify")))
	require.Zero(t, s.stop())

	again := up(t, filepath.Join(dir, "data"))
	require.Empty(t, cmp.Diff(before, read[[]httpapi.Conversation](again, "conversations", "list")), "a restart changes nothing")
}

// A kill -9 in the middle of an import loses nothing that was acknowledged: after a restart and another import
// everything is as if nothing had happened.
func TestAKilledImportRepeatedEqualsAnUndisturbedOne(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "recording.jsonl")
	lines := recording(t, file, 2, 24, 40)

	calm := up(t, filepath.Join(dir, "calm"))
	require.Equal(t, lines, read[importer.Report](calm, "import", file, "--wait").Published)
	wantList, wantHashes := contentOf(calm), read[httpapi.Verification](calm, "verify")
	require.True(t, wantHashes.Equal)
	calm.kill()

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	data, kills, interrupted := filepath.Join(dir, "data"), 0, 0
	rounds := 5
	if mnemetest.All {
		rounds = 12
	}
	for range rounds {
		s := up(t, data)
		path, err := mnemetest.Binary()
		require.NoError(t, err)
		var errs mnemetest.Log
		client := exec.Command(path, "import", file, "--json", "--url", s.ready.HTTP, "--nats-url", s.ready.NATS)
		client.Stderr = &errs
		require.NoError(t, client.Start())
		if kills == 0 {
			s.awaitEvent() // at least this kill hits an import that has begun
		} else {
			time.Sleep(time.Duration(random.IntN(250)) * time.Millisecond)
		}
		s.kill()
		kills++
		// An import that has begun waits until its server is back.
		ended := make(chan error, 1)
		go func() { ended <- client.Wait() }()
		hang := time.AfterFunc(mnemetest.Patience, func() { _ = client.Process.Kill() })
		for through, told := false, false; !through; {
			select {
			case err = <-ended:
				through = true
			case <-time.After(10 * time.Millisecond):
				if !told && strings.Contains(errs.String(), "waiting, and trying again") {
					told = true
					_ = client.Process.Signal(os.Interrupt)
				}
			}
		}
		require.True(t, hang.Stop(), "an interrupt does not end an import without a server")
		if err != nil {
			interrupted++
			require.Contains(t, errs.String(), "mneme: ", "a failed import says why")
		}
	}
	s := up(t, data)
	report := read[importer.Report](s, "import", file, "--wait")
	t.Logf("%d kills, %d imports interrupted; the last import found %d of %d known", kills, interrupted, report.Duplicate, report.Read)
	require.Positive(t, interrupted, "no kill hit an import: the delays are wrong")
	require.Zero(t, report.Rejected)
	require.Empty(t, cmp.Diff(wantList, contentOf(s)))
	got := read[httpapi.Verification](s, "verify")
	require.True(t, got.Equal)
	for i, p := range got.Projections {
		require.Equal(t, wantHashes.Projections[i].Hash, p.Hash, p.Name)
	}
}

// contentOf lists conversations without anything that depends on sequences.
func contentOf(s *server) map[string]httpapi.Conversation {
	list := map[string]httpapi.Conversation{}
	for _, c := range read[[]httpapi.Conversation](s, "conversations", "list") {
		c.FirstSeq, c.LastSeq = 0, 0
		list[c.ID] = c
	}
	return list
}

func TestUpRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := up(t, filepath.Join(dir, "data"))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()

	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"a data directory in use":   {[]string{"--data", s.ready.Data, "--listen", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0"}, exitFailed, "in use by another process"},
		"a port in use":             {[]string{"--data", filepath.Join(dir, "b"), "--listen", taken.Addr().String(), "--nats-listen", "127.0.0.1:0"}, exitFailed, "port is in use"},
		"a NATS port in use":        {[]string{"--data", filepath.Join(dir, "c"), "--listen", "127.0.0.1:0", "--nats-listen", taken.Addr().String()}, exitFailed, "--nats-listen=" + taken.Addr().String() + ": the port is in use"},
		"an address off loopback":   {[]string{"--data", filepath.Join(dir, "d"), "--listen", "0.0.0.0:0"}, exitUsage, "loopback only"},
		"NATS off loopback":         {[]string{"--data", filepath.Join(dir, "e"), "--listen", "127.0.0.1:0", "--nats-listen", "0.0.0.0:0"}, exitUsage, "asks for no password"},
		"no address at all":         {[]string{"--data", filepath.Join(dir, "f"), "--listen", "here"}, exitUsage, "not an address"},
		"an unknown flag":           {[]string{"--port", "1"}, exitUsage, "--port"},
		"a store that is not there": {[]string{"--store", "paper"}, exitUsage, "--store"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, code := mneme(t, append([]string{"up"}, c.args...)...)
			require.Equal(t, c.code, code, stderr)
			require.Contains(t, stderr, c.says)
		})
	}
}

func TestUpNamesItsDataDirectoryAndSaysThatItIsNew(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	require.Equal(t, dir+" (new)", placeOf(dir))
	up(t, dir)
	require.Equal(t, dir, placeOf(dir))
	here, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, filepath.Join(here, ".mneme")+" (new)", placeOf(".mneme"), "the folder that it was started in")
}

func TestClientsSayWhatToDoWithoutAServer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "r.jsonl")
	recording(t, file, 1, 1, 1)
	for _, args := range [][]string{{"status"}, {"conversations", "list"}, {"verify"}, {"import", file}} {
		_, stderr, code := mneme(t, append(args, "--url", "http://127.0.0.1:1", "--nats-url", "nats://127.0.0.1:1")...)
		require.Equal(t, exitFailed, code, "%v", args)
		require.Contains(t, stderr, "mneme up", "%v", args)
	}
	_, stderr, code := mneme(t, "import", filepath.Join(t.TempDir(), "nothing"))
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "nothing")
}

func TestHelpNamesEveryCommandAndCostsNothing(t *testing.T) {
	t.Parallel()
	stdout, _, code := mneme(t, "--help")
	require.Zero(t, code)
	for _, command := range []string{"up", "import", "publish", "status", "conversations list", "files", "context", "verify", "failed list", "bench ingest"} {
		require.Contains(t, stdout, command)
	}
}

func TestTheGoodLinesOfABrokenTranscriptAreImported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "recording.jsonl")
	lines := recording(t, file, 3, 1, 3)
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	rows := strings.SplitAfter(string(raw), "\n")
	rows[3] = `{"kind":"message","conversation_id":"testagent:0",` + "\n"
	rows[5] = `{"kind":"message","conversation_id":"testagent:0","id":"x","role":"robot","content":"?"}` + "\n"
	broken := strings.Join(rows, "")
	require.NoError(t, os.WriteFile(file, []byte(broken[:len(broken)-20]), 0o644)) // cut off at the end too

	s := up(t, filepath.Join(dir, "data"))
	out, stderr, code := s.mneme("import", file, "--wait", "--json")
	require.Equal(t, exitFailed, code, "not everything is in")
	require.Contains(t, out, `"rejected":3`)
	for _, where := range []string{"line 4: ", "line 6: ", "role", "mneme: 3 lines rejected"} {
		require.Contains(t, stderr, where)
	}
	status := read[httpapi.Status](s, "status")
	require.EqualValues(t, lines-3, status.Stream.Head)
	require.True(t, read[httpapi.Verification](s, "verify").Equal)
}

func TestPublishThenReadOwnWrite(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	file := filepath.Join(t.TempDir(), "events.json")
	require.NoError(t, os.WriteFile(file, []byte(`
{"specversion":"1.0","type":"dev.mneme.message.created.v1","source":"test","id":"1","subject":"a/b.c *> 🦊","data":{"message_id":"m1","role":"user","content":"Where is the fox?"}}
{"specversion":"1.0","type":"dev.mneme.message.created.v1","source":"test","id":"2","subject":"a/b.c *> 🦊","data":{"message_id":"m2","role":"assistant","content":"In the id."}}
`), 0o644))
	out, stderr, code := s.mneme("publish", file)
	require.Zero(t, code, stderr)
	require.Equal(t, "1 at sequence 1\n2 at sequence 2\n", out)

	out, stderr, code = s.mneme("context", "a/b.c *> 🦊", "--at-least", "2")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "Where is the fox?")
	require.Contains(t, out, "In the id.")

	_, stderr, code = s.mneme("context", "a/b.c *> 🦊", "--at-least", "99")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "beyond the end of the log")
	_, stderr, code = s.mneme("context", "nobody")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "not found")

	response, err := http.Get(s.ready.HTTP + "/readyz")
	require.NoError(t, err)
	_ = response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
}

func TestInvalidFlagsAreUsageErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := up(t, filepath.Join(dir, "data"))
	file, empty := filepath.Join(dir, "recording.jsonl"), filepath.Join(dir, "empty.jsonl")
	recording(t, file, 1, 1, 2)
	require.NoError(t, os.WriteFile(empty, []byte("\n"), 0o644))
	read[importer.Report](s, "import", file, "--wait")

	for says, args := range map[string][]string{
		"--strategy must be one of":   {"context", "testagent:0", "--strategy", "foo"},
		"must be at least 500":        {"context", "testagent:0", "--max-chars", "100"},
		"--max-chars: must be":        {"context", "testagent:0", "--max-chars", "0"},
		"--limit: must be at least 1": {"files", "testagent:0", "--limit=-1"},
		"--explain and --left-out need a format other than markdown: add --json": {"context", "testagent:0", "--left-out"},
		"--from: sequence 9999 is beyond the end of the log, which is":           {"tail", "--from", "9999"},
		"--as-of=9999 is beyond":    {"files", "testagent:0", "--as-of", "9999"},
		"--role: expected one of u": {"search", "x", "--role", "tool"},
		"beyond the end of the log": {"files", "testagent:0", "--as-of", "9999"},
		"--format must be one of":   {"import", file, "--format", "word"},
		"--rounds 0":                {"bench", "ingest", file, "--rounds", "0"},
		"no events":                 {"bench", "ingest", empty},

		`--strategy must be one of "hybrid", "relevant", "levels", "recent", "pruned" but got`:             {"context", "testagent:0", "--strategy", "foo"},
		`--kind must be one of "message", "tool", "all" but got "foo"`:                                     {"search", "x", "--kind", "foo"},
		"<seq>: expected a whole number from 0 on but got \"x\"":                                           {"event", "x"},
		"--limit: expected a whole number but got \"x\"":                                                   {"files", "testagent:0", "--limit", "x"},
		"missing: <id> (mneme conversations show --help says more)":                                        {"conversations", "show"},
		"unknown flag -f; an argument that begins with a dash comes last, after -- (mneme":                 {"search", "test", "-flaky"},
		`--limit: needs a value, and "-1" looks like a flag; to give it as the value: --limit="-1" (mneme`: {"search", "x", "--limit", "-1"},
		"--token-file=\"/dev/null\": it holds no token":                                                    {"search", "x", "--token-file", "/dev/null"},
		"unknown flag -x (mneme status --help says more)":                                                  {"status", "-x"},
		`cannot erase a "talk": name a conversation, a project or a tenant`:                                {"erase", "talk"},

		"import reads files, not standard input":      {"import", "-"},
		"(mneme --help says more)":                    {"massages"},
		"(mneme conversations list --help says more)": {"conversations", "list", "--tga", "bug"},
		`"yesterday" is neither a time such as 2026-01-31T15:04:05Z, nor a date such as 2026-01-31, nor how long ago it was, such as 7d or 12h`: {"conversations", "list", "--updated-after", "yesterday"},
	} {
		_, stderr, code := s.mneme(args...)
		require.Equal(t, exitUsage, code, "%v: %s", args, stderr)
		require.Contains(t, stderr, says, "%v", args)
	}
	_, stderr, code := mneme(t, "status", "--url", strings.Replace(s.ready.NATS, "nats:", "http:", 1))
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "did not answer like mneme's API", "the port of NATS")
	require.Less(t, len(stderr), 400)
	for _, secret := range []string{"me:hush-hush@", "hush-hush@"} {
		_, stderr, _ = mneme(t, "status", "--url", strings.Replace(s.ready.NATS, "nats://", "http://"+secret, 1))
		require.Contains(t, stderr, "did not answer like mneme's API")
		require.NotContains(t, stderr, "hush-hush")
	}
	_, stderr, code = mneme(t, "search", "x", "--conversation")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "--conversation: needs a value (mneme")
	_, stderr, code = mneme(t, "status", "--url", "http://nowhere.invalid")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "no answer from http://nowhere.invalid: ")
	require.Contains(t, stderr, "; name the server with --url")
}

func TestUnreadableFilesOfAFolderAreSkipped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder")
	require.NoError(t, os.Mkdir(folder, 0o755))
	bad := filepath.Join(folder, "a.jsonl")
	require.NoError(t, os.WriteFile(bad, []byte("hello\n"), 0o644))
	lines := recording(t, filepath.Join(folder, "b.jsonl"), 1, 1, 2)
	s := up(t, filepath.Join(dir, "data"))
	gone := filepath.Join(dir, "gone")

	out, stderr, code := s.mneme("import", folder, gone, "--wait", "--json")
	require.Equal(t, exitFailed, code)
	var report importer.Report
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	require.Equal(t, lines, report.Published)
	require.Equal(t, 1, strings.Count(stderr, bad), stderr)
	require.Contains(t, stderr, "unknown transcript format")
	require.Equal(t, 1, strings.Count(stderr, gone), stderr)
	require.NotContains(t, stderr, "import the same files again")
}

func TestConversationsMayBeNamedLikeFolders(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	file := filepath.Join(t.TempDir(), "events.json")
	for i, id := range []string{".", "..", "...", "a/../b"} {
		text := fmt.Sprintf(`{"specversion":"1.0","type":"dev.mneme.message.created.v1","source":"test","id":"1","subject":%q,"data":{"message_id":"m1","role":"user","content":"I am %d"}}`, id, i)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		_, stderr, code := s.mneme("publish", file)
		require.Zero(t, code, stderr)
		out, stderr, code := s.mneme("context", id, "--at-least", strconv.Itoa(i+1))
		require.Zero(t, code, stderr)
		require.Contains(t, out, fmt.Sprint("I am ", i))
		require.Equal(t, id, read[httpapi.Conversation](s, "conversations", "show", id).ID)
	}
}

func TestFailedListReadsAllPages(t *testing.T) {
	t.Parallel()
	held := map[string]uint64{"graph": 2000, "files": 3}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.FormValue("projection")
		after, _ := strconv.ParseUint(r.FormValue("after"), 10, 64)
		limit, err := strconv.ParseUint(r.FormValue("limit"), 10, 64)
		if err != nil || limit < 1 || limit > 1000 {
			http.Error(w, "limit", http.StatusUnprocessableEntity)
			return
		}
		page := map[string][]httpapi.FailedEvent{"failed": {}}
		for seq := after + 1; seq <= min(after+limit, held[name]); seq++ {
			page["failed"] = append(page["failed"], httpapi.FailedEvent{Projection: name, Seq: seq})
		}
		_ = json.NewEncoder(w).Encode(page)
	}))
	defer server.Close()
	for want, args := range map[int][]string{
		2003: nil,
		3:    {"--projection", "files"},
		1503: {"--limit", "1500"},
		500:  {"--projection", "graph", "--after", "1500"},
		1000: {"--projection", "graph", "--limit", "1000"},
	} {
		out, stderr, code := mneme(t, append([]string{"failed", "list", "--json", "--url", server.URL}, args...)...)
		require.Zero(t, code, stderr)
		var list []httpapi.FailedEvent
		require.NoError(t, json.Unmarshal([]byte(out), &list))
		require.Len(t, list, want, "%v", args)
	}
}

func TestVerifyReportsHowFarItCompared(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(httpapi.Verification{Equal: true, Projections: []httpapi.VerifiedProjection{
			{Name: "graph", Equal: true, Hash: "a", UpTo: 7, Behind: 1200, Later: 1300}, {Name: "files", Equal: true, Hash: "b", UpTo: 9},
			{Name: "code", Equal: true, Hash: "c", UpTo: 5, Later: 1},
		}})
	}))
	defer server.Close()
	out, stderr, code := mneme(t, "verify", "--url", server.URL)
	require.Zero(t, code, stderr)
	require.Contains(t, out, "graph: equal up to sequence 7; 1,200 events not applied yet, hash a")
	require.Contains(t, out, "files: equal, hash b")
	require.Contains(t, out, "code: equal up to sequence 5; 1 event applied meanwhile, hash c")
}

func TestUpKeepsItsAddressesWithAnotherInstance(t *testing.T) {
	t.Parallel()
	require.Equal(t, "0.0.0.0:18420", withPort("0.0.0.0:0", "https://127.0.0.1:18420"))
	require.Equal(t, "[::1]:18420", withPort("[::1]:0", "http://[::1]:18420"))
	require.Equal(t, ":18420", withPort(":18420", "http://127.0.0.1:18420"))
	require.Equal(t, []string{"0.0.0.0:4317", "localhost:4318"}, withPorts([]string{"0.0.0.0:0", "localhost:0"}, []string{"http://127.0.0.1:4317", "http://127.0.0.1:4318"}))
}
