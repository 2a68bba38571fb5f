package service_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/rebuild"
	"mneme.dev/mneme/internal/service"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
)

// crowd publishes to a conversation and reads it, with short pauses, while something else
// happens. Its readers require answers that match a prefix of the log, and pause longer on a busy machine, where
// they would hold up the rest, which would then read longer.
type crowd struct {
	running
	stop      context.CancelFunc
	ended     sync.WaitGroup
	published atomic.Uint64 // last sequence
	reads     atomic.Int64
}

func (i running) crowd() *crowd {
	ctx, stop := context.WithCancel(i.Context())
	c := &crowd{running: i, stop: stop}
	pause := 25 * time.Millisecond // each read costs as much as a thousand messages
	if mnemetest.Race {            // a rebuild would yield to them indefinitely
		pause *= 4
	}
	c.ended.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			acks, err := i.Log.PublishAll(mnemetest.Context(i), "default", turns(i.T, "live", n, n+1))
			if errors.Is(err, context.DeadlineExceeded) { // on a busy machine
				n--
				continue
			}
			if !errorless(i.T, err) {
				return
			}
			c.published.Store(acks[len(acks)-1].Seq)
			time.Sleep(pause)
		}
	})
	require.Eventually(i, func() bool { return c.published.Load() > 0 }, patience, time.Millisecond)
	for range 2 {
		c.ended.Go(func() {
			for began := time.Now(); ctx.Err() == nil && c.read(); began = time.Now() {
				c.reads.Add(1)
				time.Sleep(max(pause, 3*time.Since(began)))
			}
		})
	}
	return c
}

func errorless(t *testing.T, err error) bool {
	if err != nil {
		t.Errorf("%v", err)
	}
	return err == nil
}

// read reads the conversation with at_least. Everything published must be there, in order,
// and each message once.
func (c *crowd) read() bool {
	seq := c.published.Load()
	status, body := c.ask(http.MethodGet, fmt.Sprintf("/v1/conversations/live/messages?limit=1000&order=oldest&wait_ms=30000&at_least=%d", seq), "")
	var answer struct {
		Messages []struct {
			MessageID string `json:"message_id"`
			Seq       uint64
		}
	}
	if status != http.StatusOK || !errorless(c.T, json.Unmarshal([]byte(body), &answer)) {
		c.Errorf("%d %s", status, body)
		return false
	}
	last := uint64(0)
	for n, m := range answer.Messages {
		want := fmt.Sprintf("%s%d", []string{"u", "a"}[n%2], n/2)
		if m.MessageID != want || m.Seq <= last {
			c.Errorf("message %d is %s at %d, behind %d; it should be %s", n, m.MessageID, m.Seq, last, want)
			return false
		}
		last = m.Seq
	}
	if len(answer.Messages) < 1000 && last+2 < seq { // a call and a result may follow the last message
		c.Errorf("the newest message is at %d, but %d was asked for", last, seq)
		return false
	}
	return true
}

func (c *crowd) end() {
	c.stop()
	c.ended.Wait()
}

func TestReadersDoNotNoticeARebuild(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	data := t.TempDir()
	turns := 150 // of each conversation: more events than several batches
	if mnemetest.All {
		turns = 400
	}
	i := upOn(t, data, settings.Models{})
	last := i.fill(8, turns)
	i.applied(last)
	before := i.readings(8, last)
	elsewhere := service.NewModels(data, worker.NewStores(data, settings.Models{})) // as in context-api
	defer func() { require.NoError(t, elsewhere.Close()) }()
	seen := func() int {
		g, err := elsewhere.Graph(t.Context())
		require.NoError(t, err)
		defer g.Release()
		_, err = g.Model.Checkpoints(t.Context())
		require.NoError(t, err)
		return g.Generation
	}
	require.Equal(t, 1, seen())

	c := i.crowd()
	i.rebuild("all")
	for _, name := range []string{"graph", "files"} {
		r := i.became(name, "serving")
		require.Equal(t, 1, r.From)
		require.Equal(t, 2, r.Generation)
		require.Equal(t, before, i.readings(8, last), "in the middle of the change")
	}
	require.Eventually(t, func() bool { return seen() == 2 }, patience, 10*time.Millisecond)
	only(t, generations(data), "graph", 2)
	only(t, generations(data), "files", 2)
	c.end()
	require.Positive(t, c.reads.Load())
	require.Equal(t, 2, i.status("graph").Generation)
	require.Equal(t, 2, i.status("files").Generation)
	i.applied(c.published.Load())
	require.Equal(t, before, i.readings(8, last))
	i.hashes()                                            // compares with a replay
	require.EventuallyWithT(t, func(t *assert.CollectT) { // each is removed a moment after its successor serves
		left, err := filepath.Glob(filepath.Join(data, "models", "*-1.db*"))
		require.NoError(t, err)
		require.Empty(t, left)
	}, patience, 10*time.Millisecond)

	i.rebuild("graph") // a second one, into the next generation
	require.Equal(t, 3, i.became("graph", "serving").Generation)
	require.Equal(t, before, i.readings(8, last))
}

func TestARebuildResumesAfterARestart(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	data := t.TempDir()
	i := upOn(t, data, settings.Models{})
	last := i.fill(10, 250)
	i.applied(last)
	before := i.readings(3, last)
	i.rebuild("graph")
	held, at := hold(t, data, "graph", 2)
	require.Less(t, at, last, "it was too quick for this test")
	r := i.rebuilds()["graph"]
	require.Equal(t, "building", r.State)
	require.Equal(t, at, r.Applied)
	require.Equal(t, last, r.Total)
	status, body := i.ask(http.MethodPost, "/v1/rebuilds", `{"projection":"all"}`)
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, body, fmt.Sprintf("at sequence %d of %d", at, last))
	require.NotContains(t, i.rebuilds(), "files", "none of all was begun")
	held.letGo()
	require.NoError(t, i.Close())
	reached, err := generations(data).Checkpoints(t.Context(), "graph", 2)
	require.NoError(t, err)

	i = upOn(t, data, settings.Models{})
	require.Equal(t, before, i.readings(3, last))
	i.became("graph", "serving")
	require.Equal(t, before, i.readings(3, last))
	applied, err := generations(data).Checkpoints(t.Context(), "graph", 2)
	require.NoError(t, err)
	require.GreaterOrEqual(t, reached[0].Seq, at)
	require.Greater(t, applied[0].Epoch, reached[0].Epoch, "it is the same build, taken over")
	require.EqualValues(t, last, applied[0].Applied+applied[0].Duplicates, "each event had effect once")
	only(t, generations(data), "graph", 2)
	i.hashes()
}

func TestACanceledRebuildLeavesNothing(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	data := t.TempDir()
	i := upOn(t, data, settings.Models{})
	last := i.fill(10, 250)
	i.applied(last)
	i.rebuild("all")
	held, _ := hold(t, data, "graph", 2)
	status, body := i.ask(http.MethodDelete, "/v1/rebuilds/graph", "")
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, `"canceled"`)
	held.letGo()
	require.Eventually(t, func() bool { return i.rebuilds()["graph"].State == "" }, patience, 10*time.Millisecond)
	only(t, generations(data), "graph", 1)
	left, err := filepath.Glob(filepath.Join(data, "models", "graph-2*"))
	require.NoError(t, err)
	require.Empty(t, left)
	require.Equal(t, 1, i.status("graph").Generation)
	for _, name := range readmodel.Always()[1:] { // these were not canceled
		i.became(name, "serving")
	}

	status, body = i.ask(http.MethodDelete, "/v1/rebuilds/all", "")
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, body, "no rebuild is under way of all")
	i.rebuild("graph")
	i.became("graph", "serving")
	i.hashes()
}

func TestOneOfManyConcurrentRebuildRequestsSucceeds(t *testing.T) {
	t.Parallel()
	i := upOn(t, t.TempDir(), settings.Models{})
	i.applied(i.fill(5, 100))
	var accepted, refused atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			switch status, body := i.ask(http.MethodPost, "/v1/rebuilds", `{"projection":"files"}`); status {
			case http.StatusAccepted:
				accepted.Add(1)
			case http.StatusConflict:
				refused.Add(1)
				if !strings.Contains(body, "a rebuild of files into generation 2 ") {
					t.Errorf("%s", body)
				}
			default:
				t.Errorf("%d %s", status, body)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 8, accepted.Load()+refused.Load())
	require.Positive(t, accepted.Load())
	r := i.became("files", "serving")
	require.Equal(t, int(accepted.Load())+1, r.Generation, "each that was accepted was a rebuild of its own")

	for method, path := range map[string]string{http.MethodPost: "/v1/rebuilds", http.MethodDelete: "/v1/rebuilds/everything"} {
		status, body := i.ask(method, path, `{"projection":"everything"}`)
		require.Equal(t, http.StatusNotFound, status)
		require.Contains(t, body, "known are "+strings.Join(readmodel.Always(), ", ")+", and all")
	}
}

// spoil makes a file look as if another version had built it.
func spoil(t *testing.T, data, name string, generation int) {
	t.Helper()
	db, err := sql.Open("sqlite", sqlitestore.WriterDSN(sqlitestore.Path(filepath.Join(data, "models"), name, generation)))
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	_, err = db.ExecContext(t.Context(), "UPDATE checkpoint SET fingerprint = 'of another version'")
	require.NoError(t, err)
}

func TestAReadModelOfAnotherBuildServesWhileItIsRebuiltByItself(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	i := upOn(t, data, settings.Models{})
	last := i.fill(3, 50)
	i.applied(last)
	before := i.readings(3, last)
	require.NoError(t, i.Close())
	spoil(t, data, "graph", 1)

	i = upOn(t, data, settings.Models{})
	require.Equal(t, before, i.readings(3, last), "what it has is readable")
	more := i.publish(turns(t, "c0", 50, 60))
	i.became("graph", "serving")
	i.applied(more)
	require.Equal(t, before, i.readings(3, last))
	require.Eventually(t, func() bool { return i.status("graph").State == "live" }, patience, 10*time.Millisecond)
	only(t, generations(data), "graph", 2)
	i.hashes()
}

func TestAFailedRebuildKeepsTheOldGeneration(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	data := t.TempDir()
	i := upOn(t, data, settings.Models{})
	last := i.fill(10, 250)
	i.applied(last)
	i.rebuild("graph")
	held, _ := hold(t, data, "graph", 2)
	held.exec("UPDATE checkpoint SET fingerprint = 'of another version'")
	held.exec("COMMIT")
	held.letGo()
	require.NoError(t, i.Close())
	if builds(t, generations(data), "graph").Serving != 1 {
		t.Fatal("it did not stop")
	}
	spoil(t, data, "graph", 2) // again, because the last batch overwrote it

	i = upOn(t, data, settings.Models{})
	failed := i.became("graph", "failed").Error
	require.Contains(t, failed, "of another version")
	require.Contains(t, failed, "run the same version of all programs")
	only(t, generations(data), "graph", 1)
	require.Eventually(t, func() bool { return i.status("graph").State == "live" }, patience, 10*time.Millisecond)
	i.rebuild("graph")
	i.became("graph", "serving")
	i.hashes()
}

func TestARebuildWhoseFileIsDamagedFails(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	i := upOn(t, data, settings.Models{})
	i.applied(i.fill(10, 250))
	i.rebuild("graph")
	held, _ := hold(t, data, "graph", 2)
	held.exec("PRAGMA writable_schema = 1")
	held.exec("UPDATE sqlite_schema SET rootpage = 1000000 WHERE name = 'checkpoint'") // a page that does not exist
	held.exec("PRAGMA schema_version = 1000000")                                       // so that others read the schema again
	held.exec("COMMIT")
	held.letGo()
	require.Contains(t, i.became("graph", "failed").Error, "damaged")
	only(t, generations(data), "graph", 1)
}

func TestACrashRightAfterTheSwitchIsRepaired(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	i := upOn(t, data, settings.Models{})
	last := i.fill(3, 50)
	i.applied(last)
	before := i.readings(3, last)
	require.NoError(t, i.Close())
	models := filepath.Join(data, "models")
	old, err := os.ReadFile(sqlitestore.Path(models, "graph", 1))
	require.NoError(t, err)
	i = upOn(t, data, settings.Models{})
	i.rebuild("graph")
	i.became("graph", "serving")
	only(t, generations(data), "graph", 2)
	// As if the process had died right after it switched the store.
	control, err := rebuild.NewControl(i.Log.Conn(), "sqlite")
	require.NoError(t, err)
	wish, err := control.Get(t.Context(), "graph")
	require.NoError(t, err)
	done, err := control.Become(t.Context(), "graph", wish, rebuild.Building, "")
	require.NoError(t, err)
	require.True(t, done)
	require.NoError(t, i.Close())
	require.NoError(t, os.WriteFile(sqlitestore.Path(models, "graph", 1), old, 0o600))

	i = upOn(t, data, settings.Models{})
	require.Equal(t, 2, i.status("graph").Generation)
	require.Equal(t, before, i.readings(3, last))
	i.became("graph", "serving")
	only(t, generations(data), "graph", 2)
	i.hashes()
}

// A slow reader keeps its generation.
func TestAGenerationWithReadersIsKept(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	i := upOn(t, data, settings.Models{})
	last := i.fill(3, 50)
	i.applied(last)
	elsewhere := service.NewModels(data, worker.NewStores(data, settings.Models{}))
	defer func() { require.NoError(t, elsewhere.Close()) }()
	g, err := elsewhere.Graph(t.Context())
	require.NoError(t, err)
	list := func() (ids []string) {
		page, err := g.Model.Conversations(t.Context(), "default", graph.ConversationQuery{})
		require.NoError(t, err)
		for _, c := range page.Rows {
			ids = append(ids, c.ID.ID)
		}
		return ids
	}
	before := list()
	i.rebuild("graph")
	i.became("graph", "serving")
	only(t, generations(data), "graph", 2)
	require.Equal(t, before, list())
	g.Release()
}

// A request that waits for a sequence on a generation gets it there, even if another one
// has since begun to serve.
func TestASupersededGenerationStaysUpToDateForWaitingReaders(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	data := t.TempDir()
	i := upOn(t, data, settings.Models{})
	i.applied(i.fill(1, 50))
	held, _ := hold(t, data, "graph", 1)
	last := i.fill(1, 1500) // more than the batches in flight when a projector stops
	answered := make(chan string, 1)
	go func() {
		status, body := i.ask(http.MethodGet, fmt.Sprintf("/v1/conversations/c0/messages?wait_ms=60000&at_least=%d", last), "")
		answered <- fmt.Sprint(status, " ", body)
	}()
	i.rebuild("graph")
	i.became("graph", "serving")
	require.Eventually(t, func() bool { return i.status("graph").Generation == 2 }, patience, 10*time.Millisecond)
	time.Sleep(3 * retention.Kept)
	require.Empty(t, answered)
	held.letGo()
	require.Contains(t, <-answered, "200 ")
	only(t, generations(data), "graph", 2)
}
