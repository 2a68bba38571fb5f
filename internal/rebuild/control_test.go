package rebuild

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
)

func setup(t *testing.T) (*Control, jetstream.JetStream) {
	t.Helper()
	_, conn := natstest.Alone(t, embedded.Config{}, natsdeploy.Settings{MaxBytes: 1 << 20})
	c, err := NewControl(conn, "sqlite")
	require.NoError(t, err)
	return c, c.js
}

func (c *Control) mustGet(t *testing.T, projection string) Wish {
	t.Helper()
	w, err := c.Get(mnemetest.Context(t), projection)
	require.NoError(t, err)
	return w
}

func wish(generation int) Wish {
	return Wish{Generation: generation, From: generation - 1, AskedAt: time.Unix(1e9, 0).UTC(), State: Building}
}

func TestOnlyOneOfTwoConcurrentChangesSucceeds(t *testing.T) {
	t.Parallel()
	c, _ := setup(t)
	none := c.mustGet(t, "graph")
	require.True(t, none.IsZero())
	var all sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		all.Go(func() { errs[i] = c.begin(mnemetest.Context(t), "graph", none, wish(2)) })
	}
	all.Wait()
	begun := 0
	for _, err := range errs {
		var other *UnderWayError
		if err == nil {
			begun++
		} else {
			require.ErrorIs(t, err, ErrRebuilding)
			require.ErrorAs(t, err, &other)
			require.Equal(t, 2, other.Wish.Generation)
			require.ErrorContains(t, err, "since 2001-09-09T01:46:40Z")
		}
	}
	require.Equal(t, 1, begun)
	require.True(t, c.mustGet(t, "files").IsZero(), "projections are independent")

	was := c.mustGet(t, "graph")
	done, err := c.Become(mnemetest.Context(t), "graph", was, Canceled, "")
	require.NoError(t, err)
	require.True(t, done)
	done, err = c.Become(mnemetest.Context(t), "graph", was, Serving, "")
	require.NoError(t, err)
	require.False(t, done, "this wish is stale")
	require.ErrorIs(t, c.begin(mnemetest.Context(t), "graph", c.mustGet(t, "graph"), wish(3)), ErrRebuilding, "the generation is being removed")
	require.NoError(t, c.Forget(mnemetest.Context(t), "graph", was), "stale, so nothing is deleted")
	require.Equal(t, Canceled, c.mustGet(t, "graph").State)
	require.NoError(t, c.Forget(mnemetest.Context(t), "graph", c.mustGet(t, "graph")))
	require.True(t, c.mustGet(t, "graph").IsZero())

	require.NoError(t, c.begin(mnemetest.Context(t), "graph", Wish{}, wish(3)), "after a deleted wish")
	for _, state := range []State{Failed, Serving} {
		was := c.mustGet(t, "graph")
		_, err := c.Become(mnemetest.Context(t), "graph", was, state, "a reason")
		require.NoError(t, err)
		now := c.mustGet(t, "graph")
		require.Equal(t, "a reason", now.Error)
		require.NoError(t, c.begin(mnemetest.Context(t), "graph", now, wish(was.Generation+1)))
		require.Empty(t, c.mustGet(t, "graph").Error)
	}
}

func TestWishesOfBackendsAreIndependent(t *testing.T) {
	t.Parallel()
	c, js := setup(t)
	other, err := NewControl(js.Conn(), "neo4j")
	require.NoError(t, err)
	require.NoError(t, c.begin(mnemetest.Context(t), "graph", Wish{}, wish(2)))
	require.True(t, other.mustGet(t, "graph").IsZero())
	require.NoError(t, other.begin(mnemetest.Context(t), "graph", Wish{}, wish(7)))
	require.Equal(t, 2, c.mustGet(t, "graph").Generation)
	require.Equal(t, 7, other.mustGet(t, "graph").Generation)
}

func TestDeletedBucketIsRecreated(t *testing.T) {
	t.Parallel()
	c, js := setup(t)
	require.NoError(t, c.begin(mnemetest.Context(t), "graph", Wish{}, wish(2)))
	require.NoError(t, js.DeleteKeyValue(mnemetest.Context(t), natsdeploy.ControlBucket))
	require.Eventually(t, func() bool {
		w, err := c.Get(t.Context(), "graph")
		return err == nil && w.IsZero()
	}, mnemetest.Patience, time.Millisecond)
	require.NoError(t, c.begin(mnemetest.Context(t), "graph", Wish{}, wish(2)))
}

func TestWatchReportsEachChange(t *testing.T) {
	t.Parallel()
	c, _ := setup(t)
	require.NoError(t, c.begin(mnemetest.Context(t), "files", Wish{}, wish(2)))
	ctx, stop := context.WithCancel(t.Context())
	told := make(chan string, 10)
	var ended sync.WaitGroup
	ended.Go(func() { c.Watch(ctx, slog.New(slog.DiscardHandler), func(projection string) { told <- projection }) })
	w := c.mustGet(t, "files")
	require.Eventually(t, func() bool { // wait until the watch has started
		done, err := c.Become(t.Context(), "files", w, Building, "")
		require.NoError(t, err)
		require.True(t, done)
		w = c.mustGet(t, "files")
		return len(told) > 0
	}, mnemetest.Patience, 5*time.Millisecond)
	require.Equal(t, "files", <-told)
	require.NoError(t, c.Forget(mnemetest.Context(t), "files", w))
	require.NoError(t, c.begin(mnemetest.Context(t), "graph", Wish{}, wish(2)))
	for name := range told {
		if name == "graph" {
			break
		}
		require.Equal(t, "files", name)
	}
	stop()
	ended.Wait()
}

// At an even pace the rate is that pace, no matter how often it is read.
func TestRateOfAnEvenPace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pace := rapid.IntRange(100, 100_000).Draw(t, "sequences a second")
		began := time.Unix(1e9, 0)
		m, now := meter{}, began
		for range rapid.IntRange(1, 50).Draw(t, "questions") {
			now = now.Add(time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond)
			applied := uint64(now.Sub(began).Seconds() * float64(pace))
			got := m.rate(now, applied, began)
			if applied > 100 { // whole numbers are too coarse before that
				require.InEpsilon(t, float64(pace), got, 0.05)
			}
		}
		require.LessOrEqual(t, len(m.seen), 12, "ten seconds of readings")
		stands := m.seen[len(m.seen)-1].applied
		for range 20 { // without progress the rate soon drops to zero
			now = now.Add(time.Second)
			m.rate(now, stands, began)
		}
		require.Zero(t, m.rate(now, stands, began))
	})
}

func TestARecordThatCannotBeReadIsNoneAndIsReplaced(t *testing.T) {
	t.Parallel()
	c, js := setup(t)
	require.True(t, c.mustGet(t, "graph").IsZero()) // creates the bucket
	bucket, err := js.KeyValue(mnemetest.Context(t), natsdeploy.ControlBucket)
	require.NoError(t, err)
	for value, reason := range map[string]string{
		"":        "unexpected end of JSON input",
		"garbage": "invalid character",
		"{}":      "generation 0: must be from 1 to 1000000",
		`{"generation":-3,"from":1,"state":"serving"}`:      "generation -3",
		`{"generation":1000001,"from":1,"state":"serving"}`: "generation 1000001",
		`{"generation":2,"from":2,"state":"building"}`:      "from 2: must be less than generation 2",
		`{"generation":2,"from":-1,"state":"building"}`:     "from -1",
		`{"generation":2,"from":1,"state":"dreaming"}`:      `state "dreaming": must be building`,
	} {
		_, err := bucket.Put(mnemetest.Context(t), "rebuild.sqlite.graph", []byte(value))
		require.NoError(t, err)
		now := c.mustGet(t, "graph")
		require.True(t, now.IsZero())
		require.Equal(t, Unreadable, now.State)
		require.Contains(t, now.Error, "the record rebuild.sqlite.graph in the bucket AGENT_CONTROL can't be read: ")
		require.Contains(t, now.Error, reason)
		require.NoError(t, c.begin(mnemetest.Context(t), "graph", now, wish(2)), "%q is replaced", value)
		require.Equal(t, Building, c.mustGet(t, "graph").State)
	}
}

func TestTheFirstRequestAfterTheBucketWasDeletedSucceeds(t *testing.T) {
	t.Parallel()
	c, js := setup(t)
	none := c.mustGet(t, "graph")
	for range 2 {
		require.NoError(t, js.DeleteKeyValue(mnemetest.Context(t), natsdeploy.ControlBucket))
		require.NoError(t, c.begin(mnemetest.Context(t), "graph", none, wish(2)))
		require.NoError(t, js.DeleteKeyValue(mnemetest.Context(t), natsdeploy.ControlBucket))
		require.True(t, c.mustGet(t, "graph").IsZero())
	}
}

func TestAWatchEndsAtOnceWhileTheServerIsDown(t *testing.T) {
	t.Parallel()
	const silence = 5 * time.Second // that the client waits for an answer
	took := silence
	for try := 0; try < 5 && took >= silence-time.Second; try++ { // a busy machine may need longer, but not each time
		took = endOfWatchesWithoutServer(t)
	}
	require.Less(t, took, silence-time.Second, "each time a watch waited for the server")
}

// endOfWatchesWithoutServer returns how long several watches need to end after their server has stopped.
func endOfWatchesWithoutServer(t *testing.T) time.Duration {
	t.Helper()
	server, _ := natstest.Alone(t, embedded.Config{Listen: "127.0.0.1:0"}, natsdeploy.Settings{MaxBytes: 1 << 20})
	conn, err := nats.Connect(server.ClientURL(), nats.MaxReconnects(-1), nats.Timeout(mnemetest.Handshake)) // as the programs do
	require.NoError(t, err)
	defer conn.Close()
	c, err := NewControl(conn, "sqlite")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	const watches = 8 // whether one of them waits is chance
	var began, all sync.WaitGroup
	for range watches {
		began.Add(1)
		once := sync.OnceFunc(began.Done)
		all.Go(func() { c.Watch(ctx, slog.New(slog.DiscardHandler), func(string) { once() }) })
	}
	begun := make(chan struct{})
	go func() { began.Wait(); close(begun) }()
	require.NoError(t, c.begin(ctx, "files", Wish{}, wish(2)))
	require.Eventually(t, func() bool {
		_, err := c.Become(ctx, "files", c.mustGet(t, "files"), Building, "")
		require.NoError(t, err)
		select {
		case <-begun:
			return true
		default:
			return false
		}
	}, mnemetest.Patience, 10*time.Millisecond)
	server.Stop()
	stopped := time.Now()
	stop()
	all.Wait()
	return time.Since(stopped)
}
