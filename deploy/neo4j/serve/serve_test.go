//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	neo4jdeploy "mneme.dev/mneme/deploy/neo4j"
	"mneme.dev/mneme/internal/mnemetest/neo4jtest"
)

// cached returns a cache folder with the files fetched for this test run.
func cached(t *testing.T) string {
	t.Helper()
	jars := neo4jtest.Jars(t)
	cache := t.TempDir()
	require.NoError(t, os.Symlink(jars, filepath.Join(cache, "fetched")))
	require.NoError(t, os.WriteFile(filepath.Join(cache, "lts"), []byte(neo4jdeploy.LTS.Versions()[0]+" fetched\n"), 0o600))
	return cache
}

func TestCommandGetsAServerAndItsExitCodeIsReturned(t *testing.T) {
	cache := cached(t)
	t.Setenv(envURI, "")
	var stdout, stderr bytes.Buffer
	code := run([]string{"-cache", cache, "sh", "-c", "echo $MNEME_NEO4J_URI $MNEME_TEST_NEO4J_URI; test -d $MNEME_TEST_NEO4J_JARS || exit 1; exit 7"}, &stdout, &stderr)
	require.Equal(t, 7, code, &stderr)
	require.Regexp(t, `^(bolt://127\.0\.0\.1:\d+) bolt://127\.0\.0\.1:\d+\n$`, stdout.String())
	require.Empty(t, stderr.String())
}

// withoutMaven makes fetching impossible.
func withoutMaven(t *testing.T) {
	t.Setenv(envURI, "")
	t.Setenv(envTest, "")
	t.Setenv("PATH", t.TempDir())
}

func TestTestsRunWithoutNeo4jIfItIsMissing(t *testing.T) {
	withoutMaven(t)
	var stdout, stderr bytes.Buffer
	code := run([]string{"-tests", "-cache", t.TempDir(), "/bin/sh", "-c", "echo without ${MNEME_TEST_NEO4J_URI:-it}; exit 7"}, &stdout, &stderr)
	require.Equal(t, 7, code, &stderr)
	require.Regexp(t, `^Neo4j: not tested, no .*\nwithout it\n$`, stdout.String())
}

func TestTestsFailWithoutARequiredNeo4j(t *testing.T) {
	withoutMaven(t)
	t.Setenv(envTest, "required")
	var stdout, stderr bytes.Buffer
	code := run([]string{"-tests", "-cache", t.TempDir(), "/bin/sh", "-c", "echo ran"}, &stdout, &stderr)
	require.Equal(t, 1, code)
	require.Empty(t, stdout.String())
	require.Contains(t, stderr.String(), "install")
}

func TestTestsUseTheConfiguredServer(t *testing.T) {
	withoutMaven(t)
	t.Setenv(envURI, "bolt://127.0.0.1:1")
	var stdout, stderr bytes.Buffer
	code := run([]string{"-tests", "-cache", t.TempDir(), "/bin/sh", "-c", "echo $MNEME_TEST_NEO4J_URI"}, &stdout, &stderr)
	require.Equal(t, 0, code, &stderr)
	require.Equal(t, "Neo4j: tested on bolt://127.0.0.1:1\nbolt://127.0.0.1:1\n", stdout.String())
}

func TestInvalidCommandLinesAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-tests"}, {"-colour"}} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, 2, run(args, &stdout, &stderr))
		require.NotEmpty(t, stderr.String())
	}
}
