package view

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	server "mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/eventlog"
)

func TestAFollowerCanLeaveWhileAnotherOneWaitsForTheServer(t *testing.T) {
	t.Parallel()
	natsServer, err := server.Start(t.Context(), server.Config{Dir: t.TempDir(), MaxBytes: 64 << 20})
	require.NoError(t, err)
	t.Cleanup(natsServer.Stop)
	_, err = natsServer.Apply(mnemetest.Context(t), natsdeploy.Settings{Partitions: 2})
	require.NoError(t, err)
	conn, err := nats.Connect("", natsServer.InProcess(), nats.MaxReconnects(-1), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	log, err := eventlog.Open(mnemetest.Context(t), conn)
	require.NoError(t, err)

	var a announcements
	before := conn.NumSubscriptions()
	heard, leave, err := a.join(t.Context(), log, "graph", 0)
	require.NoError(t, err)
	_, leaveToo, err := a.join(t.Context(), log, "graph", 0)
	require.NoError(t, err)
	require.NoError(t, log.Announce("graph", 0, 1))
	<-heard
	leaveToo()

	natsServer.Stop()
	waiting, giveUp := context.WithCancel(t.Context())
	joined := make(chan error, 1)
	go func() {
		_, _, err := a.join(waiting, log, "graph", 1)
		joined <- err
	}()
	require.Eventually(t, func() bool { return conn.NumSubscriptions() == before+2 }, mnemetest.Patience, time.Millisecond)
	left := make(chan struct{})
	go func() {
		leave()
		close(left)
	}()
	select {
	case <-left:
	case err := <-joined:
		require.Fail(t, "leaving waited for the other one", err)
	}
	giveUp()
	require.ErrorIs(t, <-joined, context.Canceled)
	require.Eventually(t, func() bool { return conn.NumSubscriptions() == before }, mnemetest.Patience, 10*time.Millisecond)
	require.Empty(t, a.of)
}
