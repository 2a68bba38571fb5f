package salvage_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/salvage"
	"mneme.dev/mneme/pkg/graph"
)

// Nothing is missing from a log that was made again, or restored from an older backup, so no repair can accept the loss.
// The advice must not lead in a circle.
func TestOnlyForceGoesOnWithoutTheEventsThatANewLogLacks(t *testing.T) {
	b := setup(t)
	b.publish("long", &events.MessageCreated{MessageID: "long", Role: "user", Content: strings.Repeat("x", graph.MaxBodyBytes+1)})
	b.talk(0, 1)
	b.applied(b.model)
	stream, err := b.js.Stream(mnemetest.Context(t), natsdeploy.Stream)
	require.NoError(t, err)
	config := stream.CachedInfo().Config
	require.NoError(t, b.js.DeleteStream(mnemetest.Context(t), natsdeploy.Stream))
	_, err = b.js.CreateStream(mnemetest.Context(t), config)
	require.NoError(t, err)

	require.True(t, b.repair(salvage.Options{DryRun: true}).NeedsForce)
	report := b.repair(salvage.Options{})
	require.Equal(t, 3, report.Restored)
	require.True(t, report.NeedsForce)
	require.True(t, b.repair(salvage.Options{Accept: true}).NeedsForce)
	var loss *salvage.LossError
	_, err = salvage.Check(t.Context(), b.log, b.model)
	require.ErrorAs(t, err, &loss)
	require.Equal(t, 1, loss.Unrestorable)
	require.NotContains(t, loss.Remedy(), "--accept")
}
