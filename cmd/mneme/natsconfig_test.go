package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNATSConfigMakesCredentialsFiles(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "nats-jwt")
	out, errs, code := mneme(t, "nats-config", "--tenants", "team-a", "--jwt", folder)
	require.Zero(t, code, errs)
	require.Contains(t, out, filepath.Join(folder, "jwt.conf"))
	for _, user := range []string{"ingestor", "context-api", "agent-team-a"} {
		require.FileExists(t, filepath.Join(folder, "creds", user+".creds"))
	}
	text, err := os.ReadFile(filepath.Join(folder, "jwt.conf"))
	require.NoError(t, err)
	require.NotContains(t, string(text), "password")
}

func TestNATSConfigSaysWhatDoesNotGoTogether(t *testing.T) {
	folder := t.TempDir()
	for _, args := range [][]string{
		{"--renew"},
		{"--jwt", folder, "--callout-seed-file", filepath.Join(folder, "seed.nk")},
		{"--jwt", folder, "--tenants", "a b"},
	} {
		_, errs, code := mneme(t, append([]string{"nats-config"}, args...)...)
		require.Equal(t, 2, code, args)
		require.Contains(t, errs, "--", args)
	}
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, entries, "nothing is written")
}
