package agent_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/examples/scout/agent"
	"mneme.dev/mneme/internal/mnemetest"
)

// connectYourOwn has, between the marks, the lines that the README shows.
func connectYourOwn(ctx context.Context, url string) error {
	// readme:
	log, err := agent.Connect(ctx, url) // nats://127.0.0.1:4222
	if err != nil {
		return err
	}
	defer log.Conn().Close()
	rec := agent.NewRecorder(log, "default", "") // or the id of a conversation to continue

	rec.User(ctx, "Which Go version is this?")
	rec.Assistant(ctx, "I look into go.mod.", "The module file names it.") // text, reasoning
	rec.Call(ctx, "call_1", "read_file", map[string]string{"path": "go.mod"})
	rec.Return(ctx, "call_1", "go 1.26.0\n", nil, 3*time.Millisecond) // or nil and the error
	rec.Assistant(ctx, "It is Go 1.26.", "")
	// :readme
	return nil
}

func TestReadmeCodeWorks(t *testing.T) {
	t.Parallel()
	server, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	defer server.Stop()
	_, err = server.Apply(t.Context(), natsdeploy.Settings{})
	require.NoError(t, err)
	require.NoError(t, connectYourOwn(t.Context(), server.ClientURL()))
	log, err := agent.Connect(t.Context(), server.ClientURL())
	require.NoError(t, err)
	defer log.Conn().Close()
	state, err := log.State(mnemetest.Context(t))
	require.NoError(t, err)
	require.EqualValues(t, 5, state.Head)

	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	_, shown, _ := strings.Cut(string(source), "\t// readme:\n")
	shown, _, _ = strings.Cut(shown, "\t// :readme\n")
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), "```go\n"+shown+"```\n")
}
