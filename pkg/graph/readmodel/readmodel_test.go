package readmodel_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

// newLog is an empty log for one test.
func newLog(t *testing.T) *eventlog.Log {
	t.Helper()
	log, stop, err := openLog(t.Context(), t.TempDir())
	require.NoError(t, err)
	t.Cleanup(stop)
	return log
}

// named is a read model of another name that stores what "files" does.
func named(name string) *readmodel.Spec[*graph.FilesUnit] {
	spec := &readmodel.Files().Spec
	lite := *spec.SQLite
	spec.Projection.Name, lite.Projection, spec.SQLite, spec.Neo4j = name, name, &lite, nil
	return spec
}

func TestCheckRefusesWrongDeclarations(t *testing.T) {
	t.Parallel()
	files := readmodel.Place{Dir: t.TempDir()}
	server := readmodel.Place{Neo4j: &neo4jstore.Config{}}
	err := readmodel.Check(files, named("mine"), named("yours"))
	require.NoError(t, err)

	err = readmodel.Check(files, named("mine"), named("yours"), named("mine"))
	require.ErrorIs(t, err, readmodel.ErrTwice)
	require.EqualError(t, err, "read model mine: the name is taken; choose another name")
	err = readmodel.Check(files, named("graph"))
	require.ErrorIs(t, err, readmodel.ErrTwice)

	err = readmodel.Check(server, named("mine"))
	require.ErrorIs(t, err, readmodel.ErrNoCodec)
	require.EqualError(t, err, "read model mine: no codec for this backend: neo4j; add one to its Spec, or use another backend")

	other := named("mine")
	other.SQLite = &sqlitestore.FilesCodec
	err = readmodel.Check(files, other)
	require.EqualError(t, err, `read model mine: its codec for sqlite is named "files"; give both the same name`)

	for _, unknown := range []string{"dev.mneme.message.edited.v1", "short", ""} {
		wrong := named("mine")
		wrong.Projection.Reducers = map[string]projection.Reducer[*graph.FilesUnit]{unknown: nil}
		err = readmodel.Check(files, wrong)
		require.ErrorContains(t, err, "unknown event type")
		_, err = wrong.Open(t.Context(), files, 1)
		require.ErrorContains(t, err, "unknown event type")
	}
	foreign := named("mine")
	foreign.Projection.Reducers = map[string]projection.Reducer[*graph.FilesUnit]{"com.example.build.finished": func(*graph.FilesUnit, *events.Recorded) error { return nil }}
	err = readmodel.Check(files, foreign)
	require.NoError(t, err)
}

func TestAWrongSchemaIsRefusedWhenTheFileIsMade(t *testing.T) {
	t.Parallel()
	wrong := named("mine")
	wrong.SQLite.Schema = "CREATE TABLE conversation (c INTEGER PRIMARY KEY, tenant TEXT, id TEXT);"
	at := readmodel.Place{Dir: t.TempDir()}
	_, err := wrong.Open(t.Context(), at, 1)
	require.ErrorContains(t, err, "no such column: deleted_seq")
	good, err := named("mine").Open(t.Context(), at, 1)
	require.NoError(t, err, "nothing is left of the first attempt")
	require.NoError(t, good.Close())
}

func TestOursAreWhatTheyWere(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"graph", "files", "summaries", "embeddings", "projects", "insight", "code"}, readmodel.Names())
	for _, m := range readmodel.Ours() {
		require.NotEmpty(t, m.Program)
		require.Equal(t, m.Name, m.Of().Name())
		if m.Computed {
			require.NotEmpty(t, m.Needs)
			require.Error(t, m.Of().Check("sqlite"), "it is only to be read")
			continue
		}
		require.NoError(t, m.Of().Check("sqlite"))
		require.NoError(t, m.Of().Check("neo4j"))
	}
	require.Zero(t, readmodel.Find("nobody"))
}

func TestACanceledRebuildLeavesTheOldGeneration(t *testing.T) {
	t.Parallel()
	log := newLog(t)
	spec, at := named("mine"), readmodel.Place{Dir: t.TempDir()}
	require.NoError(t, spec.Rebuild(t.Context(), log, at, readmodel.Options{}))
	generations, err := spec.Generations(t.Context(), at)
	require.NoError(t, err)
	before, err := generations.Builds(t.Context(), "mine")
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, spec.Rebuild(ctx, log, at, readmodel.Options{Progress: func(uint64, uint64) { cancel() }}), context.Canceled)
	after, err := generations.Builds(t.Context(), "mine")
	require.NoError(t, err)
	require.Equal(t, before, after)
	_, err = spec.Verify(t.Context(), log, at, readmodel.Options{})
	require.NoError(t, err)
}

func TestRunFollowsTheLogWhileAnOldGenerationCannotBeRemoved(t *testing.T) {
	t.Parallel()
	log := newLog(t)
	spec, at := named("mine"), readmodel.Place{Dir: t.TempDir()}
	for range 2 {
		require.NoError(t, spec.Rebuild(t.Context(), log, at, readmodel.Options{}))
	}
	old, err := spec.Open(t.Context(), at, 2) // locks it
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- spec.Run(ctx, log, at, readmodel.Options{Keep: 50 * time.Millisecond}) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	publishFile(t, log)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		status, err := spec.Status(t.Context(), log, at)
		require.NoError(c, err)
		require.EqualValues(c, 1, status[0].Checkpoint.Applied)
	}, mnemetest.Patience, 20*time.Millisecond)
	path := sqlitestore.Path(at.Dir, "mine", 2)
	require.FileExists(t, path)
	require.NoError(t, old.Close())
	require.Eventually(t, func() bool { _, err := os.Stat(path); return os.IsNotExist(err) }, mnemetest.Patience, 20*time.Millisecond)
}

func TestRunKeepsASupersededGenerationForItsReaders(t *testing.T) {
	t.Parallel()
	log := newLog(t)
	spec, at := named("mine"), readmodel.Place{Dir: t.TempDir()}
	for range 2 {
		require.NoError(t, spec.Rebuild(t.Context(), log, at, readmodel.Options{}))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	require.NoError(t, spec.Run(ctx, log, at, readmodel.Options{}))
	require.FileExists(t, sqlitestore.Path(at.Dir, "mine", 2))
}

func TestRunWaitsForAServerThatIsAwayAtTheStart(t *testing.T) {
	t.Parallel()
	away, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = away.Close() }()
	calls := make(chan struct{})
	go func() {
		for {
			conn, err := away.Accept()
			if err != nil {
				return
			}
			_ = conn.Close() // like a proxy without its server
			select {
			case calls <- struct{}{}:
			case <-t.Context().Done():
				return
			}
		}
	}()
	spec := readmodel.Files()
	at := readmodel.Place{Neo4j: &neo4jstore.Config{URI: "bolt://" + away.Addr().String()}}
	log := newLog(t)
	called := func(while func() error) (n int) { // counts the connections of a call
		ended := make(chan error)
		go func() { ended <- while() }()
		for {
			select {
			case <-calls:
				n++
			case err := <-ended:
				require.ErrorIs(t, err, projection.ErrUnavailable)
				return n
			}
		}
	}
	once := called(func() error {
		_, err := spec.Generations(t.Context(), at)
		return err
	})
	require.Positive(t, once)

	var said bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- spec.Run(ctx, log, at, readmodel.Options{Logger: slog.New(slog.NewTextHandler(&said, nil))})
	}()
	for range 2*once + 1 { // the third attempt has begun
		select {
		case <-calls:
		case err := <-ended:
			t.Fatal("it did not wait:", err)
		}
	}
	cancel()
	for late := time.After(mnemetest.Patience); ; {
		select {
		case <-calls: // connections may be in progress
		case err := <-ended:
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(said.String(), "trying again"), said.String())
			return
		case <-late:
			t.Fatal("it did not end")
		}
	}
}

func TestVerifyStartsOverWhenAnotherGenerationServes(t *testing.T) {
	t.Parallel()
	log := newLog(t)
	publishFile(t, log)
	spec, at := named("mine"), readmodel.Place{Dir: t.TempDir()}
	var wrong atomic.Bool
	reducers := map[string]projection.Reducer[*graph.FilesUnit]{}
	for of, reduce := range spec.Projection.Reducers {
		reducers[of] = func(u *graph.FilesUnit, e *events.Recorded) error {
			if wrong.Load() {
				return nil
			}
			return reduce(u, e)
		}
	}
	spec.Projection.Reducers = reducers
	wrong.Store(true)
	require.NoError(t, spec.Rebuild(t.Context(), log, at, readmodel.Options{}))
	wrong.Store(false)
	v, err := spec.Verify(t.Context(), log, at, readmodel.Options{})
	require.NoError(t, err)
	require.False(t, v.Equal())

	var once sync.Once
	v, err = spec.Verify(t.Context(), log, at, readmodel.Options{Progress: func(uint64, uint64) {
		once.Do(func() { assert.NoError(t, spec.Rebuild(t.Context(), log, at, readmodel.Options{})) })
	}})
	require.NoError(t, err)
	require.True(t, v.Equal())
}

func TestCheckRefusesSharedLabels(t *testing.T) {
	t.Parallel()
	at := readmodel.Place{Neo4j: &neo4jstore.Config{}}
	model := func(name, label string) *readmodel.Spec[*graph.FilesUnit] {
		spec := named(name)
		spec.Neo4j = &neo4jstore.Codec[*graph.FilesUnit]{Layout: neo4jstore.Layout{Projection: name, Conversation: label + "Conversation", Event: label + "Event"}}
		return spec
	}
	require.NoError(t, readmodel.Check(at, model("mine", "Mine"), model("yours", "Yours")))
	require.ErrorContains(t, readmodel.Check(at, model("mine", "Mine"), model("yours", "Mine")), "the layouts of mine and yours share the label MineConversation")
	require.ErrorContains(t, readmodel.Check(at, model("token-costs", "A"), model("token--costs", "B")), "share the label TokenCostsCheckpoint")
	require.ErrorContains(t, readmodel.Check(at, model("graph-", "A")), "share the engine's labels with mneme's graph")
	own := model("mine", "Mine")
	own.Neo4j.Event = "MineSettled"
	require.ErrorContains(t, readmodel.Check(at, own), "the layout of mine has the label MineSettled, which is the engine's")
}

func publishFile(t *testing.T, log *eventlog.Log) {
	t.Helper()
	e, err := events.New("c", "test", "started", &events.ConversationStarted{})
	require.NoError(t, err)
	_, err = log.Publish(mnemetest.Context(t), "default", e)
	require.NoError(t, err)
}
