package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/netlink"
)

// slowLink returns a link to a server, and the flags of an import over it, which takes far longer than a look at the log:
// it is in the middle when its first events are seen there.
func slowLink(t *testing.T, s *server, over string) (*netlink.Link, []string) {
	t.Helper()
	to := map[string]string{"nats": strings.TrimPrefix(s.ready.NATS, "nats://"), "http": strings.TrimPrefix(s.ready.HTTP, "http://")}[over]
	link, err := netlink.New(to)
	require.NoError(t, err)
	t.Cleanup(link.Close)
	link.Delay(50 * time.Millisecond) // each way; a batch waits for several answers, and may take 5 s for each
	if over == "nats" {
		return link, []string{"--url", s.ready.HTTP, "--nats-url", "nats://" + link.Address()}
	}
	return link, []string{"--url", "http://" + link.Address()}
}

// awaitEvent waits until the log of a server has an event.
func (s *server) awaitEvent() {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		response, err := http.Get(s.ready.HTTP + "/v1/status")
		if err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		var status httpapi.Status
		return json.NewDecoder(response.Body).Decode(&status) == nil && status.Stream.Head > 0
	}, mnemetest.Patience, 10*time.Millisecond)
}

func TestAnInterruptedImportReportsProgressAndResumes(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	for _, over := range []string{"http", "nats"} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "recording.jsonl")
			lines := recording(t, file, 3, 30, 30)
			s := up(t, filepath.Join(dir, "data"))
			link, flags := slowLink(t, s, over)

			path, err := mnemetest.Binary()
			require.NoError(t, err)
			var errs bytes.Buffer
			client := exec.Command(path, append(flags, "import", file)...)
			client.Stderr = &errs
			require.NoError(t, client.Start())
			s.awaitEvent()
			require.NoError(t, client.Process.Signal(os.Interrupt))
			link.Heal()
			var exit *exec.ExitError
			require.True(t, errors.As(client.Wait(), &exit), "it was through before the interrupt: the recording is too short; %s", errs.String())
			require.Equal(t, exitFailed, exit.ExitCode())
			require.Regexp(t, regexp.MustCompile(`interrupted(: at least [\d,]+ events are in the log)?; import the same files again to continue`), errs.String())

			rest := read[importer.Report](s, "import", file, "--wait", "--over", over)
			require.Equal(t, lines, rest.Published+rest.Duplicate)
			require.Positive(t, rest.Published)
			require.Positive(t, rest.Duplicate)
			require.True(t, read[httpapi.Verification](s, "verify").Equal)
		})
	}
}

func TestAnImportGoesOnWhenItsServerIsBack(t *testing.T) {
	t.Parallel()
	for _, over := range []string{"http", "nats"} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file, data := filepath.Join(dir, "recording.jsonl"), filepath.Join(dir, "data")
			lines := recording(t, file, 3, 30, 30)
			listen := []string{"--data", data, "--listen", "127.0.0.1:" + mnemetest.FreePort(t), "--nats-listen", "127.0.0.1:" + mnemetest.FreePort(t)}
			start := func() *server {
				s := mnemetest.UpWith(t, listen...)
				return &server{s, t, ready{HTTP: s.HTTP, NATS: s.NATS, Data: s.Data}}
			}
			s := start()
			link, flags := slowLink(t, s, over)
			client := startImport(t, append(flags, file)...)
			s.awaitEvent()
			s.kill()
			require.Eventually(t, func() bool { return strings.Contains(client.errs.String(), "waiting, and trying again") }, mnemetest.Patience, time.Millisecond, "the import notices")
			link.Heal()
			s = start()

			report := client.wait()
			require.Equal(t, lines, report.Published+report.Duplicate)
			again := read[importer.Report](s, "import", file, "--wait", "--over", over)
			require.Equal(t, lines, again.Duplicate)
			require.True(t, read[httpapi.Verification](s, "verify").Equal)
		})
	}
}

func TestTheNewestRecordingIsTheNewestConversation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := up(t, filepath.Join(dir, "data"))
	folder := filepath.Join(dir, "recordings")
	require.NoError(t, os.Mkdir(folder, 0o755))
	now := time.Now()
	for age, name := range []string{"b", "c", "copied", "a"} {
		file := filepath.Join(folder, name+".jsonl")
		changed := now.Add(-time.Duration(age+1) * time.Hour)
		said := ""
		if name == "copied" { // its lines know when they were written, the file does not
			said, changed = fmt.Sprintf(`,"time":%q`, changed.Format(time.RFC3339)), now.Add(-time.Minute)
		}
		line := fmt.Sprintf(`{"kind":"message","conversation_id":%q,"id":"m1","role":"user","content":"Hello"%s}`, name, said)
		require.NoError(t, os.WriteFile(file, []byte(line+"\n"), 0o644))
		require.NoError(t, os.Chtimes(file, changed, changed))
	}
	require.Equal(t, 4, read[importer.Report](s, "import", folder, "--wait").Published)
	var ids []string
	for _, c := range read[[]httpapi.Conversation](s, "conversations", "list") {
		ids = append(ids, c.ID)
	}
	require.Equal(t, []string{"b", "c", "copied", "a"}, ids)
}

func TestAnExportIsImportedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, exported := filepath.Join(dir, "recording.jsonl"), filepath.Join(dir, "export.ndjson")
	lines := recording(t, file, 4, 1, 20)
	one, two := up(t, filepath.Join(dir, "one")), up(t, filepath.Join(dir, "two"))
	require.Equal(t, lines, read[importer.Report](one, "import", file, "--wait").Published)
	nothing := filepath.Join(dir, "nothing.jsonl")
	require.NoError(t, os.WriteFile(nothing, nil, 0o644))
	_, stderr, code := one.mneme("import", nothing)
	require.Zero(t, code)
	require.Equal(t, "nothing to import: there is no message and no call in 1 file\n", stderr)

	response, err := http.Get(one.ready.HTTP + "/v1/conversations/testagent:0/export")
	require.NoError(t, err)
	var body bytes.Buffer
	_, err = body.ReadFrom(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.NoError(t, os.WriteFile(exported, body.Bytes(), 0o644))

	require.Equal(t, lines, read[importer.Report](two, "import", exported, "--wait").Published)
	want, got := read[httpapi.Verification](one, "verify"), read[httpapi.Verification](two, "verify")
	for i, p := range want.Projections {
		require.Equal(t, p.Hash, got.Projections[i].Hash, p.Name)
	}
}

func TestASessionThatWasDeletedIsLeftOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	home, env := agentHome(t)
	s, projects := up(t, filepath.Join(dir, "data")), filepath.Join(home, ".claude", "projects", "-shop")
	file := filepath.Join(projects, "11111111-2222-4333-8444-555555555555.jsonl")
	require.NoError(t, os.MkdirAll(projects, 0o755))
	say := func(n int) {
		t.Helper()
		text := ""
		for i := range n {
			text += fmt.Sprintf(`{"type":"user","uuid":"u%d","cwd":"/shop","message":{"content":"prompt %d"}}`+"\n", i, i)
		}
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	run := func(args ...string) (stdout, stderr string) {
		t.Helper()
		stdout, stderr, code := s.mneme(args...)
		require.Zero(t, code, "%s %s", stdout, stderr)
		return stdout, stderr
	}
	say(2)
	run("import", projects, "--wait")
	run("erase", "conversation", "claude_code:11111111-2222-4333-8444-555555555555", "--yes")

	say(3)
	stdout, stderr := run("import", projects)
	require.Contains(t, stdout, "rejected 0")
	require.Equal(t, "left out: 4 events of conversations that were deleted\n", stderr)
	out, stderr, code := mnemeWith(t, env, "watch", "--once", "--agent", "claude-code", "--url", s.ready.HTTP)
	require.Zero(t, code, stderr)
	require.Equal(t, "published 0 events\n", out)
	require.Equal(t, importer.Report{Read: 4, Deleted: 4, Conversations: 1}, read[importer.Report](s, "import", projects))
}
