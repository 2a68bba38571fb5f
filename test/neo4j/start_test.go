package neo4j_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/neo4j/neo4j-go-driver/v5/neo4j/config"
	"github.com/stretchr/testify/require"

	neo4jdeploy "mneme.dev/mneme/deploy/neo4j"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/neo4jtest"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
)

// refused runs a program that ends at once, and returns its only output.
func refused(t *testing.T, flags ...string) string {
	t.Helper()
	binary, err := mnemetest.Binary()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), binary, append([]string{
		"up", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0", "--store", "neo4j",
	}, flags...)...)
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "%s", out)
	require.Equal(t, 1, cmd.ProcessState.ExitCode(), "%s", out)
	require.Len(t, strings.Split(strings.TrimSpace(string(out)), "\n"), 1, "one line: %s", out)
	return string(out)
}

func TestAProgramThatCannotUseTheServerExplainsAndEnds(t *testing.T) {
	t.Parallel()
	files := neo4jtest.TLS(t)
	const password = "correct horse"
	server := neo4jtest.Own(t, func(c *neo4jdeploy.Config) { c.TLS, c.Password = &files, password })
	there := []string{"--neo4j-uri", server.URI(), "--neo4j-ca-file", files.CAFile, "--neo4j-password", password, "--neo4j-cert-file", files.ClientCertFile, "--neo4j-key-file", files.ClientKeyFile}
	with := func(flags ...string) []string { return append(append([]string(nil), there...), flags...) }

	for name, c := range map[string]struct {
		flags []string
		says  []string
	}{
		"a wrong password":               {with("--neo4j-password", "wrong horse"), []string{"refuses user and password", "MNEME_NEO4J_PASSWORD"}},
		"no password":                    {with("--neo4j-password", ""), []string{"refuses user and password", "MNEME_NEO4J_PASSWORD"}},
		"a certificate of nobody's":      {with("--neo4j-ca-file", ""), []string{"certificate", "MNEME_NEO4J_CA_FILE"}},
		"no certificate of its own":      {with("--neo4j-cert-file", "", "--neo4j-key-file", ""), []string{"certificate", "MNEME_NEO4J_CERT_FILE"}},
		"a host that is not in it":       {with("--neo4j-uri", strings.Replace(server.URI(), "127.0.0.1", "localhost", 1)), []string{"localhost", "certificate"}},
		"a database that does not exist": {with("--neo4j-database", "elsewhere"), []string{"elsewhere", "MNEME_NEO4J_DATABASE"}},
	} {
		t.Run(name, func(t *testing.T) {
			says := refused(t, c.flags...)
			t.Log(says)
			for _, word := range c.says {
				require.Contains(t, says, word)
			}
			require.NotContains(t, says, "horse", "a password is for nobody's eyes")
		})
	}

	t.Run("encryption on one side only is retried, with a hint", func(t *testing.T) {
		for _, uri := range []string{strings.Replace(server.URI(), "bolt+s:", "bolt:", 1), strings.Replace(neo4jtest.URI(t), "bolt:", "bolt+s:", 1)} {
			logged := &lines{}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				stores := worker.NewStores(t.TempDir(), settings.Models{Store: "neo4j", Neo4j: settings.Neo4j{URI: uri}})
				_, err := stores.Serving(ctx, slog.New(slog.NewTextHandler(logged, nil)), "graph")
				ended <- err
			}()
			require.Eventually(t, func() bool { return len(logged.with("waiting for Neo4j")) > 0 }, patience, time.Millisecond)
			cancel()
			require.ErrorContains(t, <-ended, "never became available")
			require.Contains(t, logged.with("waiting for Neo4j")[0], "bolt+s:// if the server encrypts")
		}
	})

	ca, err := os.ReadFile(files.CAFile)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(ca))
	pair, err := tls.LoadX509KeyPair(files.ClientCertFile, files.ClientKeyFile)
	require.NoError(t, err)
	driver, err := neo4j.NewDriverWithContext(server.URI(), neo4j.BasicAuth("neo4j", password, ""), func(c *config.Config) {
		c.TlsConfig = &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	})
	require.NoError(t, err)
	defer func() { _ = driver.Close(t.Context()) }()
	cypher := func(statement string) {
		t.Helper()
		_, err := neo4j.ExecuteQuery(t.Context(), driver, statement, nil, neo4j.EagerResultTransformer)
		require.NoError(t, err)
	}
	t.Run("another program's data", func(t *testing.T) {
		cypher("CREATE (:Message {text: 'of somebody else'})")
		says := refused(t, there...)
		t.Log(says)
		require.Contains(t, says, "another program's data")
		require.Contains(t, says, "Message")
		cypher("MATCH (m:Message) DELETE m")
	})
	t.Run("nothing is wrong", func(t *testing.T) {
		// The refusals before and after this show that the program comes as far as to the data. A start that continues
		// would plan all statements.
		if mnemetest.All {
			program := mnemetest.UpWith(t, append([]string{"--data", t.TempDir(), "--store", "neo4j"}, there...)...)
			require.Zero(t, program.Stop())
		}
		_ = openGraph(t, neo4jstore.Config{URI: server.URI(), Password: password, CAFile: files.CAFile, CertFile: files.ClientCertFile, KeyFile: files.ClientKeyFile, ConnectTimeout: mnemetest.Patience}, 1)
	})
	t.Run("a newer schema", func(t *testing.T) {
		cypher("CREATE (:MnemeSchema {n: 99, name: 'of tomorrow', sha256: ''})")
		says := refused(t, there...)
		t.Log(says)
		require.Contains(t, says, "newer mneme")
		cypher("MATCH (s:MnemeSchema {n: 99}) DELETE s")
	})
	t.Run("another schema", func(t *testing.T) {
		cypher("MATCH (s:MnemeSchema {n: 1}) SET s.sha256 = 'another'")
		says := refused(t, there...)
		t.Log(says)
		require.Contains(t, says, "is not the one that this program makes")
	})
}
