package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/mnemetest"
)

func TestTwoTeamsHaveTokensOfTheirOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	up := mnemetest.UpWith(t, "--data", filepath.Join(dir, "data"), "--tokens", "--listen", "0.0.0.0:0", "--otlp-listen", "0.0.0.0:0")
	s := &server{Server: up, t: t}
	require.Contains(t, s.HTTP, "http://127.0.0.1:")
	require.Contains(t, s.OTLP[0], "http://127.0.0.1:")

	_, stderr, code := s.mneme("conversations", "list")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "mneme tokens create")
	require.Contains(t, stderr, "MNEME_TOKEN or --token-file")

	teamA := read[createdToken](s, "tokens", "create", "--tenant", "team-a", "--role", "write", "--name", "agents of team A")
	require.Regexp(t, access.Pattern, teamA.Token)
	require.WithinDuration(t, time.Now().Add(90*24*time.Hour), *teamA.Expires, time.Hour)
	plain, _, code := s.mneme("tokens", "create", "--tenant", "team-b", "--role", "read", "--expires", "never")
	require.Zero(t, code)
	teamB := strings.TrimSpace(plain)
	require.True(t, access.IsToken(teamB), "in a pipe only the token is printed")

	recorded := filepath.Join(dir, "recorded.jsonl")
	recording(t, recorded, 1, 2, 2)
	file := filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(file, []byte(teamA.Token+"\n"), 0o600))
	_, stderr, code = s.mneme("import", recorded, "--wait", "--token-file", file)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "name the tenant with --tenant")
	_, stderr, code = s.mneme("import", recorded, "--wait", "--token-file", file, "--tenant", "team-a")
	require.Zero(t, code, stderr)

	require.Len(t, read[[]struct{ ID string }](s, "conversations", "list", "--token-file", file), 2, "the token names the tenant")
	require.Empty(t, read[[]struct{ ID string }](s, "conversations", "list", "--token", teamB))
	_, stderr, code = s.mneme("conversations", "list", "--token", teamB, "--tenant", "team-a")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, `the token is only for the tenant "team-b"`)
	_, stderr, code = s.mneme("conversations", "create", "--token", teamB)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "needs the role write, and the token has read")

	// The list shows both tokens and when each was last used; it reveals neither.
	require.Eventually(t, func() bool {
		out, _, _ := s.mneme("tokens", "list", "--json")
		require.NotContains(t, out, teamA.Token[6:])
		list := read[[]listedToken](s, "tokens", "list")
		return len(list) == 2 && list[0].LastUsed != nil && list[1].LastUsed != nil
	}, mnemetest.Patience, 100*time.Millisecond)
	require.Len(t, read[[]listedToken](s, "tokens", "list", "--tenant", "team-a"), 1)

	_, stderr, code = s.mneme("tokens", "revoke", teamA.ID)
	require.Zero(t, code, stderr)
	require.Eventually(t, func() bool {
		_, stderr, code := s.mneme("conversations", "list", "--token-file", file)
		return code == exitFailed && strings.Contains(stderr, "revoked or expired")
	}, mnemetest.Patience, 50*time.Millisecond)
	_, stderr, code = s.mneme("tokens", "revoke", teamA.ID)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "no token has this id")

	// The server still demands a token after a restart: revoking all tokens does not open it.
	_, _, code = s.mneme("tokens", "revoke", "--all", "--tenant", "team-b")
	require.Zero(t, code)
	require.Empty(t, read[[]listedToken](s, "tokens", "list"))
	response, err := http.Get(s.HTTP + "/v1/status")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusUnauthorized, response.StatusCode)
}

func TestTokensInAFileNeedNoServer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens.jsonl")
	for says, args := range map[string][]string{
		"can only read":  {"--role", "write", "--project", "shop"},
		"--expires":      {"--role", "read", "--expires", "soon"},
		"at most 3650d":  {"--role", "read", "--expires", "4000d"},
		"must be one of": {"--role", "god"},
	} {
		_, stderr, code := mneme(t, append([]string{"tokens", "create", "--tokens-file", file}, args...)...)
		require.Equal(t, exitUsage, code, says)
		require.Contains(t, stderr, says)
	}
	_, stderr, code := mneme(t, "tokens", "create", "--tokens-file", file, "--role", "read", "--tenant", "a")
	require.Zero(t, code, stderr)
	out, stderr, code := mneme(t, "tokens", "list", "--tokens-file", file)
	require.Zero(t, code, stderr)
	id := strings.Fields(strings.Split(out, "\n")[1])[0]
	_, stderr, code = mneme(t, "tokens", "revoke", "--tokens-file", file, id)
	require.Zero(t, code, stderr)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Empty(t, text)
}
