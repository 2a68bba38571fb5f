package projection

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/internal/mnemetest"
)

// late is a bucket whose watches start after the caller has given up.
type late struct {
	jetstream.KeyValue
	watcher jetstream.KeyWatcher
}

func (l *late) WatchFiltered(ctx context.Context, keys []string, options ...jetstream.WatchOpt) (_ jetstream.KeyWatcher, err error) {
	l.watcher, err = l.KeyValue.WatchFiltered(ctx, keys, options...)
	<-ctx.Done()
	return l.watcher, err
}

func TestWatchThatStartsTooLateLeaksNothing(t *testing.T) {
	t.Parallel()
	server, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), MaxBytes: 64 << 20})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	_, err = server.Apply(mnemetest.Context(t), natsdeploy.Settings{Partitions: 1})
	require.NoError(t, err)
	conn, err := nats.Connect("", server.InProcess(), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	bucket, _, err := natsdeploy.ApplyLeases(mnemetest.Context(t), js, time.Minute)
	require.NoError(t, err)
	k := keys{Build{"store", "test", 1}}
	const partitions = 600 // more than the client buffers for a watch that nobody reads
	for n := range partitions {
		_, err := bucket.PutString(mnemetest.Context(t), k.lease(n), fmt.Sprint("p", n))
		require.NoError(t, err)
	}
	l := &late{KeyValue: bucket}
	_, err = watch(l, 500*time.Millisecond, k, partitions)
	require.ErrorIs(t, err, errNoAnswer)
	require.NotNil(t, l.watcher)
	require.Eventually(t, func() bool {
		return len(l.watcher.Updates()) == 0
	}, mnemetest.Patience, time.Millisecond, "a goroutine of the client waits forever")
}
