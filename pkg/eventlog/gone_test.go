package eventlog

import (
	"context"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/mnemetest"
)

// requests returns one request of each kind that the log makes of its server.
func (b *bench) requests(ctx context.Context) map[string]error {
	b.t.Helper()
	one, two := b.events("c", 1, "hello"), b.events("c", 2, "hello")
	errs := map[string]error{}
	_, errs["publish"] = b.log.Publish(ctx, "t", one[0])
	_, errs["publish all"] = b.log.PublishAll(ctx, "t", two)
	_, errs["state"] = b.log.State(ctx)
	_, errs["get"] = b.log.Get(ctx, 1)
	_, errs["follow"] = b.log.Follow(ctx, 0, 1)
	return errs
}

func TestADeletedLogIsNamed(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	b.publish("c", 1)
	require.NoError(t, b.log.js.DeleteStream(mnemetest.Context(t), natsdeploy.Stream))
	for what, err := range b.requests(t.Context()) {
		require.ErrorIs(t, err, natsdeploy.ErrNoStream, what)
		require.NotErrorIs(t, err, ErrNoLeader, what)
	}
}

// A cluster needs seconds to lose its leader, so this test has the errors that a client then gets.
func TestALogWithoutALeaderIsNamed(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	for _, err := range []error{
		jetstream.ErrNoStreamResponse, // of a publish
		fmt.Errorf("batch message 1 ack failed: %w", nats.ErrNoResponders),
		&jetstream.APIError{Code: 503, ErrorCode: 10008, Description: "JetStream system temporarily unavailable"}, // of a question
	} {
		require.ErrorIs(t, b.log.publishError(t.Context(), err), ErrNoLeader, err)
		require.ErrorIs(t, named(err), ErrNoLeader, err)
	}
}
