package neo4jstore

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/projection"
)

func TestConversationsAreHashedAtTheSameTimeAndYieldedInOrder(t *testing.T) {
	t.Parallel()
	s := openStores(t, testConfig(t))
	const n = 20
	for i := range n {
		s.add(fmt.Sprintf("c%02d", i), &events.MessageCreated{MessageID: "m", Role: "user", Content: "hello"})
	}
	s.apply(t)
	ctx, cancel := context.WithTimeout(t.Context(), mnemetest.Patience)
	defer cancel()
	first, second := make(chan struct{}), make(chan struct{})
	hash := func(ctx context.Context, id events.ConversationID) (projection.ConversationHash, error) {
		mine, other := first, second
		if id.ID == "c01" {
			mine, other = second, first
		}
		if id.ID < "c02" { // each of the first two waits for the other one
			close(mine)
			select {
			case <-other:
			case <-ctx.Done():
				return projection.ConversationHash{}, ctx.Err()
			}
		}
		return s.graph.Hash(ctx, id)
	}
	var got []string
	require.NoError(t, s.graph.hashes(ctx, hash, func(h projection.ConversationHash) error {
		got = append(got, h.Conversation.ID)
		return nil
	}))
	require.Len(t, got, n)
	require.IsIncreasing(t, got)
}
