package mnemetest

import (
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Listen stands for a server of another kind, or a broken one: answer is called with each connection, one after the other, and
// may close it. The others stay open until the test ends. It returns the address.
func Listen(t testing.TB, answer func(net.Conn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var held []net.Conn
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			held = append(held, conn)
			answer(conn)
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		ended.Wait()
		for _, conn := range held {
			_ = conn.Close()
		}
	})
	return listener.Addr().String()
}
