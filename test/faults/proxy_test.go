package main

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// echo is a link to a server that answers what it is sent.
func echo(t *testing.T) *proxy {
	t.Helper()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	p, err := newProxy(server.Addr().String())
	require.NoError(t, err)
	t.Cleanup(p.close)
	return p
}

func dial(t *testing.T, p *proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.address())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// say sends a text and returns how long it took until it came back.
func say(t *testing.T, conn net.Conn, text string) time.Duration {
	t.Helper()
	began := time.Now()
	_, err := conn.Write([]byte(text))
	require.NoError(t, err)
	back := make([]byte, len(text))
	_, err = io.ReadFull(conn, back)
	require.NoError(t, err)
	require.Equal(t, text, string(back))
	return time.Since(began)
}

func TestALinkCarriesWhatItIsGiven(t *testing.T) {
	t.Parallel()
	p := echo(t)
	conn := dial(t, p)
	say(t, conn, "hello")
	say(t, conn, strings.Repeat("a long text ", 10_000))
}

func TestALinkThatIsSlow(t *testing.T) {
	t.Parallel()
	p := echo(t)
	conn := dial(t, p)
	p.delay.Store(int64(30 * time.Millisecond))
	require.GreaterOrEqual(t, say(t, conn, "hello"), 60*time.Millisecond, "both ways")
	p.heal()
	p.rate.Store(100 << 10)
	require.GreaterOrEqual(t, say(t, conn, strings.Repeat("x", 20<<10)), 200*time.Millisecond)
	p.heal()
	say(t, conn, "hello")
}

func TestALinkThatIsReset(t *testing.T) {
	t.Parallel()
	p := echo(t)
	conn := dial(t, p)
	say(t, conn, "hello")
	p.reset()
	_, err := conn.Read(make([]byte, 1))
	require.Error(t, err)
	say(t, dial(t, p), "hello again")
}

func TestALinkThatIsABlackHole(t *testing.T) {
	t.Parallel()
	p := echo(t)
	conn := dial(t, p)
	say(t, conn, "hello")
	p.blackHole()
	p.blackHole()
	_, err := conn.Write([]byte("lost in space"))
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	_, err = conn.Read(make([]byte, 1))
	require.ErrorContains(t, err, "timeout")
	require.NoError(t, conn.SetReadDeadline(time.Time{}))
	p.heal()
	p.heal()
	back := make([]byte, len("lost in space"))
	_, err = io.ReadFull(conn, back)
	require.NoError(t, err, "it was only held up")
}
