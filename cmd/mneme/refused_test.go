package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest/natstest"
)

// The server does not answer what it refuses, so a timeout alone would say nothing about the user.
func TestACommandSaysWhatNATSRefusesItsUser(t *testing.T) {
	server := natstest.Guard(t, "acme")
	_, stderr, code := mnemeWith(t, server.Environment("ingestor"), "backup", "create", "--out", filepath.Join(t.TempDir(), "backup"))
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "NATS refused it to the user of nats://ingestor:xxxxx@")
	require.Contains(t, stderr, "AGENT_EVENTS")
	require.Contains(t, stderr, "docs/operations/access.md")
}

func TestAWrongPasswordForNATSIsNotTakenForAServerThatIsDown(t *testing.T) {
	server := natstest.Guard(t, "acme")
	for _, command := range [][]string{{"partitions"}, {"doctor"}} {
		stdout, stderr, code := mnemeWith(t, []string{"MNEME_NATS_URL=nats://operator:wrong@" + server.Addr().String()}, command...)
		require.NotZero(t, code)
		require.Contains(t, stdout+stderr, "this user with this password")
		require.NotContains(t, stdout+stderr, "start mneme with `mneme up`, or name the server with --nats-url")
	}
}
