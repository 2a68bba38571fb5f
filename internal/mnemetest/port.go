package mnemetest

import (
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest/netlink"
)

// ports holds the ports that FreePort has returned.
var ports sync.Map

// FreePort returns a port of loopback on which nobody listens, for a program that must be told its port or uses it
// again after a restart. Meanwhile no client and no other test gets it, see [netlink.Listener]. Each port is returned
// only once per process.
func FreePort(t testing.TB) string {
	t.Helper()
	for {
		l, err := netlink.Listener()
		require.NoError(t, err)
		_, port, err := net.SplitHostPort(l.Addr().String())
		require.NoError(t, err)
		require.NoError(t, l.Close())
		if _, given := ports.LoadOrStore(port, true); !given {
			return port
		}
	}
}
