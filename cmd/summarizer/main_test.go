package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/llmtest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
	"mneme.dev/mneme/internal/mnemetest/programs"
	"mneme.dev/mneme/internal/service"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
)

// patience is the time limit for anything on a busy machine.
const patience = mnemetest.Patience

// running is one of mneme's programs while it runs.
type running struct {
	cmd *exec.Cmd
	err bytes.Buffer
}

func start(t *testing.T, bin, name string, environment ...string) *running {
	t.Helper()
	p := &running{cmd: exec.Command(filepath.Join(bin, name))}
	p.cmd.Env = append(os.Environ(), environment...)
	p.cmd.Stderr = &p.err
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s:\n%s", name, &p.err)
		}
	})
	return p
}

// kill is kill -9.
func (p *running) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// conversation returns a conversation for which exactly one summary is due: its last 1,500
// characters stay out, and the 3,000 before them are enough for one summary but not for
// two.
func conversation(t *testing.T, id string) (list []events.Event) {
	t.Helper()
	for n, role := range []string{"user", "assistant", "user", "assistant", "user", "assistant", "user", "assistant", "user", "assistant", "user", "assistant"} {
		text := fmt.Sprintf("Message %d of %s. ", n, id) + strings.Repeat("It was measured and holds. ", 15)
		e, err := events.New(id, "test", fmt.Sprint(n), &events.MessageCreated{MessageID: fmt.Sprint(n), Role: role, Content: text})
		require.NoError(t, err)
		list = append(list, e)
	}
	return list
}

// summaries reads the summaries in the log, by conversation.
func summaries(t *testing.T, log *eventlog.Log) map[string][]*events.SummaryWritten {
	t.Helper()
	found := map[string][]*events.SummaryWritten{}
	err := log.Tail(t.Context(), eventlog.Filter{}, eventlog.TailOptions{From: 1, ToEnd: true}, func(m eventlog.Message) error {
		r, _, err := m.Decode()
		if p, ok := r.Payload.(*events.SummaryWritten); ok {
			found[r.Subject] = append(found[r.Subject], p)
		}
		return err
	})
	require.NoError(t, err)
	return found
}

// If a process is killed while a model writes, the call is paid for: the next process calls
// again, and the summary is written once.
func TestKilledCallIsRepeatedAndItsSummaryWrittenOnce(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	bin, err := programs.Build("mneme.dev/mneme/cmd/summarizer", "mneme.dev/mneme/cmd/ingestor")
	require.NoError(t, err)
	data := t.TempDir()
	server, conn := natstest.Alone(t, embedded.Config{Listen: "127.0.0.1:0", MaxBytes: 1 << 30}, natsdeploy.Settings{MaxBytes: 1 << 30})
	log, err := eventlog.Open(mnemetest.Context(t), conn)
	require.NoError(t, err)

	endpoint := llmtest.New(t)
	endpoint.Reply(llmtest.Hang, llmtest.Chat(`{"conversation": "They measured it.", "actions": "Measured.", "findings": ["It holds."], "topics": ["measures"]}`))
	environment := []string{
		"MNEME_LISTEN=127.0.0.1:0", "MNEME_NATS_URL=" + server.ClientURL(), "MNEME_DATA=" + data, "MNEME_STORE=sqlite",
		"MNEME_SUMMARY_WRITER=openai", "MNEME_LLM_URL=" + endpoint.URL(), "MNEME_LLM_MODEL=small", "MNEME_TITLES=false", "MNEME_MAX_CONTEXT_CHARS=30000",
	}
	start(t, bin, "ingestor", environment...)
	first := start(t, bin, "summarizer", environment...)
	_, err = log.PublishAll(mnemetest.Context(t), "default", conversation(t, "c"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return endpoint.Calls() == 1 }, patience, 10*time.Millisecond, "the model was not called")
	first.kill()
	require.Empty(t, summaries(t, log), "the model has not answered")

	start(t, bin, "summarizer", environment...)
	require.Eventually(t, func() bool { return len(summaries(t, log)["c"]) > 0 }, patience, 50*time.Millisecond)
	// Work on the other conversation means that nothing is left to do in this one.
	_, err = log.PublishAll(mnemetest.Context(t), "default", conversation(t, "d"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(summaries(t, log)["d"]) > 0 }, patience, 50*time.Millisecond)

	written := summaries(t, log)
	require.Len(t, written["c"], 1)
	require.Equal(t, "llm", written["c"][0].Method)
	require.Equal(t, "They measured it.", written["c"][0].Conversation)
	require.Equal(t, uint64(1), written["c"][0].FirstSeq)
	require.Len(t, written["d"], 1)
	requests := endpoint.Requests()
	require.Len(t, requests, 3, "only the interrupted call is made twice")
	require.Equal(t, requests[0].Text, requests[1].Text)

	models := service.NewModels(data, worker.NewStores(data, settings.Models{Store: "sqlite"}))
	defer func() { require.NoError(t, models.Close()) }()
	graphs, err := models.Graph(t.Context())
	require.NoError(t, err)
	defer graphs.Release()
	states, err := models.Summaries(t.Context())
	require.NoError(t, err)
	defer states.Release()
	c := events.ConversationID{Tenant: "default", ID: "c"}
	require.Eventually(t, func() bool {
		inGraph, err := graphs.Model.Summaries(t.Context(), c, graph.SummaryQuery{Superseded: true})
		require.NoError(t, err)
		inState, err := states.Model.Ranges(t.Context(), c, 1, 0, 10)
		require.NoError(t, err)
		return len(inGraph) == 1 && inGraph[0].SummaryID == written["c"][0].SummaryID && len(inState) == 1 && inState[0].ID == inGraph[0].SummaryID
	}, patience, 50*time.Millisecond)
}
