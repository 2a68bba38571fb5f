//go:build unix

package neo4jdeploy

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// maven sets a PATH that holds only a Java and a program mvn that runs the script. $out
// is the folder for the jars, $version the requested version.
func maven(t *testing.T, script string) (bin string) {
	t.Helper()
	bin = t.TempDir()
	for name, script := range map[string]string{
		"java": `echo 'openjdk version "21.0.1"'`,
		"mvn": `for a; do case "$a" in -DoutputDirectory=*) out="${a#*=}" ;; -Dneo4j.version=*) version="${a#*=}" ;; esac; done
` + script,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script), 0o700))
	}
	t.Setenv("JAVA_HOME", "")
	t.Setenv("PATH", bin)
	return bin
}

func TestFetchTakesTheFirstVersionThatResolves(t *testing.T) {
	maven(t, `[ $version != 5.26.30 ] || { : >"$out/half.jar"; echo "Could not find artifact neo4j:$version"; exit 1; }
		: >"$out/neo4j-$version.jar"`)
	cache := t.TempDir()
	_, err := Fetched(cache, LTS)
	require.ErrorIs(t, err, ErrNotFetched)

	var log bytes.Buffer
	jars, err := Fetch(t.Context(), cache, LTS, &log)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(cache, "5.26.25"), jars)
	require.Contains(t, log.String(), "Could not find artifact neo4j:5.26.30")
	require.Equal(t, []string{"5.26.25", "lts"}, names(t, cache), "nothing half-fetched stays")
	require.Equal(t, []string{"neo4j-5.26.25.jar"}, names(t, jars))

	maven(t, "exit 1")
	log.Reset()
	again, err := Fetch(t.Context(), cache, LTS, &log)
	require.NoError(t, err, "an existing version is not fetched again")
	require.Equal(t, jars, again)
	require.Empty(t, log.String())
	found, err := Fetched(cache, LTS)
	require.NoError(t, err)
	require.Equal(t, jars, found)
}

func TestFetchDoesNotTryEveryVersionWithoutANetwork(t *testing.T) {
	maven(t, `printf '\033[0m[ERROR] Could not transfer artifact: repo: Name or service not known\n[ERROR] \n[ERROR] For help see'; exit 1`)
	cache := t.TempDir()
	var log bytes.Buffer
	_, err := Fetch(t.Context(), cache, LTS, &log)
	require.ErrorIs(t, err, ErrNotResolved)
	require.EqualError(t, err, "Neo4j was not resolved: version 5.26.30: mvn: exit status 1: Could not transfer artifact: repo: Name or service not known")
	require.Equal(t, "Neo4j 5.26.30: fetching its jars with Maven\n", log.String())
	require.Empty(t, names(t, cache))
}

func TestFetchSaysThatMavenIsMissing(t *testing.T) {
	require.NoError(t, os.Remove(filepath.Join(maven(t, ""), "mvn")))
	_, err := Fetch(t.Context(), t.TempDir(), LTS, &bytes.Buffer{})
	require.ErrorIs(t, err, ErrNoMaven)
	require.ErrorContains(t, err, "apt-get install maven")
}

func TestFetchRefusesAnUnknownLine(t *testing.T) {
	t.Parallel()
	_, err := Fetch(t.Context(), t.TempDir(), "3.5", &bytes.Buffer{})
	require.EqualError(t, err, `no line "3.5" of Neo4j: there are "lts" and "current"`)
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}
