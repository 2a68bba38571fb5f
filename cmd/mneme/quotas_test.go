package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mnemetest"
)

func TestQuotasShowsWhatEachTenantUsesAndMayUse(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "quotas.yaml")
	require.NoError(t, os.WriteFile(path, []byte("default: {max_bytes: 1MB}\ntenants: {small: {max_events: 2, requests: 4}}\n"), 0o600))
	s := &server{Server: mnemetest.UpWith(t, "--data", filepath.Join(t.TempDir(), "data"), "--quotas-file", path), t: t}
	for _, title := range []string{"one", "two"} {
		_, stderr, code := s.mneme("conversations", "create", "--tenant", "small", "--title", title)
		require.Zero(t, code, stderr)
	}
	_, stderr, code := s.mneme("conversations", "create", "--tenant", "other", "--title", "one")
	require.Zero(t, code, stderr)
	_, stderr, code = s.mneme("conversations", "create", "--tenant", "small", "--title", "three")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, `the tenant "small" is over its quota max_events: it stores 2 of 2 events, which leaves no room for 1 more`)

	var list httpapi.TenantQuotas
	require.Eventually(t, func() bool {
		list = read[httpapi.TenantQuotas](s, "quotas")
		return !list.Counting && list.Total == 2
	}, mnemetest.Patience, 50*time.Millisecond)
	require.Equal(t, "small", list.Tenants[0].Tenant, "the nearest to a limit is first")
	require.True(t, list.Tenants[0].Listed)
	require.Equal(t, httpapi.QuotaUse{Name: "requests", Limit: 4}, list.Tenants[0].Quotas[0])
	require.Equal(t, httpapi.QuotaUse{Name: "max_events", Used: 2, Limit: 2}, list.Tenants[0].Quotas[1])
	require.Equal(t, "other", list.Tenants[1].Tenant)
	require.False(t, list.Tenants[1].Listed)

	out, stderr, code := s.mneme("quotas", "--tenant", "small")
	require.Zero(t, code, stderr)
	lines := strings.Split(out, "\n")
	require.Equal(t, []string{"TENANT", "QUOTA", "USED", "LIMIT", "SHARE"}, strings.Fields(lines[0]))
	require.Equal(t, []string{"small", "max_events", "2", "2", "100", "%"}, strings.Fields(lines[2]))
	require.NotContains(t, out, "other")
	require.NotContains(t, stderr, "warning")

	require.NoError(t, os.WriteFile(path, []byte("tenants: {secret: {max_event: 2}}\n"), 0o600))
	require.Eventually(t, func() bool {
		_, stderr, _ = s.mneme("quotas")
		return strings.Contains(stderr, "max_event")
	}, mnemetest.Patience, 50*time.Millisecond)
	require.Contains(t, stderr, "the previous quotas stay in force")
	out, stderr, _ = s.mneme("quotas", "--tenant", "small")
	require.Contains(t, out, "max_events")
	require.Contains(t, stderr, "the previous quotas stay in force")
	require.NotContains(t, stderr, "secret", "another tenant's name")
	_, stderr, code = s.mneme("quotas", "--tenant", "nobody")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, `tenant "nobody" is unknown`)
}
