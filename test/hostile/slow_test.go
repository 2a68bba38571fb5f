package hostile

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
)

// begin opens a connection and writes the beginning of a request. After that the client neither
// sends nor reads anything.
func begin(t *testing.T, s *mnemetest.Server, request string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.HTTP, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4<<10))
	_, err = io.WriteString(conn, request)
	require.NoError(t, err)
}

// quick is how long an undelayed answer may take, even on a busy machine: less than the 10 s
// for which a request is kept waiting.
const quick = 9 * time.Second

func TestIdleBytesDoNotKeepOthersFromPublishing(t *testing.T) {
	t.Parallel()
	s := up(t)
	for range 16 {
		begin(t, s, "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/cloudevents+json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n")
		begin(t, s, "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/cloudevents-batch+json\r\nContent-Length: 67000000\r\n\r\n[")
	}
	// The room for large bodies is also full, because their bytes have arrived.
	half := strings.Repeat(" ", 48<<20)
	for range 6 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.HTTP, "http://"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		go func() {
			_, _ = fmt.Fprintf(conn, "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/cloudevents-batch+json\r\nContent-Length: 67000000\r\n\r\n%s", half)
		}()
	}
	// Every event is accepted: none has waited for the whole time and been refused. A few answers may
	// be late because the machine is busy with the large bodies; nine of ten may not.
	took := make([]time.Duration, 40)
	for i := range took {
		began := time.Now()
		got := publish(t, s, "c", fmt.Sprint(i), "message.created", map[string]any{"message_id": fmt.Sprint("m", i), "role": "user", "content": "x"})
		took[i] = time.Since(began)
		require.Equal(t, http.StatusCreated, got.Status, "%s", got.Body)
		time.Sleep(10 * time.Millisecond)
	}
	slices.Sort(took)
	require.Less(t, took[len(took)*9/10], quick)
}

func TestClientsThatDoNotReadKeepNobodyFromReading(t *testing.T) {
	t.Parallel()
	s := up(t)
	for i := range 12 {
		got := publish(t, s, "big", fmt.Sprint(i), "message.created", map[string]any{"message_id": fmt.Sprint("m", i), "role": "user", "content": strings.Repeat("text ", 200_000)})
		require.Equal(t, http.StatusCreated, got.Status, "%s", got.Body)
	}
	publish(t, s, "small", "1", "message.created", map[string]any{"message_id": "m", "role": "user", "content": "x"})
	require.Equal(t, http.StatusOK, do(t, http.MethodGet, s.HTTP+"/v1/conversations/small/messages?at_least=13", nil, nil).Status)
	for range 40 {
		begin(t, s, "GET /v1/conversations/big/messages?at_least=12&limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	for range 8 {
		begin(t, s, "GET /v1/conversations/big/export HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	time.Sleep(time.Second) // until they hold their places
	var took []time.Duration
	for _, path := range []string{"small/messages", "big/context?max_chars=1000", "small/export", "big/messages?limit=1", "small/export"} {
		began := time.Now()
		got := do(t, http.MethodGet, s.HTTP+"/v1/conversations/"+path, nil, nil)
		require.Equal(t, http.StatusOK, got.Status, "%s: %s", path, got.Body)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	require.Less(t, took[len(took)/2], quick, "most reads are quick: %v", took)
}
