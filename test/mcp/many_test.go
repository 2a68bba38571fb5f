package mcp

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
)

// usage is what a program holds. Resident memory also has what the garbage collector has not collected yet, which depends
// on how much memory the program may use: MNEME_MEMORY.
type usage struct {
	held, resident, peak int // MiB
	goroutines, fds      int
}

func used(t *testing.T, s *mnemetest.Server) (u usage) {
	t.Helper()
	number := func(pattern string, text []byte) int {
		m := regexp.MustCompile(pattern).FindSubmatch(text)
		require.NotNil(t, m, pattern)
		n, err := strconv.ParseFloat(string(m[1]), 64)
		require.NoError(t, err)
		return int(n)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	require.NoError(t, err)
	u.resident, u.peak = number(`VmRSS:\s+(\d+) kB`, status)>>10, number(`VmHWM:\s+(\d+) kB`, status)>>10
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID()))
	require.NoError(t, err)
	u.fds = len(open)
	response, err := http.Get(s.HTTP + "/metrics") //nolint:noctx // it ends with the server
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	u.goroutines = number(`(?m)^go_goroutines (\S+)`, text)
	// The next collection begins when the heap has grown by GOGC percent of what was live after the last one, and of stacks.
	next, stacks, percent := number(`(?m)^go_memstats_next_gc_bytes (\S+)`, text), number(`(?m)^go_memstats_stack_inuse_bytes (\S+)`, text), number(`(?m)^go_gc_gogc_percent (\S+)`, text)
	u.held = (max(0, next-stacks*percent/100)*100/(100+percent) + stacks) >> 20
	return u
}

// Every client has a connection of its own, calls a tool while all others do, and stays connected until all are done. 60
// of them wait for changes, too.
func TestAThousandClientsAtOnceCostLittleAndLeaveNothing(t *testing.T) {
	if !mnemetest.All {
		t.Skip("NOT RUN: takes half a minute; make test-all runs it")
	}
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("NOT RUN: there is no /proc here")
	}
	const clients, waiting = 1_000, 60
	s := mnemetest.Up(t, filepath.Join(t.TempDir(), "data"))
	publish(t, s.HTTP, "conversation.started", "start", `{"project":"shop"}`)
	for i := range 200 {
		publish(t, s.HTTP, "message.created", fmt.Sprint(i), fmt.Sprintf(`{"message_id":"%d","role":"user","content":"message %d about the cart, its vouchers and the total of the order"}`, i, i))
	}
	connect := func() (*sdk.ClientSession, *http.Transport) {
		road := http.DefaultTransport.(*http.Transport).Clone()
		c := sdk.NewClient(&sdk.Implementation{Name: "many", Version: "1"}, nil)
		session, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: s.HTTP + "/mcp?project=shop", HTTPClient: &http.Client{Transport: road}, DisableStandaloneSSE: true}, nil)
		require.NoError(t, err)
		return session, road
	}
	ask := func(session *sdk.ClientSession) error {
		result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "memory_context", Arguments: map[string]any{"conversation": "cart", "query": "voucher"}})
		if err == nil && result.IsError {
			err = fmt.Errorf("%s", result.Content[0].(*sdk.TextContent).Text)
		}
		return err
	}
	first, road := connect()
	require.NoError(t, ask(first))
	require.NoError(t, first.Close())
	road.CloseIdleConnections()
	idle := used(t, s)

	sessions, roads, failed := make([]*sdk.ClientSession, clients), make([]*http.Transport, clients), make([]error, clients)
	for i := range clients {
		sessions[i], roads[i] = connect()
	}
	for i := range waiting {
		require.NoError(t, sessions[i].Subscribe(t.Context(), &sdk.SubscribeParams{URI: "mneme://conversations/cart/context"}))
	}
	began := time.Now()
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() { failed[i] = ask(sessions[i]) })
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	var busy usage
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(100 * time.Millisecond):
		}
		if u := used(t, s); u.held >= busy.held {
			busy = u
		}
	}
	took := time.Since(began)
	for _, err := range failed {
		require.NoError(t, err)
	}
	for i := range clients {
		require.NoError(t, sessions[i].Close())
		roads[i].CloseIdleConnections()
	}
	var after usage
	assert.Eventually(t, func() bool {
		after = used(t, s)
		return after.goroutines <= idle.goroutines+10 && after.fds <= idle.fds+50 // SQLite keeps connections for later
	}, mnemetest.Patience, 200*time.Millisecond, "they leave something behind")
	t.Logf("idle %+v; with %d clients %+v, all answered in %s; after them %+v", idle, clients, busy, took.Round(time.Millisecond), after)
	require.LessOrEqual(t, busy.held-idle.held, 100, "MiB over idle")
}
