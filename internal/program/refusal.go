package program

import (
	"crypto/x509"
	"errors"
	"net"
	"strings"

	"github.com/nats-io/nats.go"
)

// Refusal says why no connection to a NATS server that answers came about, as a clause about the server, and what to do,
// naming variables. Both are empty for any other error, such as of a server that does not answer.
func Refusal(err error) (what, remedy string) {
	const accepted = "name a certificate that the server accepts in MNEME_NATS_CERT_FILE and MNEME_NATS_KEY_FILE"
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var remote *net.OpError
	switch {
	case errors.Is(err, nats.ErrAuthorization):
		return "it does not know this user with this password or credentials file", "name a user of the server in MNEME_NATS_URL, or in MNEME_NATS_CREDS_FILE; docs/operations/access.md lists them"
	case errors.Is(err, nats.ErrSecureConnWanted):
		return "it does not use TLS, but tls:// in its address, a certificate authority or a client certificate asks for that", "give the server a certificate; or write nats:// in MNEME_NATS_URL, and unset MNEME_NATS_CA_FILE and MNEME_NATS_CERT_FILE"
	case errors.As(err, &authority):
		return "its certificate is from an authority that is unknown here", "name its PEM file in MNEME_NATS_CA_FILE"
	case errors.As(err, &host):
		return "its certificate is for another name: " + host.Error(), "write a name of the certificate in MNEME_NATS_URL, or give the server a certificate for the name there"
	case errors.As(err, &invalid):
		return "its certificate is not valid: " + invalid.Error(), "give the server a valid certificate, or correct this machine's clock"
	case errors.As(err, &remote) && remote.Op == "remote error":
		return "it ended the TLS handshake: " + remote.Err.Error(), accepted
	case errors.Is(err, nats.ErrTLS) && strings.Contains(err.Error(), "closed by remote after TLS handshake"): // it closed the connection before its reason could be read
		return "it closed the connection after the TLS handshake, as a server does that does not accept the certificate of a client, or requires one", accepted
	}
	return "", ""
}
