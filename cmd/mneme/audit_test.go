package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mnemetest"
)

func TestTheAuditLogSaysWhoMadeATokenAndWhatWasDoneWithIt(t *testing.T) {
	t.Parallel()
	s := &server{Server: mnemetest.UpWith(t, "--data", filepath.Join(t.TempDir(), "data"), "--tokens"), t: t}
	operator := read[createdToken](s, "tokens", "create", "--all-tenants", "--role", "operate")
	reader := read[createdToken](s, "tokens", "create", "--tenant", "team-a", "--role", "read", "--project", "/home/somebody/shop")
	require.Eventually(t, func() bool {
		_, _, code := s.mneme("conversations", "list", "--token", reader.Token)
		return code == 0
	}, mnemetest.Patience, 50*time.Millisecond)
	_, stderr, code := s.mneme("tokens", "revoke", reader.ID)
	require.Zero(t, code, stderr)

	list := func(args ...string) (list []httpapi.AuditEntry) {
		out, stderr, code := s.mneme(append([]string{"audit", "--json", "--token", operator.Token}, args...)...)
		require.Zero(t, code, stderr)
		for line := range strings.Lines(out) {
			var e httpapi.AuditEntry
			require.NoError(t, json.Unmarshal([]byte(line), &e), line)
			list = append(list, e)
		}
		require.NotContains(t, out, "somebody")
		require.NotContains(t, out, reader.Token[6:])
		return list
	}
	require.Eventually(t, func() bool {
		read := list("--tenant", "team-a", "--subject", reader.ID)
		return len(read) == 1 && read[0].Action == "list-conversations"
	}, mnemetest.Patience, 50*time.Millisecond, "reads are stored a moment later")
	all := list()
	require.Equal(t, "tokens-create", all[0].Action)
	require.Equal(t, "token:"+operator.ID+" role:operate all-tenants", all[0].Target)
	require.Equal(t, []string{"begun", "done"}, []string{all[0].Outcome, all[1].Outcome})
	require.True(t, strings.HasPrefix(all[0].Subject, "os:"))
	revoked := list("--action", "tokens-revoke")
	require.Len(t, revoked, 2)
	require.Contains(t, revoked[1].Target, "token:"+reader.ID+" role:read project:")
	require.Empty(t, list("--since", "2100-01-01"))

	out, stderr, code := s.mneme("audit", "--token", operator.Token)
	require.Zero(t, code, stderr)
	require.Contains(t, strings.SplitN(out, "\n", 2)[0], "SUBJECT")
	require.Equal(t, len(all)+1, strings.Count(out, "\n"))
	s.ready = ready{HTTP: s.HTTP, NATS: s.NATS}
	narrow := s.person(60, nil, "audit", "--token", operator.Token, "--action", "tokens-revoke")
	require.Contains(t, narrow, "TIME              SUBJECT", "when, who, what and how it ended")
	for _, name := range []string{"ACTION", "TARGET", "OUTCOME"} {
		require.Contains(t, narrow, name)
	}
	require.Contains(t, narrow, "done")
	require.NotContains(t, narrow, "TIMES", "no entry was repeated")
	_, stderr, code = s.mneme("audit", "--token", operator.Token, "--since", "yesterday")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "30d")
	_, stderr, code = s.mneme("audit", "--token", reader.Token)
	require.Equal(t, exitFailed, code)
	require.NotContains(t, stderr, "panic")
}
