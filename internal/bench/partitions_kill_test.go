package bench

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/eventlog"
)

// splits are the numbers of partitions that a log of one partition is given, one after the other.
var splits = []int{2, 4, 8, 16, 32}

// killing runs "mneme partitions" and kills it, or something else, at one of several points: as soon as the log says
// that the change has begun, or after a time.
type killing struct {
	t       *testing.T
	program Program
	between time.Duration // between two kills
	away    bool          // the server may be starting again, so a command may fail
}

func newKilling(t *testing.T, url string) *killing {
	t.Helper()
	path, err := mnemetest.Binary()
	require.NoError(t, err)
	k := &killing{t: t, program: Program{Executable: path}}
	began := time.Now()
	_, stderr, code := mnemetest.Run(t, nil, "partitions", "--nats-url", url)
	require.Zero(t, code, stderr)
	k.between = time.Since(began) / 2
	if mnemetest.All {
		k.between /= 5
	}
	return k
}

// halfway reports whether a change of the log's partitions has begun and has not ended.
func halfway(ctx context.Context, js jetstream.JetStream) bool {
	_, err := natsdeploy.Inspect(ctx, js)
	return errors.Is(err, natsdeploy.ErrSplitting)
}

// run gives the log n partitions and calls kill at the nth point. It reports whether the command ended well before.
func (k *killing) run(js jetstream.JetStream, url string, n, nth int, kill func()) (ended bool) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), mnemetest.Patience)
	defer cancel()
	cmd := k.program.partitions(ctx, n, url)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(k.t, cmd.Start())
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	due := make(chan struct{})
	go func() {
		defer close(due)
		if nth == 0 {
			for ctx.Err() == nil && !halfway(ctx, js) {
				time.Sleep(100 * time.Microsecond) // the change takes some milliseconds
			}
			return
		}
		select { // later each time, until the command ends first
		case <-time.After(k.between * time.Duration(nth)):
		case <-ctx.Done():
		}
	}()
	select {
	case err := <-exited:
		require.True(k.t, err == nil || k.away, said.String())
		return err == nil
	case <-due:
	}
	kill()
	_ = cmd.Process.Kill()
	<-exited
	return false
}

func TestPartitionsThatAreKilledAtAnyPointAreGivenByTheNextRun(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	rounds := 1
	if mnemetest.All {
		rounds = 4
	}
	unfinished := 0
	for round := 0; round < rounds || unfinished == 0; round++ {
		require.Less(t, round, 20, "no kill came between the steps of a change")
		s, err := newScratch(t.Context(), natsdeploy.Settings{Partitions: 1}, "127.0.0.1:0")
		require.NoError(t, err)
		defer s.close()
		url := s.server.ClientURL()
		js, err := jetstream.New(s.log.Conn())
		require.NoError(t, err)
		w := newWriters(PartitionsOptions{Rate: 200})
		require.NoError(t, w.fill(t.Context(), s.log, 640, func(string, ...any) {}))
		r, err := follow(t.Context(), s)
		require.NoError(t, err)
		stop, err := w.start(t.Context(), url)
		require.NoError(t, err)
		k := newKilling(t, url)
		for _, n := range splits {
			for nth := 0; !k.run(js, url, n, nth, func() {}); nth++ {
				if halfway(t.Context(), js) {
					unfinished++
				}
			}
			require.NoError(t, r.await(t.Context(), n), "readers follow")
		}
		require.NoError(t, stop())
		require.NoError(t, r.await(t.Context(), 32))
		require.NoError(t, r.stop())
		require.Greater(t, len(w.acks), 100, "events are published meanwhile")
		order, err := w.inLog(t.Context(), s.log.Conn())
		require.NoError(t, err)
		require.Zero(t, order.Wrong(), "%+v", order)
		order, err = w.inModel(t.Context(), r)
		require.NoError(t, err)
		require.Zero(t, order.Wrong(), "%+v", order)
	}
}

// The log's own server is killed together with the command: mneme up ends the change when it starts again.
func TestPartitionsAreGivenAlthoughTheServerIsKilled(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	data, address := t.TempDir(), "127.0.0.1:"+mnemetest.FreePort(t)
	server := mnemetest.UpOn(t, data, address)
	conn, err := eventlog.Connect(server.NATS, "test", quiet)
	require.NoError(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	log, err := eventlog.Open(mnemetest.Context(t), conn)
	require.NoError(t, err)
	w := newWriters(PartitionsOptions{Rate: 50})
	require.NoError(t, w.fill(t.Context(), log, 640, func(string, ...any) {}))
	stop, err := w.start(t.Context(), server.NATS)
	require.NoError(t, err)
	k := newKilling(t, server.NATS)
	k.away = true
	for i, n := range splits {
		kills := 1
		if mnemetest.All {
			kills = 6
		}
		for nth := range kills {
			killed := false
			kill := func() {
				killed = true
				server.Kill()
			}
			if k.run(js, server.NATS, n, nth+i%2, kill) {
				break
			}
			if killed {
				server = mnemetest.UpOn(t, data, address)
			}
		}
		require.Eventually(t, func() bool {
			_, _, code := server.Run("partitions", "--yes", strconv.Itoa(n))
			return code == 0
		}, mnemetest.Patience, 50*time.Millisecond)
	}
	require.NoError(t, stop())
	require.Eventually(t, func() bool {
		log, err := eventlog.Open(t.Context(), conn)
		return err == nil && log.Partitions() == 32
	}, mnemetest.Patience, 50*time.Millisecond)
	order, err := w.inLog(t.Context(), conn)
	require.NoError(t, err)
	require.Zero(t, order.Wrong(), "%+v", order)
	require.Eventually(t, func() bool { // it starts again with the new partitions
		_, _, code := server.Run("verify")
		return code == 0
	}, mnemetest.Patience, 100*time.Millisecond)
}
