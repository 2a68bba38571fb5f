package doctor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/version"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

const nowhere = "127.0.0.1:1"

// examine runs all checks and returns the most severe finding of each.
func examine(t *testing.T, url, natsURL, data string) map[string]Finding {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), mnemetest.Patience)
	defer cancel()
	gravity := map[Level]int{OK: 0, Warning: 1, Failed: 2}
	all := map[string]Finding{}
	doing := []string{}
	tell := func(what string) { doing = append(doing, what) }
	for _, f := range Run(ctx, Options{Client: settings.Client{URL: url, NATSURL: natsURL}, Data: data, Mine: version.Get(), Doing: tell}) {
		require.NotEmpty(t, f.Detail, f.Check)
		if old, ok := all[f.Check]; !ok || gravity[f.Level] > gravity[old.Level] {
			all[f.Check] = f
		}
	}
	require.Contains(t, doing, "NATS and the log")
	if found, ok := all["read model graph"]; ok && found.Level == OK {
		require.Contains(t, doing, "read model graph, reading its file for up to 10s")
	}
	return all
}

// up starts everything in one process.
func up(t *testing.T, data string) *instance.Instance {
	t.Helper()
	i, err := instance.Start(t.Context(), instance.Config{
		Data: data, Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", MaxBytes: 256 << 20, Logger: settings.Logger(os.Stderr, "error", "text"),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = i.Close() })
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(i.Status(), func(s projection.Status) bool { return s.State == projection.StateIdle })
	}, mnemetest.Patience, time.Millisecond, "it has only just begun")
	return i
}

func publish(t *testing.T, log *eventlog.Log, at time.Time) {
	t.Helper()
	e, err := events.New("c", "test", "1", &events.MessageCreated{MessageID: "m", Role: "user", Content: "hello"})
	require.NoError(t, err)
	e.Time = at
	_, err = log.Publish(mnemetest.Context(t), "default", e)
	require.NoError(t, err)
}

func TestAHealthyInstallationNeedsNothing(t *testing.T) {
	data := t.TempDir()
	i := up(t, data)
	publish(t, i.Log, time.Now())
	findings := examine(t, i.HTTPURL(), i.NATSURL(), data)
	for _, check := range []string{"settings", "open files", "nats", "jetstream", "log", "log content", "producers", "clock", "http", "projection graph", "projection files", "projection summaries", "data", "disk", "read model graph", "read model files", "read model summaries"} {
		require.Contains(t, findings, check)
		require.Equal(t, OK, findings[check].Level, "%+v", findings[check])
		require.Empty(t, findings[check].Remedy)
	}
	require.Contains(t, findings["data"].Detail, "in use by process")
	for _, model := range []string{"graph", "files", "summaries"} {
		require.Contains(t, findings["read model "+model].Detail, "a running process writes to it")
	}
}

func TestTheDataDirectoryIsCheckedWithoutAServer(t *testing.T) {
	data := t.TempDir()
	i := up(t, data)
	publish(t, i.Log, time.Now())
	require.NoError(t, i.Close())
	findings := examine(t, "http://"+nowhere, "nats://"+nowhere, data)
	for _, check := range []string{"nats", "http"} {
		require.Equal(t, Failed, findings[check].Level)
		require.Contains(t, findings[check].Remedy, "mneme up")
	}
	require.Contains(t, findings["data"].Detail, "not in use")
	require.Equal(t, OK, findings["read model graph"].Level)
	require.Contains(t, findings["read model graph"].Detail, "no process writes to it")

	again := up(t, data) // the examination holds no lock
	require.NoError(t, again.Close())

	db, err := sql.Open("sqlite", sqlitestore.WriterDSN(sqlitestore.Path(filepath.Join(data, "models"), "graph", 1)))
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "UPDATE checkpoint SET fingerprint = 'older'")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	findings = examine(t, "http://"+nowhere, "nats://"+nowhere, data)
	require.Equal(t, Warning, findings["read model graph"].Level)
	require.Contains(t, findings["read model graph"].Detail, "rebuild needed: mneme rebuild graph (it was built as older")
	require.Contains(t, findings["read model graph"].Remedy, "mneme up rebuilds it by itself")

	db, err = sql.Open("sqlite", sqlitestore.WriterDSN(sqlitestore.Path(filepath.Join(data, "models"), "graph", 1)))
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "PRAGMA user_version = 1")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	findings = examine(t, "http://"+nowhere, "nats://"+nowhere, data)
	require.Equal(t, Failed, findings["read model graph"].Level)
	require.Contains(t, findings["read model graph"].Remedy, "move "+filepath.Join(data, "models", "*-[0-9]*.db*")+" away", "as mneme up says when it starts")
}

func TestWhoeverReachesOnlyTheAPINeedsNoNATS(t *testing.T) {
	for without, want := range map[bool]Level{false: Failed, true: OK} {
		e := &examination{Options: Options{Client: settings.Client{NATSURL: "nats://" + nowhere}, WithoutNATS: without}}
		e.nats(t.Context())
		require.Len(t, e.findings, 1)
		require.Equal(t, want, e.findings[0].Level, e.findings[0].Detail)
	}
}

// With only the API named, the NATS server at the usual address may be that of another mneme.
func TestALogThatTheAPIDoesNotServeIsNotJudged(t *testing.T) {
	t.Parallel()
	mine, other := up(t, t.TempDir()), up(t, t.TempDir())
	of := func(without bool) map[string][]Finding {
		found := map[string][]Finding{}
		for _, f := range Run(mnemetest.Context(t), Options{Client: settings.Client{URL: mine.HTTPURL(), NATSURL: other.NATSURL()}, WithoutNATS: without, Mine: version.Get()}) {
			found[f.Check] = append(found[f.Check], f)
		}
		return found
	}
	unnamed := of(true)
	require.Len(t, unnamed["nats"], 1)
	require.Equal(t, OK, unnamed["nats"][0].Level)
	require.Contains(t, unnamed["nats"][0].Detail, "another log than "+mine.HTTPURL())
	require.Empty(t, unnamed["log"])
	require.Empty(t, unnamed["jetstream"])
	named := of(false)
	require.Len(t, named["log"], 2)
	require.Equal(t, Failed, named["log"][1].Level)
	require.Contains(t, named["log"][1].Remedy, "--nats-url")
}

// Nor need it be a server that mneme uses.
func TestANATSServerThatShowsNoLogIsNotJudgedIfTheAPIHasOne(t *testing.T) {
	start := func(jetStream bool) string {
		options := embedded.ServerOptions(embedded.ServerSettings{StoreDir: t.TempDir(), Host: "127.0.0.1", Port: server.RANDOM_PORT, MaxStore: 1 << 30})
		options.JetStream = jetStream
		s, err := server.NewServer(options)
		require.NoError(t, err)
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		require.True(t, s.ReadyForConnections(mnemetest.Patience))
		return s.ClientURL()
	}
	guarded := natstest.Guard(t, "acme")
	for name, url := range map[string]string{"no stream": start(true), "no JetStream": start(false), "not for this user": guarded.As("agent-acme")} {
		for _, without := range []bool{true, false} {
			e := &examination{Options: Options{Client: settings.Client{URL: "http://mneme.example", NATSURL: url}, WithoutNATS: without}}
			e.nats(mnemetest.Context(t))
			e.ofNATS = slices.Clone(e.findings)
			e.sameLog(time.Now())
			if !without {
				require.True(t, slices.ContainsFunc(e.findings, func(f Finding) bool { return f.Level == Failed }), "%s: %+v", name, e.findings)
				continue
			}
			require.Len(t, e.findings, 1, name)
			require.Equal(t, OK, e.findings[0].Level, name)
			require.Contains(t, e.findings[0].Detail, "shows this user no log, unlike http://mneme.example", name)
		}
	}
}

func TestAnotherStreamWithTheSubjectsOfTheLogIsNamed(t *testing.T) {
	t.Parallel()
	_, conn := natstest.Alone(t, embedded.Config{MaxBytes: 64 << 20}, natsdeploy.Settings{})
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(t.Context(), natsdeploy.Stream))
	copied := natsdeploy.StreamConfig(natsdeploy.Settings{MaxBytes: 1 << 20})
	copied.Name = "COPY"
	require.Eventually(t, func() bool { // a server may fail to create a stream while it still removes the files of another
		_, err := js.CreateStream(t.Context(), copied)
		return err == nil
	}, mnemetest.Patience, 10*time.Millisecond)
	e := &examination{}
	e.stream(mnemetest.Context(t), js)
	require.Len(t, e.findings, 1)
	require.Equal(t, Failed, e.findings[0].Level)
	require.Contains(t, e.findings[0].Detail, "another stream of this NATS account stores events too: COPY")
}

func TestASettingThatRemovesEventsDoesNotHideTheLoss(t *testing.T) {
	t.Parallel()
	_, conn := natstest.Alone(t, embedded.Config{MaxBytes: 64 << 20}, natsdeploy.Settings{})
	log, err := eventlog.Open(mnemetest.Context(t), conn)
	require.NoError(t, err)
	publish(t, log, time.Now())
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	stream, err := js.Stream(mnemetest.Context(t), natsdeploy.Stream)
	require.NoError(t, err)
	require.NoError(t, stream.DeleteMsg(mnemetest.Context(t), 1))
	changed := stream.CachedInfo().Config
	changed.MaxAge = time.Hour
	_, err = js.UpdateStream(mnemetest.Context(t), changed)
	require.NoError(t, err)
	e := &examination{now: time.Now}
	e.stream(mnemetest.Context(t), js)
	require.Len(t, e.findings, 2)
	require.Contains(t, e.findings[0].Detail, "max_age is 1h0m0s")
	require.Contains(t, e.findings[1].Detail, "missing from the log")
}

func TestWhatNATSRefusesTheUserIsNotTakenForASilentServer(t *testing.T) {
	server := natstest.Guard(t, "acme")
	e := &examination{Options: Options{Client: settings.Client{NATSURL: server.As("agent-acme")}}}
	e.nats(t.Context())
	last := e.findings[len(e.findings)-1]
	require.Equal(t, "jetstream", last.Check)
	require.Equal(t, Failed, last.Level)
	require.Contains(t, last.Detail, "does not let this user ask")
	require.Contains(t, last.Remedy, "operator")
}

func TestAFileThatCanNotBeReadIsNotTakenForASilentServer(t *testing.T) {
	t.Parallel()
	e := &examination{Options: Options{Client: settings.Client{NATSURL: "nats://" + nowhere, NATSTLS: settings.NATSTLS{NATSCAFile: filepath.Join(t.TempDir(), "ca.pem")}}}}
	e.nats(t.Context())
	require.Len(t, e.findings, 1)
	require.Contains(t, e.findings[0].Detail, "MNEME_NATS_CA_FILE=")
	require.Contains(t, e.findings[0].Remedy, "correct the value")
}

func TestLogProblems(t *testing.T) {
	start := func(change func(*server.Options)) (*server.Server, jetstream.JetStream) {
		options := embedded.ServerOptions(embedded.ServerSettings{StoreDir: t.TempDir(), Host: "127.0.0.1", Port: server.RANDOM_PORT, MaxStore: 1 << 30})
		options.NoSigs, options.NoLog = true, true
		change(options)
		s, err := server.NewServer(options)
		require.NoError(t, err)
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		require.True(t, s.ReadyForConnections(20*time.Second))
		conn, err := nats.Connect(s.ClientURL(), nats.Timeout(mnemetest.Handshake))
		require.NoError(t, err)
		t.Cleanup(conn.Close)
		js, err := jetstream.New(conn)
		require.NoError(t, err)
		return s, js
	}

	s, js := start(func(*server.Options) {})
	findings := examine(t, "http://"+nowhere, s.ClientURL(), "")
	require.Equal(t, OK, findings["nats"].Level, "%+v", findings["nats"])
	require.Equal(t, Failed, findings["log"].Level)
	require.Contains(t, findings["log"].Remedy, "which create it")

	cfg := natsdeploy.StreamConfig(natsdeploy.Settings{MaxBytes: 64 << 20})
	cfg.MaxAge = time.Hour
	_, err := js.CreateStream(mnemetest.Context(t), cfg)
	require.NoError(t, err)
	findings = examine(t, "http://"+nowhere, s.ClientURL(), "")
	require.Equal(t, Failed, findings["log"].Level)
	require.Contains(t, findings["log"].Detail, "max_age")

	s, _ = start(func(o *server.Options) { o.JetStream = false })
	findings = examine(t, "http://"+nowhere, s.ClientURL(), "")
	require.Equal(t, Failed, findings["jetstream"].Level)
	require.Contains(t, findings["jetstream"].Detail, "off")

	s, _ = start(func(o *server.Options) { o.MaxPayload, o.MaxPending = 1<<20, 8<<20 })
	findings = examine(t, "http://"+nowhere, s.ClientURL(), "")
	require.Equal(t, Warning, findings["nats"].Level)
	require.Contains(t, findings["nats"].Remedy, "max_payload")

	s, js = start(func(*server.Options) {})
	_, err = natsdeploy.Apply(mnemetest.Context(t), js, natsdeploy.Settings{MaxBytes: 1 << 20})
	require.NoError(t, err)
	fill := func(bytes int) {
		conn, err := nats.Connect(s.ClientURL(), nats.Timeout(mnemetest.Handshake))
		require.NoError(t, err)
		defer conn.Close()
		_, err = js.Publish(mnemetest.Context(t), "mneme.default.c.message_created", make([]byte, bytes))
		require.NoError(t, err)
	}
	fill(900_000)
	findings = examine(t, "http://"+nowhere, s.ClientURL(), "")
	require.Equal(t, Warning, findings["log"].Level, "%+v", findings["log"])
	require.Contains(t, findings["log"].Detail, "86 % full")
	fill(140_000)
	findings = examine(t, "http://"+nowhere, s.ClientURL(), "")
	require.Equal(t, Failed, findings["log"].Level)
}

func TestDataDirectoryProblems(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	require.Equal(t, Failed, examine(t, "http://"+nowhere, "nats://"+nowhere, gone)["data"].Level)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Contains(t, examine(t, "http://"+nowhere, "nats://"+nowhere, file)["data"].Detail, "is a file")

	empty := t.TempDir()
	findings := examine(t, "http://"+nowhere, "nats://"+nowhere, empty)
	require.Equal(t, OK, findings["data"].Level)
	require.Equal(t, Warning, findings["read model graph"].Level)
	require.Equal(t, Warning, findings["read model files"].Level)
	require.Equal(t, OK, findings["read model summaries"].Level, "nobody needs a summarizer")
	require.Contains(t, findings["read model summaries"].Detail, "no summarizer has run")
	left, err := os.ReadDir(empty)
	require.NoError(t, err)
	require.Empty(t, left, "looking changes nothing")

	data := t.TempDir()
	i := up(t, data)
	publish(t, i.Log, time.Now())
	require.NoError(t, i.Close())
	change := func(name, statement string) {
		db, err := sql.Open("sqlite", worker.NewStores(data, settings.Models{}).Path(name, 1))
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		_, err = db.Exec(statement)
		require.NoError(t, err)
	}
	change("files", "UPDATE checkpoint SET fingerprint='files/v0/00000000'")
	findings = examine(t, "http://"+nowhere, "nats://"+nowhere, data)
	require.Equal(t, Warning, findings["read model files"].Level)
	require.Contains(t, findings["read model files"].Detail, "mneme rebuild files")
	require.Equal(t, OK, findings["read model summaries"].Level)
	change("summaries", "UPDATE checkpoint SET fingerprint='summaries/v0/00000000'")
	require.Contains(t, examine(t, "http://"+nowhere, "nats://"+nowhere, data)["read model summaries"].Detail, "mneme rebuild summaries")
	require.Equal(t, OK, findings["read model graph"].Level)
	change("files", "PRAGMA user_version=77")
	change("graph", "UPDATE checkpoint SET halted='the log lost its end: rebuild'")
	findings = examine(t, "http://"+nowhere, "nats://"+nowhere, data)
	require.Equal(t, Failed, findings["read model files"].Level)
	require.Contains(t, findings["read model files"].Detail, "version 77")
	require.Equal(t, Failed, findings["read model graph"].Level)
	require.Contains(t, findings["read model graph"].Detail, "the log lost its end")

	require.NoError(t, os.WriteFile(worker.NewStores(data, settings.Models{}).Path("graph", 1), []byte("no database, whatever it is called, and long enough to be looked at"), 0o600))
	require.Equal(t, Failed, examine(t, "http://"+nowhere, "nats://"+nowhere, data)["read model graph"].Level)
}

// Whoever is told to start a server that runs looks for the mistake in the wrong place.
func TestAServerThatIsTooBusyToAnswerIsNotSaidToBeDown(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	busy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel() // as if the time were over
		<-r.Context().Done()
	}))
	t.Cleanup(busy.Close)
	found := Run(ctx, Options{Client: settings.Client{URL: busy.URL, NATSURL: "nats://" + nowhere}, Mine: version.Get()})
	at := slices.IndexFunc(found, func(f Finding) bool { return f.Check == "http" })
	require.Equal(t, Failed, found[at].Level)
	require.Contains(t, found[at].Detail, "has not answered in time")
	require.NotContains(t, found[at].Remedy, "mneme up")
}

func TestAServerThatAnswersWithAProblemIsQuoted(t *testing.T) {
	t.Parallel()
	waiting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusGatewayTimeout)
		_, _ = w.Write([]byte(`{"status":504,"detail":"the log's server (NATS) did not answer in time"}`))
	}))
	t.Cleanup(waiting.Close)
	found := examine(t, waiting.URL, "nats://"+nowhere, "")["http"]
	require.Equal(t, Failed, found.Level)
	require.Contains(t, found.Detail, "504 Gateway Timeout: the log's server (NATS) did not answer in time")
}

func TestDifferingClocksAndVersions(t *testing.T) {
	i := up(t, t.TempDir())
	publish(t, i.Log, time.Now().Add(3*time.Hour))
	require.Equal(t, Warning, examine(t, i.HTTPURL(), i.NATSURL(), "")["producers"].Level)

	e := &examination{Options: Options{Client: settings.Client{URL: i.HTTPURL()}, Mine: version.Info{Version: "v9.9.9"}}, now: func() time.Time { return time.Now().Add(-time.Hour) }}
	e.http(t.Context())
	require.Equal(t, "clock", e.findings[0].Check)
	require.Equal(t, Warning, e.findings[0].Level)
	require.Equal(t, Finding{Check: "http", Level: Warning, Detail: e.findings[1].Detail, Remedy: "run the same version on both sides"}, e.findings[1])
	require.Contains(t, e.findings[1].Detail, "v9.9.9")

	for name, level := range map[string]Level{"graph": Failed, "files": Failed, "summaries": OK} {
		got, what, remedy := Judge(httpapi.ProjectionStatus{Name: name, State: "absent"}, nil)
		require.Equal(t, level, got, name)
		require.NotEmpty(t, what)
		require.Equal(t, level == OK, remedy == "")
	}
	_, _, remedy := Judge(httpapi.ProjectionStatus{Name: "graph", State: "absent", Store: "neo4j"}, nil)
	require.Contains(t, remedy, "on the same Neo4j")

	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	require.Equal(t, Failed, examine(t, other.URL, "nats://"+nowhere, "")["http"].Level)
}

func TestPartitionsInTheSameStateAreOneFinding(t *testing.T) {
	t.Parallel()
	partition := func(name string, number int, lag uint64, trouble string) httpapi.ProjectionStatus {
		return httpapi.ProjectionStatus{Name: name, Partition: number, State: "live", Checkpoint: uint64(10 + number), Lag: lag, Error: trouble}
	}
	e := &examination{now: time.Now}
	e.reported(httpapi.Status{Projections: []httpapi.ProjectionStatus{
		partition("graph", 0, 1, ""), partition("graph", 1, 2, ""), partition("graph", 2, 0, "no answer"), partition("graph", 3, 0, ""),
		partition("files", 0, 0, ""),
	}})
	var said []string
	for _, f := range e.findings {
		said = append(said, f.Check+": "+f.Detail)
	}
	require.Equal(t, []string{
		"projection graph: partitions 0 to 1 live, lag 3",
		"projection graph: partition 2 live, checkpoint 12, lag 0: no answer",
		"projection graph: partition 3 live, checkpoint 13, lag 0",
		"projection files: partition 0 live, checkpoint 10, lag 0",
	}, said)
}

// With a NATS server of its own, everything else looks well while the log takes no writes.
func TestAServerThatCantKnowWhetherTheLogTakesWritesSaysWhoDoes(t *testing.T) {
	t.Parallel()
	e := &examination{now: time.Now}
	e.reported(httpapi.Status{Processes: []httpapi.ProcessStatus{{Program: "ingestor"}, {Program: "context-api"}}})
	require.Len(t, e.findings, 1)
	require.Equal(t, "log writes", e.findings[0].Check)
	require.Contains(t, e.findings[0].Detail, "/healthz")
	e = &examination{now: time.Now}
	e.reported(httpapi.Status{})
	require.Empty(t, e.findings)
}

func TestPersistentProblemsAreFailuresWithARemedy(t *testing.T) {
	for name, c := range map[string]struct {
		status httpapi.ProjectionStatus
		level  Level
		remedy string
	}{
		"a full disk":          {httpapi.ProjectionStatus{Name: "graph", State: "catching up", Error: fmt.Errorf("%w: database or disk is full (13)", projection.ErrDisk).Error()}, Failed, DiskRemedy},
		"damage":               {httpapi.ProjectionStatus{Name: "files", State: "damaged", Error: "malformed"}, Failed, "mneme rebuild files"},
		"damage met writing":   {httpapi.ProjectionStatus{Name: "graph", State: "halted", Error: (&projection.DamagedError{Projection: "graph", Err: errors.New("malformed (11)")}).Error()}, Failed, "mneme rebuild graph"},
		"trouble that may end": {httpapi.ProjectionStatus{Name: "graph", State: "catching up", Error: "no answer"}, Warning, "it retries by itself; if the error persists, check the log of ingestor"},
		"a model's key":        {httpapi.ProjectionStatus{Name: "summaries", State: "live", Error: "2 conversations are waiting to be summarized: the model is not available: not asked, because it has failed: HTTP 401, check the key"}, Warning, "correct MNEME_LLM_URL, MNEME_LLM_MODEL or MNEME_LLM_KEY of summarizer or mneme up; what waits is done then"},
		"another endpoint":     {httpapi.ProjectionStatus{Name: "embeddings", State: "catching up", Error: "the endpoint answers HTTP 404: check the URL and the model"}, Warning, "correct MNEME_EMBEDDINGS_URL, MNEME_EMBEDDINGS_MODEL or MNEME_EMBEDDINGS_KEY of summarizer or mneme up; what waits is done then"},
		"a busy endpoint":      {httpapi.ProjectionStatus{Name: "embeddings", State: "catching up", Error: "the endpoint answers HTTP 500"}, Warning, "it retries by itself; if the error persists, check the log of summarizer"},
	} {
		level, what, remedy := Judge(c.status, nil)
		require.Equal(t, c.level, level, name)
		require.Equal(t, c.status.Error, what, name)
		require.Equal(t, c.remedy, remedy, name)
	}
}

func TestAReadModelThatIsBeingRebuiltNeedsNobody(t *testing.T) {
	t.Parallel()
	halted := httpapi.ProjectionStatus{Name: "graph", State: "halted", Error: "rebuild needed: mneme rebuild graph"}
	for state, want := range map[string]Level{"building": OK, "failed": Failed, "canceled": Failed} {
		level, what, _ := Judge(halted, []httpapi.Rebuild{{Projection: "files", State: "building"}, {Projection: "graph", State: state}})
		require.Equal(t, want, level, state)
		require.Equal(t, want == Failed, what == halted.Error, what)
	}
}

func TestADamagedReadModelIsFoundWithoutAServer(t *testing.T) {
	data := t.TempDir()
	i := up(t, data)
	publish(t, i.Log, time.Now())
	require.NoError(t, i.Close())
	path := filepath.Join(data, "models", "files-1.db")
	require.NoError(t, os.Truncate(path, 8192))
	require.NoError(t, os.WriteFile(filepath.Join(data, "models", "graph-1.db.damaged-1"), nil, 0o600))
	findings := examine(t, "http://"+nowhere, "nats://"+nowhere, data)
	require.Equal(t, Failed, findings["read model files"].Level)
	require.Contains(t, findings["read model files"].Remedy, "mneme rebuild files")
	require.Equal(t, OK, findings["read model graph"].Level)
	require.Equal(t, Warning, findings["damaged files"].Level)
	require.Contains(t, findings["damaged files"].Detail, "graph-1.db.damaged-1")
}

func TestWrongSettingsAreFound(t *testing.T) {
	t.Setenv("MNEME_NATS_URI", "x")
	require.Equal(t, Warning, examine(t, "http://"+nowhere, "nats://"+nowhere, "")["settings"].Level)
	t.Setenv("MNEME_PARTITIONS", "99")
	require.Equal(t, Failed, examine(t, "http://"+nowhere, "nats://"+nowhere, "")["settings"].Level)
}

func TestAWrongQuotasFileIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quotas.yaml")
	require.NoError(t, os.WriteFile(path, []byte("default: {requests: 8}\n"), 0o600))
	i, err := instance.Start(t.Context(), instance.Config{
		Data: t.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", MaxBytes: 256 << 20, Logger: slog.New(slog.DiscardHandler), Access: settings.Access{Quotas: path},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = i.Close() })
	require.NotContains(t, examine(t, i.HTTPURL(), i.NATSURL(), ""), "quotas")
	require.NoError(t, os.WriteFile(path, []byte("default: {request: 8}\n"), 0o600))
	require.Eventually(t, func() bool {
		found := examine(t, i.HTTPURL(), i.NATSURL(), "")["quotas"]
		return found.Level == Failed && strings.Contains(found.Detail, "since it was changed")
	}, mnemetest.Patience, 100*time.Millisecond)

	t.Setenv("MNEME_QUOTAS_FILE", path)
	require.Contains(t, examine(t, "http://"+nowhere, "nats://"+nowhere, "")["quotas"].Detail, "MNEME_QUOTAS_FILE: ")
	require.NoError(t, os.WriteFile(path, []byte("default: {requests: 8}\n"), 0o600))
	require.Equal(t, OK, examine(t, "http://"+nowhere, "nats://"+nowhere, "")["quotas"].Level)
}
