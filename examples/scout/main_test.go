package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/examples/scout/agent"
)

func TestCommandLine(t *testing.T) {
	server, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	defer server.Stop()
	_, err = server.Apply(t.Context(), natsdeploy.Settings{Partitions: 1})
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("a <b> lantern\n"), 0o600))
	scout := func(args ...string) (code int, stdout, stderr string) {
		var out, diag bytes.Buffer
		code = run(t.Context(), args, &out, &diag)
		return code, out.String(), diag.String()
	}
	t.Setenv("MNEME_NATS_URL", server.ClientURL())

	code, out, diag := scout("where is the lantern?", "--dir", dir, "--conversation", "c1")
	require.Zero(t, code, diag)
	require.Contains(t, out, "1. notes.txt:1: a <b> lantern\n")
	require.Contains(t, out, "\nconversation c1, last sequence 12\n")
	require.Equal(t, "I look at what is in the folder.\n", diag[:strings.Index(diag, "\n")+1])
	require.NotContains(t, diag, "\x1b", "colours are for terminals")

	code, out, diag = scout("--json", "where is the lantern?", "--dir", dir, "--conversation", "c1")
	require.Zero(t, code, diag)
	var answer agent.Answer
	require.NoError(t, json.Unmarshal([]byte(out), &answer))
	require.Equal(t, "c1", answer.Conversation)
	require.EqualValues(t, 23, answer.Seq, "a turn as before, without the event that began the conversation")
	require.Equal(t, "notes.txt:1", answer.Places[0].String())

	for name, args := range map[string][]string{
		"no question":    {},
		"empty question": {" "},
		"no such flag":   {"q", "--nope"},
		"no such folder": {"q", "--dir", filepath.Join(dir, "none")},
	} {
		code, out, diag = scout(args...)
		require.Equal(t, 2, code, name)
		require.Empty(t, out, name)
		require.Contains(t, diag, "scout --help", name)
	}

	code, out, _ = scout("--help")
	require.Zero(t, code)
	require.Contains(t, out, "MNEME_NATS_URL")

	server.Stop()
	code, out, diag = scout("where is the lantern?", "--dir", dir)
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, diag, "start mneme with `make run` or `mneme up`")
}
