package neo4jtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	neo4jdeploy "mneme.dev/mneme/deploy/neo4j"
)

// TLS makes a certificate authority, and its certificates for 127.0.0.1 and for a client, which the server then demands. All
// are valid for an hour:
//
//	files := neo4jtest.TLS(t)
//	neo4jtest.Own(t, func(c *neo4jdeploy.Config) { c.TLS = &files })
func TLS(t testing.TB) neo4jdeploy.TLS {
	t.Helper()
	dir := t.TempDir()
	files := neo4jdeploy.TLS{
		CertFile:       filepath.Join(dir, "server.crt"),
		KeyFile:        filepath.Join(dir, "server.key"),
		CAFile:         filepath.Join(dir, "ca.crt"),
		ClientCertFile: filepath.Join(dir, "client.crt"),
		ClientKeyFile:  filepath.Join(dir, "client.key"),
	}
	authority := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "authority of a test"},
		NotBefore:             time.Now().Add(-time.Minute),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "Neo4j of a test"},
		NotBefore:    authority.NotBefore,
		NotAfter:     authority.NotAfter,
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	client := &x509.Certificate{
		SerialNumber: big.NewInt(3),
		Subject:      pkix.Name{CommonName: "client of a test"},
		NotBefore:    authority.NotBefore,
		NotAfter:     authority.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	authorityKey := newKey(t)
	certify(t, files.CAFile, authority, authority, authorityKey.Public(), authorityKey)
	for _, of := range []struct {
		certificate       *x509.Certificate
		certFile, keyFile string
	}{{server, files.CertFile, files.KeyFile}, {client, files.ClientCertFile, files.ClientKeyFile}} {
		key := newKey(t)
		certify(t, of.certFile, of.certificate, authority, key.Public(), authorityKey)
		der, err := x509.MarshalPKCS8PrivateKey(key)
		require.NoError(t, err)
		write(t, of.keyFile, "PRIVATE KEY", der)
	}
	return files
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

func certify(t testing.TB, file string, subject, issuer *x509.Certificate, public crypto.PublicKey, by crypto.Signer) {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, subject, issuer, public, by)
	require.NoError(t, err)
	write(t, file, "CERTIFICATE", der)
}

func write(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}
