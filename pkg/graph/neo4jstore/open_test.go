package neo4jstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/projection"
)

func TestVersionsBefore526AreTooOld(t *testing.T) {
	t.Parallel()
	for version, ok := range map[string]bool{
		"5.26.0": true, "5.26.30": true, "5.27": true, "2025.01.0": true, "2026.09.0": true, "6.0": true, "5.26-aura": true,
		"5.25.1": false, "5.9.0": false, "4.4.40": false, "5": false, "": false, "latest": false,
	} {
		require.Equal(t, ok, newEnough(version), version)
	}
}

func TestServerErrorsAreClassified(t *testing.T) {
	t.Parallel()
	server := func(code, text string) error { return &neo4j.Neo4jError{Code: code, Msg: text} }
	for name, c := range map[string]struct{ err, want error }{
		"constraint":         {server(constraintViolated, "already exists"), projection.ErrRejected},
		"value too large":    {server("Neo.DatabaseError.Statement.ExecutionFailed", "Property value is too large to index"), projection.ErrRejected},
		"type":               {server("Neo.ClientError.Statement.TypeError", "a map is not a property"), projection.ErrRejected},
		"argument":           {server("Neo.ClientError.Statement.ArgumentError", "bad"), projection.ErrRejected},
		"transaction memory": {server("Neo.TransientError.General.TransactionOutOfMemoryError", "too much"), projection.ErrTooLarge},
		"memory":             {server("Neo.TransientError.General.MemoryPoolOutOfMemoryError", "too much"), projection.ErrTooLarge},
		"credentials":        {server("Neo.ClientError.Security.Unauthorized", "no"), ErrUnauthorized},
		"rate of wrong ones": {server("Neo.ClientError.Security.AuthenticationRateLimit", "no"), ErrUnauthorized},
		"deadlock":           {server("Neo.TransientError.Transaction.DeadlockDetected", "again"), projection.ErrUnavailable},
		"lost":               {&neo4j.ConnectivityError{Inner: errors.New("EOF")}, projection.ErrUnavailable},
		"connection":         {&lost{errors.New("EOF")}, projection.ErrUnavailable},
		"time":               {server("Neo.ClientError.Transaction.TransactionTimedOut", "too long"), projection.ErrTooLarge},
		"ours":               {projection.ErrFenced, projection.ErrFenced},
		"wrapped":            {fmt.Errorf("in a batch: %w", server(constraintViolated, "already exists")), projection.ErrRejected},
	} {
		require.ErrorIs(t, classify(c.err), c.want, name)
		require.ErrorIs(t, classify(c.err), c.err, name)
	}
	require.NoError(t, classify(nil))
	require.NoError(t, classifyOne(nil))
	late := classifyOne(server("Neo.ClientError.Transaction.TransactionTimedOutClientConfiguration", "too long"))
	require.ErrorIs(t, late, projection.ErrUnavailable)
	require.ErrorContains(t, late, "the store does not answer in time: ")
	require.True(t, tookTooLong(late))
	require.ErrorIs(t, classifyOne(server(memoryPool, "too much")), projection.ErrTooLarge)
	syntax := server("Neo.ClientError.Statement.SyntaxError", "a defect of ours")
	require.Equal(t, syntax, classify(syntax))
}

func TestAStatementThatTakesTooLongIsNoBatchThatIsTooLarge(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	c.ReadTimeout, c.WriteTimeout = 100*time.Millisecond, 100*time.Millisecond
	d, err := open(t.Context(), testConfig(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.close()) })
	d.Config = c.withDefaults()
	const endless = "UNWIND range(1, 1000000000) AS n WITH n WHERE n % 1000 = 1001 RETURN n"
	for name, run := range map[string]func(*testing.T) error{
		"one": func(t *testing.T) error { _, err := d.write(t.Context(), endless, nil); return err },
		"each": func(t *testing.T) error {
			return d.each(t.Context(), endless, nil, func([]any) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := run(t)
			require.ErrorIs(t, err, projection.ErrUnavailable)
			require.NotErrorIs(t, err, projection.ErrTooLarge)
		})
	}
}

func TestCloseWaitsForBackgroundWork(t *testing.T) {
	t.Parallel()
	g, err := OpenGraph(t.Context(), testConfig(t), generationOf(t.Name()))
	require.NoError(t, err)
	ended := false
	g.Background(g.Warm) // for the race detector
	g.Background(func(ctx context.Context) error {
		<-ctx.Done()
		ended = true
		return ctx.Err()
	})
	require.NoError(t, g.Close())
	require.True(t, ended)
}

func TestAMissingServerIsUnavailable(t *testing.T) {
	t.Parallel()
	_, err := OpenGraph(t.Context(), Config{URI: "bolt://127.0.0.1:1", ConnectTimeout: time.Second}, 1)
	require.ErrorIs(t, err, projection.ErrUnavailable)
	require.ErrorContains(t, err, "bolt://127.0.0.1:1")
}

// A busy or stopping server may fall silent or hang up at every step of the handshake, of which the first answer chooses the
// longer form that servers since 5.26 know.
func TestAServerThatDoesNotEndTheHandshakeIsUnavailable(t *testing.T) {
	t.Parallel()
	manifest := []byte{0, 0, 1, 0xff}
	for name, answer := range map[string][]byte{
		"nothing": nil, "half a version": manifest[:2], "a version": manifest, "how many versions follow": append(manifest, 2),
		"one of two versions": append(manifest, 2, 0, 8, 8, 5), "no capabilities": append(manifest, 1, 0, 8, 8, 5), "all": append(manifest, 1, 0, 8, 8, 5, 0),
	} {
		for _, hangsUp := range []bool{false, true} {
			t.Run(fmt.Sprintf("it sends %s, and hangs up %t", name, hangsUp), func(t *testing.T) {
				t.Parallel()
				address := mnemetest.Listen(t, func(conn net.Conn) {
					_, _ = io.ReadFull(conn, make([]byte, 20))
					_, _ = conn.Write(answer)
					if hangsUp {
						_ = conn.Close()
					}
				})
				_, err := OpenGraph(t.Context(), Config{URI: "bolt://" + address, ConnectTimeout: 200 * time.Millisecond, ReadTimeout: time.Millisecond}, 1)
				require.ErrorIs(t, err, projection.ErrUnavailable)
			})
		}
	}
}

func TestInvalidAddressesAreRefused(t *testing.T) {
	t.Parallel()
	_, err := OpenGraph(t.Context(), Config{URI: "http://127.0.0.1"}, 1)
	require.Error(t, err)
	require.NotErrorIs(t, err, projection.ErrUnavailable)
}

func TestTheCAFileIsChecked(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ca.pem")
	_, err := OpenGraph(t.Context(), Config{CAFile: file}, 1)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(file, []byte("nothing"), 0o600))
	_, err = OpenGraph(t.Context(), Config{CAFile: file}, 1)
	require.ErrorContains(t, err, "no certificate")
}
