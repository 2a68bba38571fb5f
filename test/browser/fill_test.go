package browser

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/eventlog"
)

// hostile are texts that a page would take for something else if it made HTML of them.
var hostile = []string{
	"<img src=x onerror=alert(1)>", `</script><script>alert(1)</script>`, `"><iframe src="javascript:alert(1)">`,
	"[click](javascript:alert(1)) ![](http://example.com/x.png)", "\u202Edesrever \u2028 \x1b[31mred", "{{constructor.constructor('alert(1)')()}}",
	"nothing\U000E0049\U000E0047 to see",
}

// fill gives a server a recorded session, a conversation of 1,000 turns, and one with hostile texts wherever an agent
// can put a text, of which an event can't be applied. It returns what the scripts need to know about them.
func fill(t *testing.T, s *mnemetest.Server) map[string]any {
	t.Helper()
	program, err := mnemetest.Binary()
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), program, "import", "--wait", "--url", s.HTTP, "--nats-url", s.NATS, "../../docs/examples/scout.jsonl.gz").CombinedOutput()
	require.NoError(t, err, "%s", out)
	publish(t, s.NATS, "test:long", texts(numbered(2_000)))
	publish(t, s.NATS, "test:asked", texts([]string{"Is anyone there?"}))
	publish(t, s.NATS, "test:leftward", texts([]string{strings.Repeat("הבדיקה נכשלת שוב ושוב ", 20)}))
	ok := false
	list := []events.Payload{&events.ConversationStarted{Title: hostile[0], Agent: hostile[1], Project: hostile[0], Tags: hostile[:2]}}
	list = append(list, texts(append([]string{"What does alert do?"}, hostile...))...)
	list = append(list, &events.ToolCalled{ToolCallID: "call", ToolName: hostile[0] + strings.Repeat("W", 100), Arguments: json.RawMessage(`{"file_path":"/src/<img src=x onerror=alert(1)>"}`)},
		&events.ToolReturned{ToolCallID: "call", Success: &ok, Result: events.TextResult(hostile[0]), Files: []events.FileOp{{Path: "/src/" + hostile[0], Op: "read"}}},
		&events.ToolCondensed{ToolCallID: hostile[0], Content: "This fails, because there is no such call.", Model: "test"})
	first := publish(t, s.NATS, "test:hostile", list)
	applied(t, s, "test:hostile")
	answer, err := http.Get(s.HTTP + "/v1/conversations/test:hostile/context?record=true&query=" + url.QueryEscape(hostile[0]))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	served, err := strconv.Atoi(answer.Header.Get("Mneme-Context-Seq"))
	require.NoError(t, err)
	answer, err = http.Post(s.HTTP+"/v1/conversations/test:long/branches", "application/json", strings.NewReader(`{"message_id": "m999"}`))
	require.NoError(t, err)
	var branch struct {
		ID string `json:"conversation_id"`
	}
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&branch))
	require.NoError(t, answer.Body.Close())
	return map[string]any{
		"url": s.HTTP, "long": "test:long", "hostile": "test:hostile", "asked": "test:asked", "leftward": "test:leftward", "recorded": "scout", "branch": branch.ID, "project": hostile[0], "served": served, "message": fmt.Sprint(first + 2),
	}
}

func numbered(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("Message %d says where the checkpoint of shard %d is written.", i, i%13)
	}
	return list
}

// texts returns messages, of the user and of the assistant in turn.
func texts(list []string) []events.Payload {
	payloads := make([]events.Payload, len(list))
	for n, text := range list {
		payloads[n] = &events.MessageCreated{MessageID: fmt.Sprintf("m%d", n), Role: []string{"user", "assistant"}[n%2], Content: text}
	}
	return payloads
}

// publish publishes the events of a conversation, and returns the sequence of the first.
func publish(t *testing.T, nats, conversation string, payloads []events.Payload) uint64 {
	t.Helper()
	conn, err := eventlog.Connect(nats, "test", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer conn.Close()
	log, err := eventlog.Open(mnemetest.Context(t), conn)
	require.NoError(t, err)
	list := make([]events.Event, len(payloads))
	for n, p := range payloads {
		list[n], err = events.New(conversation, "test", fmt.Sprintf("e%d", n), p)
		require.NoError(t, err)
	}
	acks, err := log.PublishAll(mnemetest.Context(t), "default", list)
	require.NoError(t, err)
	return acks[0].Seq
}

// applied waits until the read models have all of a conversation.
func applied(t *testing.T, s *mnemetest.Server, conversation string) {
	t.Helper()
	answer, err := http.Get(s.HTTP + "/v1/status")
	require.NoError(t, err)
	var status struct{ Stream struct{ Head uint64 } }
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&status))
	require.NoError(t, answer.Body.Close())
	require.Eventually(t, func() bool {
		answer, err := http.Get(fmt.Sprintf("%s/v1/conversations/%s?at_least=%d&wait_ms=30000", s.HTTP, conversation, status.Stream.Head))
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	}, mnemetest.Patience, 10*time.Millisecond)
}
