package capture

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
	"mneme.dev/mneme/internal/transcript"
	"mneme.dev/mneme/pkg/eventlog"
)

func TestMain(m *testing.M) {
	mnemetest.TryLaws(8, 4, 100)
	os.Exit(m.Run())
}

// patience is how long tests wait on a busy machine.
const patience = mnemetest.Patience

// bench is a log on a real server with a short duplicate window, a folder of transcripts, and
// what the log holds.
type bench struct {
	t      testing.TB
	server *embedded.Server
	log    *eventlog.Log
	root   string

	mu    sync.Mutex
	next  uint64
	held  map[string][]events.Event // by tenant, in order
	known map[string]importer.Known // by tenant and identity
}

func setup(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	return newBench(t)
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{
		t: t, root: t.TempDir(),
		next: 1, held: map[string][]events.Event{}, known: map[string]importer.Known{},
	}
	var conn *nats.Conn
	b.server, conn = natstest.Alone(t, embedded.Config{Listen: ":0"}, natsdeploy.Settings{MaxBytes: 64 << 20, DuplicateWindow: 100 * time.Millisecond})
	var err error
	b.log, err = eventlog.Open(mnemetest.Context(t), conn)
	require.NoError(t, err)
	return b
}

// read reads what the log got since the last call.
func (b *bench) read(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	state, err := b.log.State(ctx)
	if err != nil {
		return err
	}
	for ; b.next <= state.Head; b.next++ {
		m, err := b.log.Get(ctx, b.next)
		if err != nil {
			return err
		}
		e, at, err := m.Decode()
		if err != nil {
			return err
		}
		b.held[at.Tenant] = append(b.held[at.Tenant], e.Event)
		b.known[fmt.Sprint(at.Tenant, " ", e.Identity(at.Tenant))] = importer.Known{Seq: b.next, Content: e.Content().String()}
	}
	return nil
}

func (b *bench) lookup(tenant string) func(context.Context, []events.Event) ([]importer.Known, error) {
	return func(ctx context.Context, list []events.Event) ([]importer.Known, error) {
		if err := b.read(ctx); err != nil {
			return nil, err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		known := make([]importer.Known, len(list))
		for i, e := range list {
			known[i] = b.known[fmt.Sprint(tenant, " ", e.Identity(tenant))]
		}
		return known, nil
	}
}

func (b *bench) receiver(c Config) *Receiver {
	c.Log, c.Roots, c.Tenant = b.log, []string{b.root}, "t"
	if c.Lookup == nil {
		c.Lookup = b.lookup("t")
	}
	r := New(c)
	b.t.Cleanup(r.Close)
	return r
}

// said returns the identities and the data of a tenant's events, in the order of the log.
func (b *bench) said(t require.TestingT, tenant string) []string {
	require.NoError(t, b.read(context.Background()))
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []string
	for _, e := range b.held[tenant] {
		list = append(list, fmt.Sprint(e.Subject, " ", e.Source, " ", e.ID, " ", e.Type, " ", string(e.Data)))
	}
	return list
}

// events returns how many events of a tenant the log has.
func (b *bench) events(t require.TestingT, tenant string) int {
	require.NoError(t, b.read(context.Background()))
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.held[tenant])
}

func (b *bench) awaitEvents(n int) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return b.events(b.t, "t") >= n }, patience, 2*time.Millisecond)
	require.Equal(b.t, n, b.events(b.t, "t"))
}

func await(t testing.TB, r *Receiver, reached func(Status) bool) {
	t.Helper()
	require.Eventually(t, func() bool { return reached(r.Status()) }, patience, 2*time.Millisecond)
}

func (b *bench) path(name string) string { return filepath.Join(b.root, name) }

func add(t require.TestingT, path, text string) {
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, errors.Join(err, f.Close()))
}

func prompt(n int) string {
	return fmt.Sprintf(`{"type":"user","uuid":"u%d","sessionId":"s","message":{"content":"prompt %d"}}`+"\n", n, n)
}

func prompts(from, to int) string {
	var all strings.Builder
	for n := from; n < to; n++ {
		all.WriteString(prompt(n))
	}
	return all.String()
}

const session = "11111111-2222-4333-8444-555555555555.jsonl"

func turns(n int) string {
	var all strings.Builder
	for i := range n {
		all.WriteString(prompt(i))
		fmt.Fprintf(&all, `{"type":"assistant","uuid":"a%d","sessionId":"s","message":{"id":"m%d","content":[{"type":"text","text":"Größe %d"}]}}`+"\n", i, i, i)
		fmt.Fprintf(&all, `{"type":"assistant","uuid":"b%d","sessionId":"s","message":{"id":"m%d","content":[{"type":"tool_use","id":"toolu_%d","name":"Read","input":{"file_path":"x"}}]}}`+"\n", i, i, i)
		fmt.Fprintf(&all, `{"type":"user","uuid":"r%d","sessionId":"s","message":{"content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":"x"}]}}`+"\n", i, i)
		fmt.Fprintf(&all, `{"type":"assistant","uuid":"c%d","sessionId":"s","message":{"id":"m%d","content":[{"type":"text","text":"Done."}]}}`+"\n", i, i)
	}
	return all.String()
}

// The pieces end anywhere, in the middle of lines, of messages and of characters.
func TestATranscriptThatGrowsInPiecesGivesTheEventsOfTheFinishedFile(t *testing.T) {
	b := setup(t)
	rollout := "rollout-2026-10-05T09-00-00-01a0aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee.jsonl"
	codex, err := os.ReadFile(filepath.Join("..", "transcript", "testdata", rollout))
	require.NoError(t, err)
	claude, err := os.ReadFile(filepath.Join("..", "transcript", "testdata", session))
	require.NoError(t, err)
	continued := strings.NewReplacer(`"m1"`, `"m0"`, `"m3"`, `"m2"`).Replace(turns(5)) // messages continue after a prompt
	whole := []struct {
		agent, name string
		text        string
	}{{"claude-code", session, turns(20)}, {"claude-code", session, continued}, {"claude-code", session, string(claude)}, {"codex", rollout, string(codex)}}
	var cases atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.SampledFrom(whole).Draw(t, "transcript")
		cut := rapid.SliceOfN(rapid.IntRange(0, len(of.text)), 1, 12).Draw(t, "cuts")
		pause := rapid.SliceOfN(rapid.IntRange(0, 8), len(cut), len(cut)).Draw(t, "pauses")
		n := cases.Add(1)
		grown, finished := fmt.Sprint("grown", n), fmt.Sprint("finished", n)
		path := b.path(filepath.Join(grown, of.name))
		c, p := Config{Log: b.log, Tenant: grown, Roots: []string{b.root}, Lookup: b.lookup(grown)}, usual
		follow := rapid.Bool().Draw(t, "followed")
		if follow {
			c.Follow = func() []Folder { return []Folder{{of.agent, b.path(grown)}} }
			p = pace{walk: 20 * time.Millisecond, poll: 5 * time.Millisecond, notify: rapid.Bool().Draw(t, "notified")}
		}
		r := start(c, p)
		defer r.Close()
		ring := rapid.SampledFrom([]func(agent, session, path string) error{r.Ring, r.Began, r.Ended}).Draw(t, "doorbell")
		at := 0
		for i := range cut {
			to := min(len(of.text), at+cut[i]/3)
			add(t, path, of.text[at:to])
			at = to
			if !follow {
				require.NoError(t, ring(of.agent, "s", path))
			}
			time.Sleep(time.Duration(pause[i]) * time.Millisecond)
		}
		add(t, path, of.text[at:])
		old := time.Now().Add(-time.Hour) // or else the last message would be left out
		require.NoError(t, os.Chtimes(path, old, old))
		if !follow {
			require.NoError(t, r.Ring(of.agent, "s", path))
		}

		_, err := importer.Import(context.Background(), b.log, []transcript.File{{Path: path}}, importer.Options{Tenant: finished, Format: of.agent})
		require.NoError(t, err)
		want := b.said(t, finished)
		for end := time.Now().Add(patience); int(r.Status().Published) < len(want) && time.Now().Before(end); { // it counts after the log has the events
			time.Sleep(2 * time.Millisecond)
		}
		r.Close()
		require.Equal(t, want, b.said(t, grown))
		require.Equal(t, len(want), int(r.Status().Published))
	})
}

func TestLinesWrittenAfterTheLastDoorbellAreSeen(t *testing.T) {
	b := setup(t)
	r := b.receiver(Config{})
	path := b.path(session)
	require.NoError(t, r.Ring("claude-code", "s", path), "a hook may fire before the file exists")
	add(t, path, prompts(0, 3))
	b.awaitEvents(4)
	add(t, path, prompts(3, 5))
	b.awaitEvents(6)
	add(t, path, prompts(5, 6))
	b.awaitEvents(7)
}

func TestTheLastMessageIsImportedOnceTheFileRests(t *testing.T) {
	b := setup(t)
	r := b.receiver(Config{StillWritten: 300 * time.Millisecond})
	path := b.path(session)
	add(t, path, prompt(0)+`{"type":"assistant","uuid":"a","sessionId":"s","message":{"id":"m","content":[{"type":"text","text":"Last."}]}}`)
	require.NoError(t, r.Ring("claude-code", "s", path))
	b.awaitEvents(3)
	await(t, r, func(s Status) bool { return s.Published == 3 })
	require.Zero(t, r.Status().RefusedLines)
}

func TestTheAnswerIsImportedSoonAfterTheTurnHasEnded(t *testing.T) {
	const answer = `{"type":"assistant","uuid":"a","sessionId":"s","message":{"id":"m","content":[{"type":"text","text":"Last."}]}}` + "\n"
	b := setup(t)
	r := b.receiver(Config{}) // an answer is left out for two minutes
	path := b.path(session)
	add(t, path, prompt(0))
	require.NoError(t, r.Began("claude-code", "s", path))
	b.awaitEvents(2)
	require.NoError(t, r.Ended("claude-code", "s", path))
	add(t, path, answer) // the hook fires before it is on disk
	now := time.Now().Add(-late / 2)
	require.NoError(t, os.Chtimes(path, now, now)) // on a busy machine too
	b.awaitEvents(3)
	await(t, r, func(s Status) bool { return s.Published == 3 })

	subagent := b.path(filepath.Join(strings.TrimSuffix(session, ".jsonl"), "subagents", "agent-1.jsonl"))
	add(t, subagent, prompt(1)+answer)
	require.NoError(t, r.Ended("claude-code", "s", subagent))
	b.awaitEvents(6)
	require.Zero(t, r.Status().RefusedLines)
}

func TestOnlyWhatIsWrittenWithTheEndOfATurnBelongsToIt(t *testing.T) {
	b := setup(t)
	r := b.receiver(Config{Lookup: func(context.Context, []events.Event) ([]importer.Known, error) { return nil, errors.New("away") }}) // nothing is read
	path := b.path(session)
	add(t, path, prompt(0))
	at := func(change time.Duration) time.Time {
		t.Helper()
		r.mu.Lock()
		ended := r.files[key{"claude-code", path}].ended
		r.mu.Unlock()
		changed := time.Now().Add(change)
		if !ended.IsZero() {
			changed = ended.Add(change)
		}
		require.NoError(t, os.Chtimes(path, changed, changed))
		info, err := os.Stat(path)
		require.NoError(t, err)
		at := answeredAt(info, ended)
		if !at.IsZero() {
			require.False(t, at.Before(ended.Add(importer.TurnWritten)))
			require.False(t, at.Before(info.ModTime().Add(importer.TurnWritten)))
		}
		return at
	}
	require.NoError(t, r.Ring("claude-code", "s", path))
	require.Zero(t, at(0), "no turn has ended")
	require.NoError(t, r.Ended("claude-code", "s", path))
	require.NotZero(t, at(0))
	require.NotZero(t, at(-time.Hour))
	require.NotZero(t, at(late))
	require.Zero(t, at(2*late), "the next turn has begun")
	require.NoError(t, r.Ring("claude-code", "s", path))
	require.NotZero(t, at(0), "a doorbell that knows of no turn")
	require.NoError(t, r.Began("claude-code", "s", path))
	require.Zero(t, at(0))
}

func TestADoorbellDuringAnImportIsNotLost(t *testing.T) {
	b := setup(t)
	path := b.path(session)
	add(t, path, prompts(0, 3))
	entered, release := make(chan bool), make(chan bool)
	c := Config{Log: b.log, Roots: []string{b.root}, Tenant: "t", Lookup: func(ctx context.Context, list []events.Event) ([]importer.Known, error) {
		select {
		case entered <- true:
			<-release
		case <-release:
		}
		return b.lookup("t")(ctx, list)
	}}
	r := start(c, pace{}) // only doorbells lead to a look
	t.Cleanup(r.Close)
	require.NoError(t, r.Ring("claude-code", "s", path))
	<-entered
	add(t, path, prompts(3, 5))
	for range 10_000 {
		require.NoError(t, r.Ring("claude-code", "s", path))
	}
	close(release)
	b.awaitEvents(6)
	await(t, r, func(s Status) bool { return s.Waiting == 0 })
	require.EqualValues(t, 2, r.Status().Imports)
	require.EqualValues(t, 10_001, r.Status().Rings)
	require.Equal(t, 1, r.Status().Files)

	require.NoError(t, r.Ring("claude-code", "s", path))
	await(t, r, func(s Status) bool { return s.Waiting == 0 })
	require.EqualValues(t, 2, r.Status().Imports, "an unchanged file is not read again")
}

func TestTenThousandFilesStayBounded(t *testing.T) {
	b := setup(t)
	entered, release := make(chan bool), make(chan bool)
	r := b.receiver(Config{Lookup: func(context.Context, []events.Event) ([]importer.Known, error) {
		entered <- true
		<-release
		return nil, errors.New("the store is away")
	}})
	path := b.path(session)
	add(t, path, prompt(0))
	require.NoError(t, r.Ring("claude-code", "s", path))
	<-entered
	busy := 0
	for i := range 10_000 {
		if err := r.Ring("claude-code", "s", b.path(fmt.Sprint(i, ".jsonl"))); err != nil {
			require.ErrorIs(t, err, ErrBusy)
			busy++
		}
	}
	require.Equal(t, 10_000-(MaxFiles-1), busy)
	require.Equal(t, MaxFiles, r.Status().Files)
	close(release)
	// The files do not exist, so one that does takes the place of one of them.
	require.Eventually(t, func() bool { return r.Ring("codex", "s", b.path("new.jsonl")) == nil }, patience, 5*time.Millisecond)
	require.Equal(t, MaxFiles, r.Status().Files)
	require.LessOrEqual(t, len(r.marks), MaxFiles)
}

func TestFilesThatMayNotBeReadAreRefused(t *testing.T) {
	b := setup(t)
	var logged mnemetest.Log
	r := b.receiver(Config{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	outside := filepath.Join(t.TempDir(), session)
	add(t, outside, prompt(0))
	require.NoError(t, os.Symlink(outside, b.path("out.jsonl")))
	require.NoError(t, os.Symlink(filepath.Dir(outside), b.path("folder")))
	add(t, b.path("secret.txt"), prompt(0))
	require.NoError(t, os.Symlink(b.path("secret.txt"), b.path("in.jsonl")))
	require.NoError(t, os.Mkdir(b.path("dir.jsonl"), 0o755))
	require.NoError(t, os.Symlink(b.path("loop.jsonl"), b.path("loop.jsonl")))
	short, err := os.MkdirTemp("", "c") // the path of a socket is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	socket, err := net.Listen("unix", filepath.Join(short, "s.jsonl"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = socket.Close() })
	r.Roots = append(r.Roots, short) // before any doorbell

	refused := []string{
		outside, b.path("out.jsonl"), b.path("folder/" + session), b.path("in.jsonl"), b.path("dir.jsonl"), b.path("loop.jsonl"),
		socket.Addr().String(), b.root + "/../none.jsonl", "/etc/none.jsonl", "/nowhere/at/all.jsonl",
	}
	for range 2 {
		for _, path := range refused {
			require.NoError(t, r.Ring("claude-code", "s", path))
		}
		await(t, r, func(s Status) bool { return s.Files == 0 })
	}
	require.EqualValues(t, 2*len(refused), r.Status().Refused)
	require.Contains(t, r.Status().LastError, "it is not in a folder of transcripts")
	require.Equal(t, len(refused), strings.Count(logged.String(), "a hook named a file that may not be read"), "each is logged once")
	for _, path := range []string{"", "relative.jsonl", b.path("secret.txt"), b.path("x.json"), "/" + strings.Repeat("x", maxPath) + ".jsonl"} {
		require.ErrorIs(t, r.Ring("claude-code", "s", path), ErrPath, path)
	}
	require.ErrorIs(t, r.Ring("zed", "s", b.path("x.jsonl")), ErrAgent)
	require.Empty(t, b.said(t, "t"))
	require.Zero(t, r.Status().Imports)
}

func TestARootMayBeALink(t *testing.T) {
	b := setup(t)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(b.root, link))
	add(t, b.path(session), prompts(0, 2))
	r := New(Config{Log: b.log, Tenant: "t", Roots: []string{link}, Lookup: b.lookup("t")})
	t.Cleanup(r.Close)
	require.NoError(t, r.Ring("claude-code", "s", b.path(session)))
	b.awaitEvents(3)
	require.NoError(t, r.Ring("claude-code", "s", filepath.Join(link, session)))
	await(t, r, func(s Status) bool { return s.Files == 2 && s.Imports > 0 }) // an import counts a moment after its events
	require.EqualValues(t, 1, r.Status().Imports, "it is the same file")
}

func TestTranscriptsOfSubagentsComeWithTheirSession(t *testing.T) {
	b := setup(t)
	r := b.receiver(Config{})
	folder := b.path(strings.TrimSuffix(session, ".jsonl") + "/subagents")
	child := func(n int) string {
		return fmt.Sprintf(`{"type":"user","uuid":"c%d","sessionId":"s","isSidechain":true,"message":{"content":"task"}}`+"\n", n)
	}
	add(t, b.path(session), prompt(0))
	add(t, filepath.Join(folder, "agent-a1.jsonl"), child(1))
	add(t, filepath.Join(folder, "agent-a1.meta.json"), "{}")
	add(t, filepath.Join(folder, "notes.jsonl"), child(2))
	require.NoError(t, os.Symlink(filepath.Join(t.TempDir(), session), filepath.Join(folder, "agent-out.jsonl")))
	require.NoError(t, r.Ring("claude-code", "s", b.path(session)))
	b.awaitEvents(4)
	add(t, filepath.Join(folder, "agent-a2.jsonl"), child(3)) // seen without a doorbell
	b.awaitEvents(6)
	require.Contains(t, strings.Join(b.said(t, "t"), "\n"), "claude_code:s:agent-a2 ")
}

func TestCloseInTheMiddleLosesNothing(t *testing.T) {
	b := setup(t)
	path := b.path(session)
	add(t, path, prompts(0, 1200))
	entered := make(chan bool)
	calls := 0
	r := b.receiver(Config{Lookup: func(ctx context.Context, list []events.Event) ([]importer.Known, error) {
		if calls++; calls == 2 { // the first batch is published
			close(entered)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return b.lookup("t")(ctx, list)
	}})
	require.NoError(t, r.Ring("claude-code", "s", path))
	<-entered
	began := time.Now()
	r.Close()
	r.Close()
	require.Less(t, time.Since(began), patience/2)
	require.ErrorIs(t, r.Ring("claude-code", "s", path), ErrClosed)
	b.awaitEvents(1000)
	require.Empty(t, r.Status().LastError, "the end is not an error")

	require.NoError(t, b.receiver(Config{}).Ring("claude-code", "s", path))
	b.awaitEvents(1201)
}

func TestAFailureOfTheLogIsTriedAgain(t *testing.T) {
	b := setup(t)
	limit := func(bytes int64) {
		js, err := jetstream.New(b.log.Conn())
		require.NoError(t, err)
		stream, err := js.Stream(mnemetest.Context(t), natsdeploy.Stream)
		require.NoError(t, err)
		c := stream.CachedInfo().Config
		c.MaxBytes = bytes
		_, err = js.UpdateStream(mnemetest.Context(t), c)
		require.NoError(t, err)
	}
	limit(100 << 10)
	r := b.receiver(Config{})
	path := b.path(session)
	add(t, path, prompts(0, 300)) // more than 100 KiB with headers
	require.NoError(t, r.Ring("claude-code", "s", path))
	await(t, r, func(s Status) bool { return strings.Contains(s.LastError, eventlog.ErrFull.Error()) })
	require.Equal(t, 1, strings.Count(r.Status().LastError, path))
	imports := r.Status().Imports
	for range 100 { // doorbells don't shorten the pause
		require.NoError(t, r.Ring("claude-code", "s", path))
	}
	require.LessOrEqual(t, r.Status().Imports, imports+1)
	limit(64 << 20)
	b.awaitEvents(301)
	await(t, r, func(s Status) bool { return s.LastError == "" && s.LastErrorTime.IsZero() })
}

func TestTheStatusCountsEachLineOnce(t *testing.T) {
	b := setup(t)
	r := b.receiver(Config{})
	path := b.path(session)
	add(t, path, prompt(0)+`{"type":"horoscope","uuid":"h","version":"9.9"}`+"\n"+`{"type":"user","uuid":"x"}`+"\n"+"\x00\xff\n"+prompt(1))
	require.NoError(t, r.Ring("claude-code", "s", path))
	b.awaitEvents(3)
	add(t, path, prompt(2))
	require.NoError(t, r.Ring("claude-code", "s", path))
	b.awaitEvents(4)
	await(t, r, func(s Status) bool { return s.Published == 4 })
	s := r.Status()
	require.Equal(t, map[string]int{"claude-code 9.9: horoscope": 1}, s.Skipped)
	require.Equal(t, 2, s.RefusedLines)
	require.GreaterOrEqual(t, s.Imports, uint64(2), "the file was imported before and after it grew")
	require.WithinDuration(t, time.Now(), s.LastImport["claude-code"], time.Minute)
	require.Empty(t, s.LastError)
}

func TestASessionThatWasDeletedIsNotRefused(t *testing.T) {
	b := setup(t)
	r := b.receiver(Config{Lookup: func(_ context.Context, list []events.Event) ([]importer.Known, error) {
		known := make([]importer.Known, len(list))
		for i := range known {
			known[i].Seq = 7 // of the deletion
		}
		return known, nil
	}})
	path := b.path(session)
	for n := range 2 {
		add(t, path, prompt(n))
		require.NoError(t, r.Ring("claude-code", "s", path))
		await(t, r, func(s Status) bool { return s.Deleted == n+2 })
	}
	require.Zero(t, r.Status().RefusedLines)
	require.Zero(t, b.events(t, "t"))
}

func TestRootsFollowTheAgentsVariables(t *testing.T) {
	t.Setenv("HOME", "/home/lea")
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	t.Setenv("CODEX_HOME", "/data/codex")
	roots, err := Roots("claude-code")
	require.NoError(t, err)
	require.Equal(t, []string{"/home/lea/.claude/projects"}, roots)
	roots, err = Roots("codex")
	require.NoError(t, err)
	require.Equal(t, []string{"/data/codex/sessions"}, roots)
	t.Setenv("GEMINI_CLI_HOME", "/data/gemini")
	t.Setenv("XDG_DATA_HOME", "")
	roots, err = Roots("gemini-cli")
	require.NoError(t, err)
	require.Equal(t, []string{"/data/gemini/.gemini/tmp"}, roots)
	roots, err = Roots("opencode")
	require.NoError(t, err)
	require.Equal(t, []string{"/home/lea/.local/share/opencode"}, roots)
	t.Setenv("XDG_CONFIG_HOME", "/config")
	roots, err = Roots("cursor")
	require.NoError(t, err)
	require.Subset(t, roots, []string{"/home/lea/.cursor/chats", "/config/Cursor/User/globalStorage"})
	t.Setenv("OPENCLAW_HOME", "~/claw")
	roots, err = Roots("openclaw")
	require.NoError(t, err)
	require.Equal(t, []string{"/home/lea/claw/.openclaw/agents"}, roots)
	_, err = Roots("zed")
	require.ErrorIs(t, err, ErrAgent)
	t.Setenv("HOME", "")
	_, err = Roots("claude-code")
	require.ErrorContains(t, err, "CLAUDE_CONFIG_DIR")
}
