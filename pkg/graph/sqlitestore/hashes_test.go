package sqlitestore

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
)

func TestTheWALCanBeEmptiedWhileConversationsAreHashed(t *testing.T) {
	t.Parallel()
	s := openStores(t)
	const n = 2*hashedTogether + 1
	for i := range n {
		s.add(fmt.Sprint("c", i), &events.MessageCreated{MessageID: "m", Role: "user", Content: "hello"})
	}
	s.apply(t)
	hashed := 0
	require.NoError(t, s.graph.Hashes(t.Context(), func(projection.ConversationHash) error {
		if hashed++; hashed%hashedTogether == 0 {
			s.add("later", &events.MessageCreated{MessageID: fmt.Sprint("m", hashed), Role: "user", Content: "hello"})
			s.apply(t)
			var busy, frames, done int
			require.NoError(t, s.graph.writer.QueryRowContext(t.Context(), emptyWAL).Scan(&busy, &frames, &done))
			require.Zero(t, busy, "a reader holds an earlier state of the file")
		}
		return nil
	}))
	require.Equal(t, n, hashed)
}
