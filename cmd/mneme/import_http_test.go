package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/program"
)

// startedImport is an import that runs.
type startedImport struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  bytes.Buffer
	errs mnemetest.Log
}

func startImport(t *testing.T, args ...string) *startedImport {
	t.Helper()
	path, err := mnemetest.Binary()
	require.NoError(t, err)
	i := &startedImport{t: t, cmd: exec.CommandContext(t.Context(), path, append([]string{"import", "--json"}, args...)...)}
	i.cmd.Stdout, i.cmd.Stderr = &i.out, &i.errs
	require.NoError(t, i.cmd.Start())
	return i
}

// wait returns the report of an import that must succeed.
func (i *startedImport) wait() (r importer.Report) {
	i.t.Helper()
	require.NoError(i.t, i.cmd.Wait(), "%s", i.errs.String())
	require.NoError(i.t, json.Unmarshal(i.out.Bytes(), &r))
	return r
}

// withTokens starts the program so that it demands tokens.
func withTokens(t *testing.T, flags ...string) *server {
	t.Helper()
	s := mnemetest.UpWith(t, append([]string{"--data", t.TempDir(), "--tokens"}, flags...)...)
	return &server{s, t, ready{HTTP: s.HTTP, NATS: s.NATS, Data: s.Data}}
}

// token makes a token and waits until the server knows it.
func (s *server) token(tenant, role string) createdToken {
	s.t.Helper()
	created := read[createdToken](s, "tokens", "create", "--tenant", tenant, "--role", role)
	require.Eventually(s.t, func() bool {
		_, _, code := s.mneme("conversations", "list", "--token", created.Token)
		return code == exitDone
	}, mnemetest.Patience, 50*time.Millisecond)
	return created
}

// importWith imports as somebody does who has only the URL and a token.
func (s *server) importWith(token string, args ...string) (r importer.Report, stderr string, code int) {
	s.t.Helper()
	out, stderr, code := mneme(s.t, append([]string{"import", "--json", "--url", s.HTTP, "--token", token}, args...)...)
	if out != "" {
		require.NoError(s.t, json.Unmarshal([]byte(out), &r))
	}
	return r, stderr, code
}

func TestATokenIsEnoughToImport(t *testing.T) {
	t.Parallel()
	s := withTokens(t)
	file := filepath.Join(t.TempDir(), "recording.jsonl")
	lines := recording(t, file, 5, 4, 20)
	writing, reading := s.token("team-a", "write").Token, s.token("team-a", "read").Token

	_, stderr, code := s.importWith(reading, file)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "needs the role write, and the token has read")
	_, stderr, code = s.importWith(writing, file, "--tenant", "team-b")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, `the token is only for the tenant "team-a"`)
	_, stderr, code = s.importWith("mneme_wrong", file)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "the token is not valid")

	first, stderr, code := s.importWith(writing, file, "--wait")
	require.Zero(t, code, stderr)
	require.Equal(t, lines, first.Published)
	require.EqualValues(t, lines, first.LastSeq)
	_, stderr, code = s.importWith(reading, file)
	require.Zero(t, code, "everything is there: %s", stderr)

	// The same files over NATS, and the other way round in another tenant, bring nothing new.
	known := read[importer.Report](s, "import", file, "--token", writing, "--tenant", "team-a")
	require.Equal(t, importer.Report{Read: lines, Duplicate: lines, Conversations: 4}, known)
	other := s.token("team-b", "write").Token
	require.Equal(t, lines, read[importer.Report](s, "import", file, "--wait", "--token", other, "--tenant", "team-b").Published)
	again, stderr, code := s.importWith(other, file)
	require.Zero(t, code, stderr)
	require.Equal(t, known, again)

	admin := read[createdToken](s, "tokens", "create", "--all-tenants", "--role", "operate").Token
	var checked httpapi.Verification
	require.Eventually(t, func() bool {
		out, _, code := s.mneme("verify", "--json", "--token", admin)
		return code == exitDone && json.Unmarshal([]byte(out), &checked) == nil
	}, mnemetest.Patience, 50*time.Millisecond)
	require.True(t, checked.Equal)
}

func TestAnImportOverNATSGoesToTheLogThatTheServerServes(t *testing.T) {
	t.Parallel()
	one, two := up(t, t.TempDir()), up(t, t.TempDir())
	file := filepath.Join(t.TempDir(), "recording.jsonl")
	lines := recording(t, file, 5, 1, 1)
	_, stderr, code := mneme(t, "import", file, "--url", one.HTTP, "--nats-url", two.NATS)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, one.HTTP+" does not serve the log of "+two.NATS+": name servers of the same mneme")
	_, stderr, code = mneme(t, "import", file, "--token", "any", "--url", one.HTTP, "--nats-url", one.NATS)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "name the tenant with --tenant")
	require.Contains(t, stderr, "--over http")

	// A NATS server in the environment does not keep anyone from importing over HTTP.
	out, stderr, code := mnemeWith(t, []string{"MNEME_NATS_URL=nats://127.0.0.1:1"}, "import", file, "--json", "--url", one.HTTP, "--over", "http")
	require.Zero(t, code, stderr)
	require.Contains(t, out, fmt.Sprintf(`"published":%d,`, lines))
	_, stderr, code = mnemeWith(t, []string{"MNEME_NATS_URL=nats://127.0.0.1:1"}, "import", file, "--json", "--url", one.HTTP)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "name the server with --nats-url")
}

func TestACommandForNATSSaysThatATokenIsNotEnough(t *testing.T) {
	t.Parallel()
	if conn, err := net.Dial("tcp", "127.0.0.1:4222"); err == nil {
		require.NoError(t, conn.Close())
		t.Skip("NOT RUN: a server listens on 127.0.0.1:4222, where these commands look for NATS unless they are told")
	}
	file := filepath.Join(t.TempDir(), "recording.jsonl")
	recording(t, file, 5, 1, 1)
	for _, args := range [][]string{{"tail", "--over", "nats", "--tenant", "a"}, {"redact", "scan", "--all-tenants"}, {"tokens", "list"}, {"partitions"}, {"import", "--over", "nats", "--tenant", "a", file}} {
		_, stderr, code := mneme(t, append(args, "--token", "any", "--url", "http://127.0.0.1:1")...)
		require.Equal(t, exitFailed, code, "%v: %s", args, stderr)
		require.Contains(t, stderr, "the token for HTTP is not enough", args)
	}
}

func TestBothWaysOfAnImportReportTheSame(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "recording.jsonl")
	var text strings.Builder
	for n := range 12 {
		content := fmt.Sprint("message ", n)
		switch n {
		case 3: // too large for any log
			content = strings.Repeat("x", events.MaxEventBytes)
		case 7: // the id of another message
			n = 5
		}
		fmt.Fprintf(&text, `{"kind":"message","conversation_id":"c","id":"m%d","role":"user","content":%q}`+"\n", n, content)
	}
	text.WriteString("{\"kind\":\"nonsense\"}\n")
	require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o600))
	var stdout, stderr [2]string
	for i, over := range []string{"http", "nats"} {
		s := up(t, filepath.Join(dir, over))
		var code int
		stdout[i], stderr[i], code = s.mneme("import", file, "--json", "--over", over)
		require.Equal(t, exitFailed, code)
	}
	require.Equal(t, stdout[1], stdout[0])
	require.Equal(t, stderr[1], stderr[0])
	require.Contains(t, stdout[0], `"read":13,"published":10,"duplicate":0,"rejected":3,`)
	require.Contains(t, stderr[0], `line 8: the log has different content under the id "m5" at sequence 5; the first one counts`)
}

func TestALogIsCopiedAsItIsOverHTTP(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := up(t, filepath.Join(dir, "one")), up(t, filepath.Join(dir, "two"))
	file := filepath.Join(dir, "log.ndjson")
	framed := `<mneme-context id=\"abc\" seq=\"1\">\nwhat was shown\n</mneme-context>`
	line := `{"specversion":"1.0","type":"dev.mneme.message.created.v1","source":"test","id":"1","subject":"c","data":{"message_id":"m1","role":"user","content":"look: ` + framed + `"}}`
	require.NoError(t, os.WriteFile(file, []byte(line+"\n"), 0o600))
	require.Equal(t, 1, read[importer.Report](one, "import", file, "--wait", "--over", "nats").Published)
	for range 2 {
		r := read[importer.Report](two, "import", file, "--wait", "--over", "http")
		require.Equal(t, 1, r.Published+r.Duplicate)
		require.Zero(t, r.Rejected)
	}
	want, got := read[httpapi.Verification](one, "verify"), read[httpapi.Verification](two, "verify")
	for i, p := range want.Projections {
		require.Equal(t, p.Hash, got.Projections[i].Hash, p.Name)
	}
}

func TestAnImportSurvivesALinkThatIsCutAgainAndAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "recording.jsonl")
	lines := recording(t, file, 3, 30, 30)
	s := up(t, filepath.Join(dir, "data"))
	link, flags := slowLink(t, s, "http")
	client := startImport(t, append(flags, file)...)
	s.awaitEvent()
	for range 3 {
		link.Reset()
		time.Sleep(300 * time.Millisecond)
	}
	link.Refuse()
	require.Eventually(t, func() bool { return strings.Contains(client.errs.String(), "waiting, and trying again") }, mnemetest.Patience, time.Millisecond, "the import notices")
	require.NoError(t, link.Listen())
	link.Heal()
	report := client.wait()
	require.Equal(t, lines, report.Published+report.Duplicate)
	require.Equal(t, lines, read[importer.Report](s, "import", file, "--wait", "--over", "http").Duplicate)
	require.True(t, read[httpapi.Verification](s, "verify").Equal)
}

func TestAnImportEndsWhenItsTokenIsRevoked(t *testing.T) {
	t.Parallel()
	s := withTokens(t)
	file := filepath.Join(t.TempDir(), "recording.jsonl")
	lines := recording(t, file, 3, 30, 30)
	token, other := s.token("team-a", "write"), s.token("team-a", "write")
	_, flags := slowLink(t, s, "http")
	client := startImport(t, append(flags, file, "--token", token.Token)...)
	require.Eventually(t, func() bool {
		out, _, code := s.mneme("conversations", "list", "--token", other.Token, "--json")
		return code == exitDone && strings.Contains(out, "testagent:0")
	}, mnemetest.Patience, time.Millisecond)
	_, stderr, code := s.mneme("tokens", "revoke", token.ID)
	require.Zero(t, code, stderr)
	require.Error(t, client.cmd.Wait(), "it was through before: the recording is too short")
	require.Contains(t, client.errs.String(), "revoked or expired")
	require.Contains(t, client.errs.String(), "import the same files again to continue")

	rest, stderr, code := s.importWith(other.Token, file, "--wait")
	require.Zero(t, code, stderr)
	require.Equal(t, lines, rest.Published+rest.Duplicate)
	require.Positive(t, rest.Duplicate)
}

func TestAnImportKeepsToTheQuotasOfItsTenant(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	quotas := filepath.Join(dir, "quotas.yaml")
	require.NoError(t, os.WriteFile(quotas, []byte("tenants: {slow: {events_per_second: 100}, full: {max_events: 1500}}\n"), 0o600))
	s := &server{Server: mnemetest.UpWith(t, "--data", filepath.Join(dir, "data"), "--quotas-file", quotas), t: t}
	file := filepath.Join(dir, "recording.jsonl")
	lines := recording(t, file, 3, 5, 60)
	require.Greater(t, lines, 2000, "twice what the quotas allow at once: a slow machine does not get through in the ten seconds that the other half takes")

	out, stderr, code := s.mneme("import", file, "--json", "--over", "http", "--tenant", "slow")
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, `waiting, and trying again: the tenant "slow" is over its quota of 100 events per second`)
	require.Contains(t, out, fmt.Sprintf(`"published":%d,`, lines))

	_, stderr, code = s.mneme("import", file, "--over", "http", "--tenant", "full")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, `the tenant "full" is over its quota max_events`)
	require.Contains(t, stderr, "import the same files again to continue")
	require.NotContains(t, stderr, "trying again", "waiting does not help")
	require.Equal(t, lines, read[importer.Report](s, "import", file, "--over", "nats", "--tenant", "full").Read, "operators can import beyond it")
}

func TestAnImportPassesAProxyThatTakesOnlySmallRequests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := up(t, filepath.Join(dir, "data"))
	to, err := url.Parse(s.HTTP)
	require.NoError(t, err)
	var refused, passed atomic.Int64
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.ContentLength > 16<<10: // as nginx does with client_max_body_size
			refused.Add(1)
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			fmt.Fprint(w, "<html><title>413 Request Entity Too Large</title></html>")
		default:
			passed.Add(1)
			pass.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(proxy.Close)
	file := filepath.Join(dir, "recording.jsonl")
	lines := recording(t, file, 3, 5, 60)
	random := make([]byte, 150<<10) // compression does not make it small
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	large := fmt.Sprintf(`{"kind":"message","conversation_id":"large","id":"m1","role":"user","content":"%x"}`+"\n", random)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, append([]byte(large), text...), 0o600))

	out, stderr, code := mneme(t, "import", file, "--json", "--url", proxy.URL)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, fmt.Sprintf("%s: line 1: the event is too large for the server: a proxy before %s answered 413 Request Entity Too Large\n", file, proxy.URL))
	require.Contains(t, out, fmt.Sprintf(`"published":%d,"duplicate":0,"rejected":1,`, lines))
	require.Less(t, refused.Load(), int64(30), "it sends smaller requests from then on")
	require.Less(t, passed.Load(), int64(60), "which have many events each")
}

func TestAnOlderServerRefusesNoEvents(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"title":"Unprocessable Entity","detail":"query.as_is: unknown query parameter; known are tenant","errors":[{"message":"unknown query parameter; known are tenant","location":"query.as_is"}]}`)
	}))
	t.Cleanup(s.Close)
	e, err := events.New("c", "test", "1", &events.MessageCreated{MessageID: "m1", Role: "user", Content: "Hello"})
	require.NoError(t, err)
	_, err = (&remoteLog{api: newClient(s.URL, "")}).PublishAll(t.Context(), "", []events.Event{e, e})
	require.ErrorContains(t, err, "the server is of an older version than this program: update it")
	require.NotErrorIs(t, err, events.ErrInvalid, "an import would leave the event out")
	require.False(t, errors.As(err, new(*program.UsageError)), "the command is right: %s", err)
}
