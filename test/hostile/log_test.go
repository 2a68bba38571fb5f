package hostile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/neo4jtest"
)

// losses are the ways in which a log can lose events unnoticed.
var losses = []struct {
	name   string
	seen   bool // by the log's own count, without reading it
	whole  bool // all is lost
	damage func(t *testing.T, s *mnemetest.Server, block string)
}{
	{"a block file is removed", true, true, func(t *testing.T, s *mnemetest.Server, block string) {
		require.Zero(t, s.Stop())
		require.NoError(t, os.Remove(block))
	}},
	{"a block file is cut to a half", true, false, func(t *testing.T, s *mnemetest.Server, block string) {
		require.Zero(t, s.Stop())
		require.NoError(t, os.Truncate(block, size(t, block)/2))
	}},
	{"bytes are flipped", false, false, func(t *testing.T, s *mnemetest.Server, block string) {
		require.Zero(t, s.Stop())
		raw, err := os.ReadFile(block)
		require.NoError(t, err)
		at := bytes.Index(raw, []byte("Question 3"))
		require.Positive(t, at)
		copy(raw[at:], "XXXXXXXX")
		require.NoError(t, os.WriteFile(block, raw, 0o600))
	}},
	{"the stream is purged", true, true, func(t *testing.T, s *mnemetest.Server, _ string) {
		conn, err := nats.Connect(s.NATS, nats.Timeout(mnemetest.Handshake))
		require.NoError(t, err)
		defer conn.Close()
		js, err := jetstream.New(conn)
		require.NoError(t, err)
		stream, err := js.Stream(mnemetest.Context(t), "AGENT_EVENTS")
		require.NoError(t, err)
		require.NoError(t, stream.Purge(mnemetest.Context(t)))
		require.Zero(t, s.Stop())
	}},
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size()
}

func TestEventsThatVanishFromTheLogAreSeenAndComeBack(t *testing.T) {
	t.Parallel()
	for _, loss := range losses {
		t.Run(loss.name, func(t *testing.T) {
			t.Parallel()
			lose(t, loss.seen, loss.whole, loss.damage)
		})
	}
}

func TestEventsThatVanishFromTheLogComeBackFromNeo4j(t *testing.T) {
	if !mnemetest.All {
		t.Skip("starts a Neo4j of its own: only with MNEME_TEST_ALL=1")
	}
	for _, loss := range losses {
		t.Run(loss.name, func(t *testing.T) {
			server := neo4jtest.Own(t)
			lose(t, loss.seen, loss.whole, loss.damage, "--store", "neo4j", "--neo4j-uri", server.URI())
		})
	}
}

// lose publishes a conversation, damages the log, and checks what an operator is told and what is
// restored.
func lose(t *testing.T, seen, whole bool, damage func(*testing.T, *mnemetest.Server, string), flags ...string) {
	data := t.TempDir()
	flags = append([]string{"--data", data}, flags...)
	s := mnemetest.UpWith(t, flags...)
	publish(t, s, "c", "start", "conversation.started", map[string]any{"title": "Lost and found", "cwd": "/src"})
	const turns = 20
	for i := range turns {
		if i == 3 {
			publish(t, s, "c", "long", "message.created", map[string]any{"message_id": "long", "role": "assistant", "content": strings.Repeat("long ", 20_000)})
		}
		publish(t, s, "c", fmt.Sprintf("u%d", i), "message.created", map[string]any{"message_id": fmt.Sprintf("u%d", i), "role": "user", "content": fmt.Sprintf("Question %d", i)})
		publish(t, s, "c", fmt.Sprintf("t%d", i), "tool.called", map[string]any{"tool_call_id": fmt.Sprintf("t%d", i), "tool_name": "Read", "arguments": map[string]any{"file_path": fmt.Sprintf("/src/%d.go", i)}})
		publish(t, s, "c", fmt.Sprintf("r%d", i), "tool.returned", map[string]any{"tool_call_id": fmt.Sprintf("t%d", i), "result": strings.Repeat("x", 300), "success": true})
	}
	transcript := func() string {
		out, stderr, code := s.Run("messages", "c", "--json", "--limit", "1000")
		require.Zero(t, code, stderr)
		return out
	}
	last := fmt.Sprintf("Question %d", turns-1)
	require.Eventually(t, func() bool {
		out, _, code := s.Run("messages", "c", "--json", "--limit", "1000") // not found until the first batch is applied
		return code == 0 && strings.Contains(out, last)
	}, patience, tick)
	damage(t, s, filepath.Join(data, "nats", "jetstream", "$G", "streams", "AGENT_EVENTS", "msgs", "1.blk"))

	s = mnemetest.UpWith(t, flags...)
	var status struct {
		Stream struct{ Head, Missing uint64 }
	}
	read := func() {
		out, stderr, code := s.Run("status", "--json")
		require.Zero(t, code, stderr)
		require.NoError(t, json.Unmarshal([]byte(out), &status))
	}
	read()
	require.EqualValues(t, 3*turns+2, status.Stream.Head)
	require.Equal(t, seen, status.Stream.Missing > 0, "%+v", status)
	if seen {
		_, stderr, _ := s.Run("status")
		require.Contains(t, stderr, "missing from the log")
		metrics := do(t, http.MethodGet, s.HTTP+"/metrics", nil, nil)
		require.Contains(t, string(metrics.Body), fmt.Sprintf("mneme_log_missing_events %d\n", status.Stream.Missing))
	}
	out, _, code := s.Run("doctor")
	require.Equal(t, 3, code, out)
	require.Contains(t, out, "mneme repair log")

	out, _, code = s.Run("verify")
	require.Equal(t, 3, code)
	require.Contains(t, out, "events are missing in the log")
	_, stderr, code := s.Run("rebuild", "all")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "last copy")
	require.Contains(t, transcript(), "Question 0")

	// The read model has only the beginning of the message of 100,000 characters.
	var repair struct {
		Missing, Left, Events, Restored uint64
		Conversations                   []struct {
			Unrestorable []struct{ Kind, ID, Reason string }
		}
	}
	out, stderr, code = s.Run("repair", "log", "--dry-run", "--json")
	require.NoError(t, json.Unmarshal([]byte(out), &repair), stderr)
	require.Positive(t, repair.Restored)
	if whole {
		require.Equal(t, 3, code)
		require.EqualValues(t, 3*turns+2, repair.Events)
		require.Len(t, repair.Conversations[0].Unrestorable, 1)
		require.Equal(t, "long", repair.Conversations[0].Unrestorable[0].ID)
	}
	before := status.Stream.Head
	read()
	require.Equal(t, before, status.Stream.Head, "a dry run publishes nothing")

	for range 2 { // a second repair finds nothing to do
		_, stderr, code = s.Run("repair", "log", "--accept")
		require.Contains(t, []int{0, 3}, code, stderr)
	}
	read()
	require.EqualValues(t, before+repair.Restored, status.Stream.Head)
	require.Zero(t, status.Stream.Missing)
	_, stderr, code = s.Run("rebuild", "all", "--force") // losses that were accepted disappear
	require.Zero(t, code, stderr)
	out, stderr, code = s.Run("verify")
	require.Zero(t, code, out+stderr)
	for i := range turns {
		require.Contains(t, transcript(), fmt.Sprintf(`"Question %d"`, i))
	}
	out, _, _ = s.Run("failed", "list", "--json")
	require.NotContains(t, out, "other content")
}
