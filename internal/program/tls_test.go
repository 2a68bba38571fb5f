package program

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/pkg/eventlog"
)

// certify writes a certificate for 127.0.0.1 and localhost, signed by itself, and its key.
func certify(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600))
	return cert, key
}

func TestHTTPIsServedOverTLSAndANewCertificateIsTakenUp(t *testing.T) {
	dir := t.TempDir()
	cert, key := certify(t, dir, "first")
	server, err := Listen("MNEME_LISTEN", "127.0.0.1:0", Serving{CertFile: cert, KeyFile: key}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer server.Stop()
	server.Start(http.HandlerFunc(Alive))
	require.Contains(t, server.URL(), "https://")
	served := func() (string, error) {
		client, err := HTTPClient(server.URL(), settings.Token{CAFile: cert}) // trusts what the file holds now
		require.NoError(t, err)
		defer client.CloseIdleConnections()
		response, err := client.Get(server.URL() + "/healthz")
		if err != nil {
			return "", err
		}
		require.Equal(t, 1, response.ProtoMajor)
		return response.TLS.PeerCertificates[0].Subject.CommonName, response.Body.Close()
	}
	name, err := served()
	require.NoError(t, err)
	require.Equal(t, "first", name)

	other := t.TempDir()
	newCert, newKey := certify(t, other, "second")
	info, err := os.Stat(cert)
	require.NoError(t, err)
	require.NoError(t, os.Chtimes(newCert, time.Time{}, info.ModTime()), "the clock of a file system may be coarse")
	require.NoError(t, os.Rename(newKey, key)) // for a moment the two don't fit
	time.Sleep(lookEvery)
	require.NoError(t, os.Rename(newCert, cert))
	require.Eventually(t, func() bool {
		name, err := served()
		return err == nil && name == "second"
	}, mnemetest.Patience, 50*time.Millisecond)
	_, err = (&http.Client{}).Get(server.URL())
	require.Error(t, err, "an authority that is not the system's")
}

func TestHTTP2IsSpokenWhereItIsAskedFor(t *testing.T) {
	cert, key := certify(t, t.TempDir(), "http2")
	roots, err := settings.Roots(cert)
	require.NoError(t, err)
	for _, s := range []Serving{{HTTP2: true}, {HTTP2: true, CertFile: cert, KeyFile: key}, {CertFile: cert, KeyFile: key}} {
		server, err := Listen("MNEME_OTLP_LISTEN", "127.0.0.1:0", s, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		defer server.Stop()
		var protocols http.Protocols
		protocols.SetHTTP1(!s.HTTP2)
		protocols.SetHTTP2(true)
		protocols.SetUnencryptedHTTP2(s.CertFile == "")
		transport := &http.Transport{Protocols: &protocols, TLSClientConfig: &tls.Config{RootCAs: roots}}
		defer transport.CloseIdleConnections()
		response, err := (&http.Client{Transport: transport}).Get(server.URL() + "/healthz")
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, s.HTTP2, response.ProtoMajor == 2)
	}
}

func TestNATSIsReachedWithAClientCertificateOnly(t *testing.T) {
	cert, key := certify(t, t.TempDir(), "nats")
	pair, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	roots, err := settings.Roots(cert)
	require.NoError(t, err)
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, TLS: true, TLSVerify: true, TLSTimeout: 5,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots, MinVersion: tls.VersionTLS12}})
	require.NoError(t, err)
	go s.Start()
	defer s.Shutdown()
	require.True(t, s.ReadyForConnections(mnemetest.Patience))
	conn, err := eventlog.Connect(s.ClientURL(), "test", slog.New(slog.DiscardHandler), NATSOptions(settings.NATSTLS{NATSCAFile: cert, NATSCertFile: cert, NATSKeyFile: key})...)
	require.NoError(t, err)
	conn.Close()
	_, err = eventlog.Connect(s.ClientURL(), "test", slog.New(slog.DiscardHandler), NATSOptions(settings.NATSTLS{NATSCAFile: cert})...)
	require.Error(t, err, "without a client certificate")
	_, err = eventlog.Connect(s.ClientURL(), "test", slog.New(slog.DiscardHandler), NATSOptions(settings.NATSTLS{NATSCertFile: cert, NATSKeyFile: key})...)
	require.Error(t, err, "an authority that is not the system's")
}
