package projection

import (
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

type unit struct{}

func (unit) Tombstone(events.ConversationID) uint64 { return 0 }

// An event is hashed only for the projections that reduce it. A feed hashes it once for all of them, and
// not at all if no projection reduces it.
func TestAnEventIsHashedOnceAndOnlyIfItIsReduced(t *testing.T) {
	e, err := events.New("c", "test", "1", &events.MessageCreated{MessageID: "1", Role: "user", Content: "hello"})
	require.NoError(t, err)
	msg, err := eventlog.NewMsg("t", e)
	require.NoError(t, err)
	m := eventlog.Message{Seq: 1, Subject: "ev.0.t.c.message_created", Header: msg.Header, Data: msg.Data}
	reduces := &Projection[unit]{Reducers: map[string]Reducer[unit]{e.Type: func(unit, *events.Recorded) error { return nil }}}
	ignores := &Projection[unit]{}

	d := decodeMessage(m)
	require.NoError(t, d.invalid)
	require.False(t, ignores.entries([]*decoded{d})[0].reduced)
	require.Zero(t, d.nkeys)
	require.True(t, reduces.entries([]*decoded{d})[0].reduced)
	require.Equal(t, 2, d.nkeys)
	require.Equal(t, e.Content(), d.content)
	require.Zero(t, testing.AllocsPerRun(100, d.hash))

	feed := &Feed{}
	feed.needs.Store(&needs{})
	require.Zero(t, feed.decode(m).nkeys)
	feed.serve([]string{e.Type}, nil)
	require.Equal(t, 2, feed.decode(m).nkeys, "before the projector takes it")
}
