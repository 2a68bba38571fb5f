package main

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
)

// The server does not answer what it refuses, so a timeout alone would come late and say nothing about the user.
func TestACommandSaysWhatNATSRefusesItsUser(t *testing.T) {
	server := natstest.Guard(t, "acme")
	for _, words := range [][]string{
		{"ingestor", "backup", "create", "--out", filepath.Join(t.TempDir(), "backup")},
		{"agent-acme", "partitions"},
		{"agent-acme", "tokens", "list"},
	} {
		user, command := words[0], words[1:]
		_, stderr, code := mnemeWith(t, server.Environment(user), command...)
		require.Equal(t, exitFailed, code)
		require.Contains(t, stderr, "NATS does not let the user of nats://"+user+":xxxxx@")
		require.Contains(t, stderr, `do this (Permissions Violation for Publish to "$JS.API.STREAM.`)
		require.Contains(t, stderr, "docs/operations/access.md")
		require.NotContains(t, stderr, "context", "the command does not wait for an answer that never comes")
	}
}

func TestAWrongPasswordForNATSIsNotTakenForAServerThatIsDown(t *testing.T) {
	server := natstest.Guard(t, "acme")
	for _, command := range [][]string{{"partitions"}, {"doctor"}} {
		stdout, stderr, code := mnemeWith(t, []string{"MNEME_NATS_URL=nats://operator:wrong@" + server.Addr().String()}, command...)
		require.NotZero(t, code)
		require.Contains(t, stdout+stderr, "this user with this password")
		require.NotContains(t, stdout+stderr, "start mneme with `mneme up`, or name the server with --nats-url")
	}
}

// A team with its own certificate authority first forgets to name it.
func TestACertificateOfAnUnknownAuthorityIsSaidWithTheFlagThatNamesIt(t *testing.T) {
	t.Parallel()
	page := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(page.Close)
	_, stderr, code := mneme(t, "status", "--url", page.URL)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "--ca-file")

	nats, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, TLS: true, TLSTimeout: 10, TLSConfig: &tls.Config{Certificates: page.TLS.Certificates}})
	require.NoError(t, err)
	nats.Start()
	t.Cleanup(func() { nats.Shutdown(); nats.WaitForShutdown() })
	require.True(t, nats.ReadyForConnections(mnemetest.Patience))
	_, stderr, code = mneme(t, "partitions", "--nats-url", nats.ClientURL())
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "--nats-ca-file")
	stdout, _, code := mneme(t, "doctor", "--url", page.URL, "--nats-url", nats.ClientURL())
	require.Equal(t, exitDifference, code)
	require.Contains(t, stdout, "MNEME_NATS_CA_FILE")
}
