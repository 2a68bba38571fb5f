package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/frame"
	"mneme.dev/mneme/internal/importer"
)

// secretLine is a line of a transcript of Claude Code.
func secretLine(t *testing.T, uuid, role, content string) string {
	raw, err := json.Marshal(map[string]any{
		"type": role, "uuid": uuid, "sessionId": "s", "timestamp": "2026-11-24T10:00:00Z", "message": map[string]any{"id": uuid, "role": role, "content": content},
	})
	require.NoError(t, err)
	return string(raw) + "\n"
}

func TestSecretsAndFramesOfATranscriptStayOutOfTheLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const session = "0a93878f-dc30-4a5d-882f-3cd81cd3d499"
	secret := "gh" + "p_" + strings.Repeat("aB3d", 9)
	file := filepath.Join(dir, session+".jsonl")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write(secretLine(t, "u1", "user", "push with "+secret+"\n\n"+frame.Wrap("c0ffee", 7, "old text")) + secretLine(t, "a1", "assistant", "pushed") + secretLine(t, "u2", "user", "thanks"))
	s := up(t, filepath.Join(dir, "data"))
	report := read[importer.Report](s, "import", file, "--wait")
	require.Equal(t, 1, report.Redacted)
	require.Zero(t, report.Rejected)

	const id = "claude_code:" + session
	log, _, code := s.mneme("tail", "--from", "1", "--until-end", "--json")
	require.Equal(t, exitDone, code)
	require.Contains(t, log, `"push with [redacted:github-token]"`)
	require.NotContains(t, log, secret)
	require.NotContains(t, log, "old text")

	seen := read[[]seenContexts](s, "messages", id, "--seen")
	require.Len(t, seen, 1)
	require.Equal(t, []string{"c0ffee"}, seen[0].Contexts)
	require.Equal(t, "user", seen[0].What)
	require.Equal(t, seen, read[[]seenContexts](s, "messages", id, "msg:a1", "--seen"), "the answer was given with it in view")
	require.Empty(t, read[[]seenContexts](s, "messages", id, "msg:u2", "--seen"), "a new turn")
	_, stderr, code := s.mneme("messages", id, "nothing", "--seen")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "no message")

	require.Empty(t, read[[]secretPlace](s, "redact", "scan"))
	_, stderr, code = s.mneme("redact", "scan", "--conversation", "misspelt")
	require.Equal(t, exitFailed, code, "no secrets in what is not there says nothing")
	require.Contains(t, stderr, "the log holds no event of the conversation misspelt of the tenant default")
	rules := filepath.Join(dir, "rules.yaml")
	require.NoError(t, os.WriteFile(rules, []byte("rules: [{kind: thanks, pattern: thanks}]"), 0o600))
	again := read[importer.Report](s, "import", file, "--redact-rules", rules)
	require.Equal(t, again.Read, again.Duplicate, "what is in the log stays as it was redacted then")
	stdout, _, code := s.mneme("redact", "scan", "--redact-rules", rules)
	require.Equal(t, exitDifference, code)
	require.Contains(t, stdout, "thanks")

	other := filepath.Join(dir, "1"+session[1:]+".jsonl")
	require.NoError(t, os.Rename(file, other))
	require.Zero(t, read[importer.Report](s, "import", other, "--redact", "off", "--wait").Redacted)
	stdout, _, code = s.mneme("redact", "scan", "--json")
	require.Equal(t, exitDifference, code)
	require.NotContains(t, stdout, secret)
	var places []secretPlace
	require.NoError(t, json.Unmarshal([]byte(stdout), &places))
	require.Len(t, places, 1)
	require.Equal(t, "content github-token", fmt.Sprint(places[0].Field, " ", places[0].Kind))

	require.NoError(t, os.WriteFile(rules, []byte("rules: [{kind: x, pattern: '('}]"), 0o600))
	_, stderr, code = s.mneme("import", other, "--redact-rules", rules)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "rule 1: pattern")
}
