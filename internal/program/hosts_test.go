package program

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/settings"
)

// asked lists hosts and whether they are answered: on loopback, and in a trusted network.
var asked = []struct {
	host              string
	loopback, trusted bool
}{
	{"localhost", true, true},
	{"localhost:8420", true, true},
	{"localhost:", true, true},
	{"LocalHost:8420", true, true},
	{"localhost.", true, true},
	{"localhost.:8420", true, true},
	{"mneme.localhost", true, true},
	{"a.b.LOCALHOST:1", true, true},
	{"127.0.0.1", true, true},
	{"127.0.0.1:8420", true, true},
	{"127.255.0.9:8420", true, true},
	{"127.0.0.1.", true, true},
	{"[::1]", true, true},
	{"[::1]:8420", true, true},
	{"[0:0:0:0:0:0:0:1]:8420", true, true},
	{"[::ffff:127.0.0.1]:8420", true, true},
	{"named.example", true, true},
	{"NAMED.example.:8420", true, true},
	{"192.0.2.7", true, true}, // listed in the setting
	{"[2001:db8::7]:8420", true, true},

	{"10.0.0.5:8420", false, true},
	{"0.0.0.0:8420", false, true},
	{"[::]:8420", false, true},
	{"[2001:db8::1]:8420", false, true},

	{"", false, false},
	{":8420", false, false},
	{".", false, false},
	{"evil.example", false, false},
	{"evil.example:8420", false, false},
	{"below.named.example", false, false},
	{"named.example.evil.example", false, false},
	{".localhost", false, false},
	{"localhost..", false, false},
	{"evillocalhost", false, false},
	{"localhost.evil.example", false, false},
	{"127.0.0.1.evil.example", false, false},
	{"127.0.0.1.nip.io", false, false},
	{"127.1", false, false},      // a browser expands it
	{"2130706433", false, false}, // expanded too
	{"0x7f.0.0.1", false, false},
	{"::1", false, false},
	{"::1:8420", false, false},
	{"[::1", false, false},
	{"[::1]8420", false, false},
	{"[::1]:8420@evil.example", false, false},
	{"[::1%lo]:8420", false, false},
	{"[localhost]", false, false},
	{"[127.0.0.1]", false, false},
	{"localhost:8420.evil.example", false, false},
	{"localhost:8420:8420", false, false},
	{"localhost@evil.example", false, false},
	{"localhost, evil.example", false, false},
	{"localhost evil.example", false, false},
	{"lоcalhost", false, false}, // with a Cyrillic o
}

var named = settings.Hosts{AllowedHosts: "Named.Example., other_service ,192.0.2.7,[2001:db8::7]"}

func TestOnlyAllowedHostsAreAnswered(t *testing.T) {
	t.Parallel()
	loopback, err := newHosts(named, false)
	require.NoError(t, err)
	trusted, err := newHosts(named, true)
	require.NoError(t, err)
	for _, c := range asked {
		require.Equal(t, c.loopback, loopback.allow(c.host), "on loopback: %q", c.host)
		require.Equal(t, c.trusted, trusted.allow(c.host), "trusted: %q", c.host)
	}
	require.True(t, loopback.allow("other_service:8420"))

	none, err := newHosts(settings.Hosts{}, true)
	require.NoError(t, err)
	require.False(t, none.allow("named.example"), "a name is not allowed because the network is trusted")
}

// send writes a raw request, and returns the status and body of the answer.
func send(t *testing.T, address, request string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, request)
	require.NoError(t, err)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode, string(body)
}

func TestOtherHostsNeverReachTheHandler(t *testing.T) {
	t.Parallel()
	server, err := Listen("MNEME_LISTEN", "127.0.0.1:0", Serving{Hosts: named}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer server.Stop()
	address := server.listener.Addr().String()

	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/v1/conversations"} { // before Start
		status, body := send(t, address, "GET "+path+" HTTP/1.1\r\nHost: evil.example\r\n\r\n")
		require.Equal(t, http.StatusMisdirectedRequest, status, path)
		require.Contains(t, body, `"the host \"evil.example\" is not allowed: `)
		require.Contains(t, body, "MNEME_ALLOWED_HOSTS")
	}
	status, _ := send(t, address, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.Equal(t, http.StatusOK, status)

	seen := make(chan string, 100)
	server.Start(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Host }))
	for _, c := range []struct {
		request string
		status  int
	}{
		{"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421},
		{"POST / HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n", 421},
		{"OPTIONS * HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421},
		{"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 421},
		{"GET / HTTP/1.0\r\n\r\n", 421},
		{"GET / HTTP/1.1\r\nHost:\r\n\r\n", 421},
		{"GET / HTTP/1.1\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400},
		{"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n", 200},
		{"GET / HTTP/1.1\r\nHost: " + address + "\r\n\r\n", 200},
		{"GET http://localhost/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", 200}, // the target takes precedence; browsers send this form only to proxies
		{"GET / HTTP/1.1\r\nHost: named.example\r\n\r\n", 200},
	} {
		status, body := send(t, address, c.request)
		require.Equal(t, c.status, status, "%s%s", c.request, body)
	}
	require.Len(t, seen, 4)
}

func TestAnAllowedHostIsAName(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"http://mneme.example", "mneme.example:8420", "*.mneme.example", "*", "a b", "mneme..example", "-x", "127.0.0.1/8", "é.example"} {
		_, err := Listen("MNEME_LISTEN", "127.0.0.1:0", Serving{Hosts: settings.Hosts{AllowedHosts: "localhost," + wrong}}, slog.New(slog.DiscardHandler))
		var usage *UsageError
		require.ErrorAs(t, err, &usage, wrong)
		require.ErrorContains(t, err, fmt.Sprintf("MNEME_ALLOWED_HOSTS=%q: not a host name", wrong))
	}
}
