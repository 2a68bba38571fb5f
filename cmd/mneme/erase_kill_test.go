package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/erasure"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/eventlog"
)

// doomed publishes messages that contain a canary, in five conversations of a tenant.
func doomed(t *testing.T, s *server, tenant, canary string, n int) {
	t.Helper()
	conn, err := eventlog.Connect(s.ready.NATS, "test", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer conn.Close()
	log, err := eventlog.Open(mnemetest.Context(t), conn)
	require.NoError(t, err)
	var list []events.Event
	for i := range n {
		e, err := events.New(fmt.Sprintf("%s-%d", tenant, i%5), "test", fmt.Sprint(i), &events.MessageCreated{
			MessageID: fmt.Sprint("m", i), Role: []string{"user", "assistant"}[i/5%2], Content: fmt.Sprintf("Message %d holds the %s. ", i, canary) + strings.Repeat("It will be erased. ", 20),
		})
		require.NoError(t, err)
		list = append(list, e)
	}
	_, err = log.PublishAll(mnemetest.Context(t), tenant, list)
	require.NoError(t, err)
}

// The server does the work and the command waits for it. Both are killed with SIGKILL at ever later points, and run
// again.
func TestAnErasureWhoseServerAndCommandAreKilledIsFinished(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	kills, messages := 4, 60
	if mnemetest.All {
		kills, messages = 60, 300
	}
	path, err := mnemetest.Binary()
	require.NoError(t, err)
	data := filepath.Join(t.TempDir(), "data")
	s := up(t, data)
	recording(t, data+".jsonl", 1, 4, 6)
	_, stderr, code := s.mneme("import", "--wait", data+".jsonl")
	require.Zero(t, code, stderr)
	before, stderr, code := s.mneme("messages", "testagent:1", "--json")
	require.Zero(t, code, stderr)

	var canaries []string
	servers := 0 // killed
	for killed := 0; killed < kills; {
		tenant, canary := fmt.Sprint("gone", len(canaries)), fmt.Sprintf("quagmire%dcanary", len(canaries))
		canaries = append(canaries, "--prove", canary)
		doomed(t, s, tenant, canary, messages)
		for point, done := 0, false; !done; point++ {
			ctx, cancel := context.WithTimeout(t.Context(), mnemetest.Patience)
			command := exec.CommandContext(ctx, path, "erase", "tenant", tenant, "--yes", "--json", "--url", s.ready.HTTP)
			var out, errs strings.Builder
			command.Stdout, command.Stderr = &out, &errs
			require.NoError(t, command.Start())
			exited := make(chan error, 1)
			go func() { exited <- command.Wait() }()
			kill := time.After(time.Duration(point%12) * 150 * time.Millisecond)
			if killed >= kills {
				kill = nil // the last one runs to its end
			}
			select {
			case err := <-exited:
				require.NoError(t, err, errs.String())
				var e httpapi.Erasure
				require.NoError(t, json.Unmarshal([]byte(out.String()), &e), out.String())
				require.Equal(t, string(erasure.Done), e.State)
				require.True(t, e.Report.Sealed())
				require.Equal(t, 5, e.Report.Conversations)
				done = true
			case <-kill:
				if point%3 != 2 { // else only the command dies
					s.kill()
					servers++
				}
				_ = command.Process.Kill()
				<-exited
				if point%3 != 2 {
					s = up(t, data)
				}
				killed++
			}
			cancel()
		}
	}
	// nats-server marks a message as removed before it overwrites it. If it is killed in between, nobody can ask for
	// the message again, and its bytes stay in its file: at most one message for each kill.
	out, stderr, code := s.mneme(append([]string{"erase", "--json", "--path", data}, canaries...)...)
	require.Contains(t, []int{0, exitDifference}, code, stderr)
	var left erasure.Searched
	require.NoError(t, json.Unmarshal([]byte(out), &left), out)
	require.LessOrEqual(t, len(left.Hits), servers, "%v", left.Hits)
	for _, hit := range left.Hits {
		require.Contains(t, hit.File, filepath.Join("AGENT_EVENTS", "msgs"), "nothing is left anywhere else")
	}
	out, stderr, code = s.mneme("verify")
	require.Zero(t, code, "%s%s", out, stderr)
	after, stderr, code := s.mneme("messages", "testagent:1", "--json")
	require.Zero(t, code, stderr)
	require.Equal(t, before, after, "what was not erased stays as it was")
	status := read[httpapi.Status](s, "status")
	require.Zero(t, status.Stream.Missing, "erased events do not count as lost")
}
