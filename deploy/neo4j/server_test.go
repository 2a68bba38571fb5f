package neo4jdeploy_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/neo4j/neo4j-go-driver/v5/neo4j/config"
	"github.com/stretchr/testify/require"

	neo4jdeploy "mneme.dev/mneme/deploy/neo4j"
	"mneme.dev/mneme/internal/mnemetest/neo4jtest"
)

func TestRunningServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := neo4jtest.Own(t, func(c *neo4jdeploy.Config) { c.Dir = dir })

	t.Run("has the settings of the file", func(t *testing.T) {
		for line := range strings.Lines(neo4jdeploy.Conf) {
			name, want, ok := strings.Cut(strings.TrimSpace(line), "=")
			if !ok || strings.HasPrefix(name, "#") {
				continue
			}
			have := query(t, s, "SHOW SETTINGS '"+name+"' YIELD value")
			require.Len(t, have, 1, name)
			require.Equal(t, normal(want), normal(have[0].(string)), name)
		}
	})

	t.Run("keeps its directory and its port", func(t *testing.T) {
		_, err := neo4jdeploy.Start(t.Context(), neo4jdeploy.Config{Dir: dir, Jars: neo4jtest.Jars(t)})
		require.ErrorIs(t, err, neo4jdeploy.ErrDirInUse)
		require.ErrorContains(t, err, "the process ")

		_, port, err := net.SplitHostPort(strings.TrimPrefix(s.URI(), "bolt://"))
		require.NoError(t, err)
		_, err = neo4jdeploy.Start(t.Context(), neo4jdeploy.Config{Dir: t.TempDir(), Jars: neo4jtest.Jars(t), Listen: "localhost:" + port})
		require.ErrorIs(t, err, neo4jdeploy.ErrPortInUse)

		require.Equal(t, []any{int64(1)}, query(t, s, "RETURN 1"), "it is not disturbed")
	})

	t.Run("keeps what was committed before a kill", func(t *testing.T) {
		query(t, s, "CREATE (:Kept {id: 'before a kill'})")
		s.Kill()
		again := neo4jtest.Restart(t, s)
		require.Equal(t, s.URI(), again.URI())
		require.Equal(t, []any{"before a kill"}, query(t, again, "MATCH (k:Kept) RETURN k.id"))
	})
}

// normal formats a duration or a size as Neo4j does.
func normal(value string) string {
	value = strings.ToLower(value)
	switch value {
	case "120s":
		return "2m"
	case "256m":
		return "256.00mib"
	}
	return value
}

func TestServerRefusesClientsWithoutTLSOrPassword(t *testing.T) {
	t.Parallel()
	dir, files := t.TempDir(), neo4jtest.TLS(t)
	files.ClientCertFile, files.ClientKeyFile = "", "" // clients show no certificate here
	s := neo4jtest.Own(t, func(c *neo4jdeploy.Config) { c.Dir, c.Password, c.TLS = dir, "correct-horse", &files })
	require.True(t, strings.HasPrefix(s.URI(), "bolt+s://"), s.URI())
	ca, err := os.ReadFile(files.CAFile)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(ca))
	right := neo4j.BasicAuth(neo4jdeploy.User, "correct-horse", "")

	require.NoError(t, connect(t, s.URI(), right, roots))
	require.ErrorContains(t, connect(t, s.URI(), right, nil), "certificate")
	require.Error(t, connect(t, strings.Replace(s.URI(), "bolt+s", "bolt", 1), right, nil))
	require.ErrorContains(t, connect(t, s.URI(), neo4j.NoAuth(), roots), "Unauthorized")
	require.ErrorContains(t, connect(t, s.URI(), neo4j.BasicAuth(neo4jdeploy.User, "neo4j", ""), roots), "Unauthorized")

	require.NoError(t, s.Stop())
	require.NoError(t, s.Stop(), "a stopped server can be stopped")
	_, err = neo4jdeploy.Start(t.Context(), neo4jdeploy.Config{Dir: dir, Jars: neo4jtest.Jars(t), Password: "another-horse"})
	require.ErrorIs(t, err, neo4jdeploy.ErrPassword)
}

func TestServerThatDoesNotStartSaysWhy(t *testing.T) {
	t.Parallel()
	_, err := neo4jdeploy.Start(t.Context(), neo4jdeploy.Config{Dir: t.TempDir(), Jars: neo4jtest.Jars(t), HeapMiB: 4})
	require.ErrorIs(t, err, neo4jdeploy.ErrNotStarted)
	require.ErrorContains(t, err, "heap")
}

func TestStartEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // a start takes several seconds
	defer cancel()
	_, err := neo4jdeploy.Start(ctx, neo4jdeploy.Config{Dir: t.TempDir(), Jars: neo4jtest.Jars(t)})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestStartRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*neo4jdeploy.Config)
		want   error
	}{
		"a folder without jars": {func(c *neo4jdeploy.Config) { c.Jars = c.Dir }, neo4jdeploy.ErrNotFetched},
		"a short password":      {func(c *neo4jdeploy.Config) { c.Password = "horse" }, neo4jdeploy.ErrPassword},
		"every interface":       {func(c *neo4jdeploy.Config) { c.Listen = "0.0.0.0:0" }, neo4jdeploy.ErrNotLoopback},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := neo4jdeploy.Config{Dir: t.TempDir(), Jars: neo4jtest.Jars(t)}
			tc.change(&cfg)
			_, err := neo4jdeploy.Start(t.Context(), cfg)
			require.ErrorIs(t, err, tc.want)
		})
	}
}

// query runs a statement and returns the first column.
func query(t *testing.T, s *neo4jdeploy.Server, statement string) []any {
	t.Helper()
	driver, err := neo4j.NewDriverWithContext(s.URI(), neo4j.NoAuth())
	require.NoError(t, err)
	defer driver.Close(t.Context())
	result, err := neo4j.ExecuteQuery(t.Context(), driver, statement, nil, neo4j.EagerResultTransformer)
	require.NoError(t, err)
	var column []any
	for _, record := range result.Records {
		column = append(column, record.Values[0])
	}
	return column
}

// connect tries to reach a server with the given trust.
func connect(t *testing.T, uri string, auth neo4j.AuthToken, roots *x509.CertPool) error {
	t.Helper()
	driver, err := neo4j.NewDriverWithContext(uri, auth, func(c *config.Config) {
		c.TlsConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	})
	require.NoError(t, err)
	defer driver.Close(t.Context())
	return driver.VerifyConnectivity(t.Context())
}
