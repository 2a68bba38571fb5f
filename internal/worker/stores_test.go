package worker

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
)

func TestTheRemedyForAServerThatDoesNotEncryptNamesTheURIWithoutEncryption(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	_, err = neo4jstore.OpenGraph(t.Context(), neo4jstore.Config{URI: "bolt+s://" + l.Addr().String(), ConnectTimeout: mnemetest.Patience}, 1)
	require.ErrorIs(t, err, neo4jstore.ErrTLS)
	require.Contains(t, Neo4jRemedy(err), "bolt://")
}
