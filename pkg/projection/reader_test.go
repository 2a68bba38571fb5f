package projection

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/eventlog"
)

// newLog returns the log of a server of its own.
func newLog(t *testing.T) *eventlog.Log {
	t.Helper()
	server, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), MaxBytes: 128 << 20})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	conn, err := nats.Connect("", server.InProcess(), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	_, err = server.Apply(mnemetest.Context(t), natsdeploy.Settings{})
	require.NoError(t, err)
	log, err := eventlog.Open(mnemetest.Context(t), conn)
	require.NoError(t, err)
	return log
}

// publish publishes messages of this size.
func publish(t *testing.T, log *eventlog.Log, count, size int) {
	t.Helper()
	for i := range count {
		id := strconv.Itoa(i)
		e, err := events.New("c", "test", id, &events.MessageCreated{MessageID: id, Role: "user", Content: strings.Repeat("x", size)})
		require.NoError(t, err)
		_, err = log.Publish(mnemetest.Context(t), "t", e)
		require.NoError(t, err)
	}
}

// A member that joins at the end of a full window has nothing to take. Only its arrival tells the reader that the
// stalled member is no longer the only one.
func TestAProjectorThatJoinsAStalledOneGetsEvents(t *testing.T) {
	t.Parallel()
	log := newLog(t)
	publish(t, log, 30, 1)
	feed := NewFeed(log)
	feed.Window(10)
	stalled, err := feed.join(t.Context(), 0, 0)
	require.NoError(t, err)
	defer stalled.leave()
	require.Eventually(t, func() bool {
		stalled.reader.mu.Lock()
		defer stalled.reader.mu.Unlock()
		return len(stalled.reader.window) == 10
	}, mnemetest.Patience, time.Millisecond)
	in, err := feed.join(t.Context(), 0, 10)
	require.NoError(t, err)
	defer in.leave()
	require.Equal(t, []int{2}, feed.Readers(0))
	for seq := uint64(10); seq < 30; {
		select {
		case <-in.C():
		case <-time.After(mnemetest.Patience):
			require.Fail(t, "nothing came", "after %d", seq)
		}
		taken, err := in.take(100)
		require.NoError(t, err)
		for _, d := range taken {
			seq++
			require.Equal(t, seq, d.seq)
		}
	}
	_, err = stalled.take(100)
	require.ErrorIs(t, err, errMove, "the others went on")
}

// A projector that takes nothing must not make its process hold the log in memory.
func TestAWindowIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	log := newLog(t)
	const count, size = 40, 1 << 20
	publish(t, log, count, size)
	in, err := NewFeed(log).join(t.Context(), 0, 0)
	require.NoError(t, err)
	defer in.leave()
	held := func() (events, bytes int) {
		in.reader.mu.Lock()
		defer in.reader.mu.Unlock()
		return len(in.reader.window), in.reader.bytes
	}
	require.Eventually(t, func() bool { _, bytes := held(); return bytes >= windowBytes }, mnemetest.Patience, time.Millisecond)
	var seqs []uint64
	for len(seqs) < count {
		<-in.C()
		taken, err := in.take(3)
		require.NoError(t, err)
		for _, d := range taken {
			seqs = append(seqs, d.seq)
		}
		n, bytes := held()
		require.LessOrEqual(t, bytes, windowBytes+2*size)
		require.LessOrEqual(t, n, windowBytes/size+1)
	}
	require.True(t, slices.IsSorted(seqs))
	require.EqualValues(t, count, seqs[count-1])
	require.Eventually(t, func() bool { n, bytes := held(); return n == 0 && bytes == 0 }, mnemetest.Patience, 10*time.Millisecond, "an idle reader holds nothing")
}
