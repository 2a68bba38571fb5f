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
	address := mnemetest.Listen(t, func(conn net.Conn) { _, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) })
	_, err := neo4jstore.OpenGraph(t.Context(), neo4jstore.Config{URI: "bolt+s://" + address, ConnectTimeout: mnemetest.Patience}, 1)
	require.ErrorIs(t, err, neo4jstore.ErrTLS)
	require.Contains(t, Neo4jRemedy(err), "bolt://")
}
