// Package neo4jtest gives tests a real Neo4j: one that all packages share, or one of
// their own to kill, fill or break.
//
//	MNEME_TEST_NEO4J_URI       the shared server, for [URI]
//	MNEME_TEST_NEO4J_PASSWORD  password of its user neo4j; empty if it needs none
//	MNEME_TEST_NEO4J_JARS      the folder of Neo4j's jars, for [Own]
//	MNEME_TEST_NEO4J=required  a test that does not get its server fails; otherwise it is skipped
//
// make test sets the first and the third, for which it needs Java and Maven.
package neo4jtest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/stretchr/testify/require"

	neo4jdeploy "mneme.dev/mneme/deploy/neo4j"
)

// URI returns the address of the shared server, "bolt://127.0.0.1:7687". Tests of other
// packages use it at the same time, and data of earlier runs may remain, so a test must look
// only at what it wrote itself.
func URI(t testing.TB) string {
	t.Helper()
	return setting(t, "MNEME_TEST_NEO4J_URI", "names no server")
}

// Password is the password of the shared server's user neo4j, empty if it needs none.
func Password() string { return os.Getenv("MNEME_TEST_NEO4J_PASSWORD") }

// Jars is the folder of the jars that [Own] starts servers from.
func Jars(t testing.TB) string {
	t.Helper()
	return setting(t, "MNEME_TEST_NEO4J_JARS", "names no folder of jars")
}

// Own starts a server for this test alone, in a new directory unless an option sets
// one, and ends it with the test. It takes about 5 seconds and 500 MB.
func Own(t testing.TB, options ...func(*neo4jdeploy.Config)) *neo4jdeploy.Server {
	t.Helper()
	cfg := neo4jdeploy.Config{Jars: Jars(t)}
	for _, option := range options {
		option(&cfg)
	}
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	s, err := neo4jdeploy.Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(s.Kill) // its data is no longer needed
	return s
}

// Restart restarts a server that has ended, at the same address, and ends it with the test.
func Restart(t testing.TB, s *neo4jdeploy.Server) *neo4jdeploy.Server {
	t.Helper()
	again, err := s.Restart(t.Context())
	require.NoError(t, err)
	t.Cleanup(again.Kill)
	return again
}

// Wipe deletes all nodes and relationships of a server without a password, for tests that
// use it one after the other. Its indexes and query plans stay.
func Wipe(t testing.TB, s *neo4jdeploy.Server) {
	t.Helper()
	driver, err := neo4j.NewDriverWithContext(s.URI(), neo4j.NoAuth())
	require.NoError(t, err)
	defer func() { require.NoError(t, driver.Close(t.Context())) }()
	session := driver.NewSession(t.Context(), neo4j.SessionConfig{})
	result, err := session.Run(t.Context(), "MATCH (n) CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 100 ROWS", nil)
	require.NoError(t, err)
	_, err = result.Consume(t.Context())
	require.NoError(t, errors.Join(err, session.Close(t.Context())))
}

var warn sync.Once

// setting returns the value of an environment variable. If it is unset, the test is skipped
// or fails.
func setting(t testing.TB, name, lack string) string {
	t.Helper()
	if value := os.Getenv(name); value != "" {
		return value
	}
	if os.Getenv("MNEME_TEST_NEO4J") == "required" {
		t.Fatalf("%s %s, and MNEME_TEST_NEO4J=required", name, lack)
	}
	warn.Do(func() {
		fmt.Fprintf(os.Stderr, "Neo4j: not tested, %s %s; make test sets it\n", name, lack)
	})
	t.Skipf("%s %s", name, lack)
	return ""
}
