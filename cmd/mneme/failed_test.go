package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/graph/readmodel"
)

func TestFailedEventsAreShownAndRetried(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	conn, err := nats.Connect(s.ready.NATS, nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	defer conn.Close()
	out, stderr, code := s.mneme("failed", "list")
	require.Zero(t, code)
	require.Equal(t, "No event was skipped.\n", stderr)
	require.Empty(t, out, "a heading with nothing below it")
	for _, subject := range []string{"mneme.default.c1.message_created", "mneme.team.c1.message_created"} {
		_, err = conn.Request(subject, []byte("no event"), 10*time.Second)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return len(read[[]httpapi.FailedEvent](s, "failed", "list")) == 2*len(readmodel.Always()) }, mnemetest.Patience, 10*time.Millisecond)
	require.Len(t, read[[]httpapi.FailedEvent](s, "failed", "list", "--tenant", "team"), len(readmodel.Always()))
	require.Len(t, read[[]httpapi.FailedEvent](s, "failed", "list", "--conversation", "c1", "--class", "invalid", "--projection", "graph"), 1)
	require.Empty(t, read[[]httpapi.FailedEvent](s, "failed", "list", "--class", "error"))

	out, stderr, code = s.mneme("failed", "show", "1")
	require.Zero(t, code, stderr)
	for _, part := range []string{"projection\tgraph", "projection\tfiles", "class\tinvalid", "subject\tev.0.default.c1.message_created", "no event"} {
		require.Contains(t, out, part)
	}
	_, stderr, code = s.mneme("failed", "show", "4711")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no projection has a failed event at sequence 4711")

	for name, args := range map[string][]string{"seq": {"1"}, "conversation": {"--conversation", "c1"}, "all of a tenant": {"--all", "--tenant", "team"}} {
		out, stderr, code = s.mneme(append([]string{"failed", "retry", "--json"}, args...)...)
		require.Equal(t, 1, code, "%s: it fails again", name)
		require.Contains(t, stderr, "mneme failed list says why")
		var r httpapi.Retry
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		require.Equal(t, []int{len(readmodel.Always()), 0, len(readmodel.Always())}, []int{len(r.Conversations), r.Applied, r.Failed}, name)
	}
	out, stderr, code = s.mneme("failed", "retry", "--all", "--class", "error")
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "0 skipped events")
	require.Contains(t, out, "PROJECTION")
	for _, args := range [][]string{{}, {"1", "--all"}, {"--all", "--conversation", "c1"}} {
		_, stderr, code = s.mneme(append([]string{"failed", "retry"}, args...)...)
		require.Equal(t, 2, code, stderr)
	}
}

func TestARetryGoesThroughAllPages(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request httpapi.RetryRequest
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || !request.All || request.Tenant != "" {
			http.Error(w, "not as it was asked", http.StatusUnprocessableEntity)
			return
		}
		page := httpapi.Retry{Applied: 10, NextAfter: request.After + 100, Conversations: []httpapi.RetriedConversation{{Projection: "graph", Conversation: fmt.Sprint(request.After), Applied: 10}}}
		if page.NextAfter == 300 {
			page.NextAfter = 0
		}
		_ = json.NewEncoder(w).Encode(page)
	}))
	defer server.Close()
	_, stderr, code := mneme(t, "failed", "retry", "--all", "--url", server.URL)
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "30 skipped events in 3 conversations: 30 applied now, 0 failed again")
}

func TestARetryCountsAConversationOnceForAllProjections(t *testing.T) {
	t.Parallel()
	page := httpapi.Retry{Applied: 3, Conversations: []httpapi.RetriedConversation{
		{Projection: "graph", Tenant: "a", Conversation: "c", Applied: 1},
		{Projection: "files", Tenant: "a", Conversation: "c", Applied: 1},
		{Projection: "files", Tenant: "b", Conversation: "c", Applied: 1},
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(page) }))
	defer server.Close()
	_, stderr, code := mneme(t, "failed", "retry", "--all", "--url", server.URL)
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "3 skipped events in 2 conversations (an event counts once for each projection that skipped it): 3 applied now, 0 failed again")
}

func TestStatusSaysWhatIsWrongAndWhatToDo(t *testing.T) {
	t.Parallel()
	halted := "the log ends at sequence 3: mneme rebuild graph"
	status := httpapi.Status{
		Projections: []httpapi.ProjectionStatus{
			{Name: "graph", Partition: 0, State: "live", Holder: "a", Rate: 2.5, Failed: 7},
			{Name: "graph", Partition: 1, State: "halted", Holder: "b", Failed: 7, Error: halted},
			{Name: "graph", Partition: 2, State: "halted", Holder: "b", Error: halted},
			{Name: "files", Partition: 0, State: "halted", Error: halted},
			{Name: "files", Partition: 1, State: "idle"},
		},
		Processes: []httpapi.ProcessStatus{
			{Name: "a", Program: "ingestor", Version: "v1", Started: "2026-01-02T03:04:05Z", State: "live", Partitions: []httpapi.DrivenPartition{{Projection: "graph", Generation: 1}}},
			{Name: "b", Program: "ingestor", State: "halted", Error: halted, Partitions: []httpapi.DrivenPartition{
				{Projection: "graph", Generation: 1, Partition: 1}, {Projection: "graph", Generation: 1, Partition: 2}, {Projection: "graph", Generation: 1, Partition: 4},
				{Projection: "graph", Generation: 2, Partition: 0}}},
			{Name: "older", State: "unknown"},
		},
		ProcessesError: "no answer",
		ProviderError:  "no keys of https://id.example.org",
	}
	status.Stream.Bytes, status.Stream.MaxBytes = 995, 1000
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(status) }))
	defer server.Close()
	out, stderr, code := mneme(t, "status", "--url", server.URL, "--color", "never")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "graph\t\t0\t1\thalted\t0\t0\t0\tb\t")
	require.Contains(t, out, "live\t0\t0\t2.5\ta\t0\t0\t0\t0\t7\t\n")
	require.NotContains(t, out, "7\t"+halted, "skipped events of all partitions are shown once")
	require.Contains(t, out, "a\tingestor\tv1\t2026-01-02T03:04:05Z\tlive\tgraph 0\t")
	require.Contains(t, out, "b\tingestor\t\t\thalted\tgraph 1-2,4 graph/2 0\t")
	require.Contains(t, out, "older\t\t\t\tunknown\t")
	require.Contains(t, stderr, "failed  graph partitions 1, 2; files partition 0: "+halted)
	require.Contains(t, stderr, "warning  files partition 1: no process is known to drive it\n→ start file-tracker")
	require.Contains(t, stderr, "failed  the log, 995 of 1000 bytes: it is full\n→ make room")
	require.Contains(t, stderr, "failed  the running processes, and what they drive, are unknown: no answer\n→ until it answers")
	require.Contains(t, stderr, "warning  no keys of https://id.example.org\n→ start the identity provider")
	require.NotContains(t, out+stderr, "\x1b[")
}
