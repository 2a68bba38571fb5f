package eventlog

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/mnemetest"
)

func TestTheStoredBytesOfAllMessagesAreTheSizeOfTheLog(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{Partitions: 4})
	for n := range 20 {
		_, err := b.log.PublishAll(mnemetest.Context(t), fmt.Sprint("tenant ", n%3), b.events(fmt.Sprint("conversation ", n), 1+n, strings.Repeat("é", n*100)))
		require.NoError(t, err)
		_, err = b.log.Publish(mnemetest.Context(t), "single", b.events("c", 1, "x")[0])
		require.NoError(t, err)
	}
	_, err := b.log.conn.Request("mneme.t.bare.other", []byte("no headers"), time.Minute) // is answered once it is stored
	require.NoError(t, err)
	state, err := b.log.State(mnemetest.Context(t))
	require.NoError(t, err)
	require.EqualValues(t, 231, state.Messages)
	var messages, size uint64
	require.NoError(t, b.log.ScanAll(mnemetest.Context(t), 1, state.Head, func(m Message) error {
		messages++
		size += m.StoredBytes()
		return nil
	}))
	require.Equal(t, state.Messages, messages)
	require.Equal(t, state.Bytes, size)

	var tail []uint64
	require.NoError(t, b.log.ScanAll(mnemetest.Context(t), 229, 230, func(m Message) error {
		tail = append(tail, m.Seq)
		return nil
	}))
	require.Equal(t, []uint64{229, 230}, tail)
}
