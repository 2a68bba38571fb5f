package worker

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
)

func TestNobodyWaitsWhileAnotherConnectsToNeo4j(t *testing.T) {
	t.Parallel()
	mute, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	require.NoError(t, err)
	defer func() { _ = mute.Close() }()
	l := &lateGenerations{config: neo4jstore.Config{URI: "bolt://" + mute.Addr().String(), ConnectTimeout: mnemetest.Patience}}
	connecting, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := l.Builds(connecting, "graph")
		ended <- err
	}()
	_, err = mute.Accept()
	require.NoError(t, err)
	gone, leave := context.WithCancel(t.Context())
	leave()
	_, err = l.Builds(gone, "graph")
	require.Error(t, err)
	require.Empty(t, ended, "the first still waits for the server")
	cancel()
	require.Error(t, <-ended)
	require.NoError(t, l.Close())
}
