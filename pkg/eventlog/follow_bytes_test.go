package eventlog

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/mnemetest"
)

// A slow reader must not make its process hold an unbounded amount of the log: 256 events of 8 MiB
// would be 2 GiB for each partition and projection.
func TestAFollowerOfASlowReaderHoldsBoundedBytes(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	const count, size = 100, 1 << 20
	for range count {
		_, err := b.log.PublishAll(mnemetest.Context(t), "t", b.events("c", 1, strings.Repeat("x", size)))
		require.NoError(t, err)
	}
	before := b.log.conn.Stats().InBytes
	f, err := b.log.Follow(t.Context(), 0, 1)
	require.NoError(t, err)
	defer f.Stop()
	received := func() uint64 { return b.log.conn.Stats().InBytes - before }
	seq := uint64(0)
	for range 3 { // also after some were taken
		for last, quiet := uint64(0), 0; quiet < 10; time.Sleep(50 * time.Millisecond) {
			if now := received(); now != last {
				last, quiet = now, 0
			} else {
				quiet++
			}
		}
		require.Less(t, received(), (seq+4)*size+2*natsdeploy.PullByteLimit, "after %d events were taken", seq)
		for range 10 {
			seq++
			require.Equal(t, seq, b.next(f).Seq)
		}
	}
	for seq++; seq <= count; seq++ {
		require.Equal(t, seq, b.next(f).Seq)
	}
}
