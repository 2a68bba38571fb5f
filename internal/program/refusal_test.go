package program

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
	"mneme.dev/mneme/pkg/eventlog"
)

// "Start the server" is wrong about one that runs and refuses the connection.
func TestWhyANATSServerRefusesAConnection(t *testing.T) {
	t.Parallel()
	cert, key := certify(t, t.TempDir(), "server")
	other, otherKey := certify(t, t.TempDir(), "other")
	pair, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	pem, err := os.ReadFile(cert)
	require.NoError(t, err)
	known := x509.NewCertPool()
	require.True(t, known.AppendCertsFromPEM(pem))
	start := func(config *tls.Config) string {
		s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, TLS: config != nil, TLSTimeout: 10, TLSConfig: config})
		require.NoError(t, err)
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		require.True(t, s.ReadyForConnections(mnemetest.Patience))
		return s.Addr().String()
	}
	open := start(nil)
	encrypted := start(&tls.Config{Certificates: []tls.Certificate{pair}})
	strict := start(&tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: known})
	for name, c := range map[string]struct {
		url    string
		tls    settings.NATSTLS
		what   string
		remedy string
	}{
		"no server":            {"nats://127.0.0.1:1", settings.NATSTLS{}, "", ""},
		"an unknown authority": {"nats://" + encrypted, settings.NATSTLS{NATSCAFile: other}, "authority that is unknown", "MNEME_NATS_CA_FILE"},
		"without TLS":          {"nats://" + open, settings.NATSTLS{NATSCAFile: cert}, "does not use TLS", "unset MNEME_NATS_CA_FILE"},
		"without TLS, by URL":  {"tls://" + open, settings.NATSTLS{}, "does not use TLS", "write nats://"},
		"no certificate":       {"nats://" + strict, settings.NATSTLS{NATSCAFile: cert}, "certificate required", "MNEME_NATS_CERT_FILE"},
		"a wrong certificate":  {"nats://" + strict, settings.NATSTLS{NATSCAFile: cert, NATSCertFile: other, NATSKeyFile: otherKey}, "certificate", "MNEME_NATS_CERT_FILE"},
	} {
		var err error
		require.Eventually(t, func() bool { // on a busy machine, the server may close before its reason can be read
			_, err = eventlog.Connect(c.url, "test", slog.New(slog.DiscardHandler), NATSOptions(c.tls)...)
			return err == nil || !strings.Contains(err.Error(), "closed by remote")
		}, mnemetest.Patience, time.Millisecond, name)
		require.Error(t, err, name)
		what, remedy := Refusal(err)
		require.Contains(t, what, c.what, "%s: %v", name, err)
		require.Contains(t, remedy, c.remedy, name)
		require.Equal(t, c.what == "", what == "", "%s: %s", name, what)
	}
	what, remedy := Refusal(fmt.Errorf("%w: connection closed by remote after TLS handshake: %w", nats.ErrTLS, io.ErrClosedPipe))
	require.Contains(t, what, "does not accept the certificate of a client")
	require.Contains(t, remedy, "MNEME_NATS_CERT_FILE")
	what, _ = Refusal(fmt.Errorf("%w: %w", nats.ErrTLS, io.ErrUnexpectedEOF))
	require.Empty(t, what, "the server may only have ended")
	parsed, err := x509.ParseCertificate(pair.Certificate[0])
	require.NoError(t, err)
	what, remedy = Refusal(&tls.CertificateVerificationError{Err: parsed.VerifyHostname("nats.example.org")})
	require.Contains(t, what, "for another name")
	require.Contains(t, remedy, "MNEME_NATS_URL")
}

// A server that runs without the log needs something else than a server that does not run.
func TestAProgramSaysThatItWaitsForTheLogOfAServerThatAnswers(t *testing.T) {
	t.Parallel()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir()})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(mnemetest.Patience))
	ctx, cancel := context.WithCancel(mnemetest.Context(t))
	said := &untilSaid{cancel: cancel}
	_, err = OpenLog(ctx, LogConfig{URL: s.ClientURL(), Program: "tester", Telemetry: &telemetry.Telemetry{}, Logger: slog.New(slog.NewTextHandler(said, nil))})
	require.ErrorIs(t, err, ErrNeverAvailable)
	require.ErrorContains(t, err, "the log at "+s.ClientURL())
	require.Contains(t, said.String(), "waiting for the log: start ingestor")
}

// untilSaid ends what logs to it at the first line.
type untilSaid struct {
	strings.Builder
	cancel context.CancelFunc
}

func (w *untilSaid) Write(line []byte) (int, error) {
	w.cancel()
	return w.Builder.Write(line)
}
