package netlink_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest/netlink"
)

// echo is a link to a server that answers what it is sent.
func echo(t *testing.T) *netlink.Link {
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
	l, err := netlink.New(server.Addr().String())
	require.NoError(t, err)
	t.Cleanup(l.Close)
	return l
}

func dial(t *testing.T, l *netlink.Link) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", l.Address())
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
	l := echo(t)
	conn := dial(t, l)
	say(t, conn, "hello")
	say(t, conn, strings.Repeat("a long text ", 10_000))
}

func TestALinkThatIsSlow(t *testing.T) {
	t.Parallel()
	l := echo(t)
	conn := dial(t, l)
	l.Delay(30 * time.Millisecond)
	require.GreaterOrEqual(t, say(t, conn, "hello"), 60*time.Millisecond, "both ways")
	l.Heal()
	l.Rate(100 << 10)
	require.GreaterOrEqual(t, say(t, conn, strings.Repeat("x", 20<<10)), 200*time.Millisecond)
	l.Heal()
	say(t, conn, "hello")
}

func TestALinkThatIsReset(t *testing.T) {
	t.Parallel()
	l := echo(t)
	conn := dial(t, l)
	say(t, conn, "hello")
	l.Reset()
	_, err := conn.Read(make([]byte, 1))
	require.Error(t, err)
	say(t, dial(t, l), "hello again")
}

func TestALinkThatIsABlackHole(t *testing.T) {
	t.Parallel()
	l := echo(t)
	conn := dial(t, l)
	say(t, conn, "hello")
	l.BlackHole()
	l.BlackHole()
	_, err := conn.Write([]byte("lost in space"))
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	_, err = conn.Read(make([]byte, 1))
	require.ErrorContains(t, err, "timeout")
	require.NoError(t, conn.SetReadDeadline(time.Time{}))
	l.Heal()
	l.Heal()
	back := make([]byte, len("lost in space"))
	_, err = io.ReadFull(conn, back)
	require.NoError(t, err, "it was only held up")
}

func TestALinkThatRefuses(t *testing.T) {
	t.Parallel()
	l := echo(t)
	conn := dial(t, l)
	say(t, conn, "hello")
	l.Refuse()
	_, err := conn.Read(make([]byte, 1))
	require.Error(t, err)
	_, err = net.Dial("tcp", l.Address())
	require.ErrorContains(t, err, "refused")
	require.NoError(t, l.Listen())
	say(t, dial(t, l), "hello again")
}
