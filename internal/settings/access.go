package settings

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nkeys"
)

// Access configures who may use the HTTP API.
type Access struct {
	Tokens       bool          `name:"tokens" envconfig:"MNEME_TOKENS" default:"false" desc:"require a token with every request; mneme tokens create makes one, and its hash is kept in a bucket of the NATS server"`
	TokensFile   string        `name:"tokens-file" placeholder:"FILE" envconfig:"MNEME_TOKENS_FILE" desc:"require a token, and keep the tokens' hashes in this file, not in a bucket of the NATS server; it is read again when it changes"`
	OIDCIssuer   string        `name:"oidc-issuer" placeholder:"URL" envconfig:"MNEME_OIDC_ISSUER" desc:"require a token, and also accept JWTs of this OpenID Connect provider"`
	Audience     string        `name:"oidc-audience" placeholder:"TEXT" envconfig:"MNEME_OIDC_AUDIENCE" desc:"the audience that a JWT must be for"`
	ClientID     string        `name:"oidc-client-id" placeholder:"ID" envconfig:"MNEME_OIDC_CLIENT_ID" desc:"the client id with which the inspector page signs people in at the provider; its ID tokens are accepted too"`
	ClientSecret string        `name:"oidc-client-secret" placeholder:"TEXT" envconfig:"MNEME_OIDC_CLIENT_SECRET" secret:"true" file:"true" desc:"the secret of that client; empty if it is public"`
	Scopes       string        `name:"oidc-scopes" placeholder:"NAMES" envconfig:"MNEME_OIDC_SCOPES" default:"openid" desc:"scopes that this client requests from the provider, separated by spaces; they must bring the claims that the claims file names"`
	Claims       string        `name:"oidc-claims-file" placeholder:"FILE" envconfig:"MNEME_OIDC_CLAIMS_FILE" desc:"YAML file that turns claims of a JWT into tenant, role and project; it is read again when it changes"`
	Algorithms   string        `name:"oidc-algorithms" placeholder:"NAMES" envconfig:"MNEME_OIDC_ALGORITHMS" default:"RS256" desc:"accepted signature algorithms, comma separated: EdDSA, or an RS, PS or ES algorithm of 256, 384 or 512 bits"`
	Skew         time.Duration `name:"oidc-clock-skew" envconfig:"MNEME_OIDC_CLOCK_SKEW" default:"30s" desc:"how far the clock of the provider may be off, at most 5m"`
	Quotas       string        `name:"quotas-file" placeholder:"FILE" envconfig:"MNEME_QUOTAS_FILE" desc:"YAML file of the tenants' quotas: simultaneous requests, events and bytes per second, storage, and model calls, tokens and cost; it is read again when it changes"`
	CertFile     string        `name:"tls-cert-file" placeholder:"FILE" envconfig:"MNEME_TLS_CERT_FILE" desc:"PEM file of the certificate, with its intermediates: HTTP is then served over TLS; it is read again when it changes"`
	KeyFile      string        `name:"tls-key-file" placeholder:"FILE" envconfig:"MNEME_TLS_KEY_FILE" desc:"PEM file of the certificate's key"`
}

// On reports whether requests need a token.
func (s *Access) On() bool { return s.Tokens || s.TokensFile != "" || s.OIDCIssuer != "" }

// maxSkew bounds how far a provider's clock may be off.
const maxSkew = 5 * time.Minute

// asymmetric lists the signature algorithms whose keys a provider can publish.
var asymmetric = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// AlgorithmList returns the accepted signature algorithms.
func (s *Access) AlgorithmList() []string {
	var list []string
	for one := range strings.SplitSeq(s.Algorithms, ",") {
		if one = strings.TrimSpace(one); one != "" {
			list = append(list, one)
		}
	}
	return list
}

// Check reports every invalid setting by its variable.
func (s *Access) Check() error {
	errs := []error{file("MNEME_TOKENS_FILE", s.TokensFile), file("MNEME_QUOTAS_FILE", s.Quotas), pair("MNEME_TLS_CERT_FILE", s.CertFile, "MNEME_TLS_KEY_FILE", s.KeyFile)}
	if s.OIDCIssuer == "" {
		for _, set := range [][2]string{{"MNEME_OIDC_AUDIENCE", s.Audience}, {"MNEME_OIDC_CLIENT_ID", s.ClientID}, {"MNEME_OIDC_CLAIMS_FILE", s.Claims}} {
			if set[1] != "" {
				errs = append(errs, refuse(set[0], set[1], "it has no effect without MNEME_OIDC_ISSUER: set that, too"))
			}
		}
		return errors.Join(errs...)
	}
	errs = append(errs, httpURL("MNEME_OIDC_ISSUER", s.OIDCIssuer, "https://login.example.org"), file("MNEME_OIDC_CLAIMS_FILE", s.Claims))
	if strings.HasPrefix(s.OIDCIssuer, "http://") && Loopback("MNEME_OIDC_ISSUER", hostOf(s.OIDCIssuer)) != nil {
		errs = append(errs, refuse("MNEME_OIDC_ISSUER", s.OIDCIssuer, "its keys would come over an open network: use https://"))
	}
	if s.Audience == "" && s.ClientID == "" {
		errs = append(errs, refuse("MNEME_OIDC_AUDIENCE", "", "is needed with MNEME_OIDC_ISSUER: without it, tokens made for other services would be accepted"))
	}
	if s.ClientSecret != "" && s.ClientID == "" {
		errs = append(errs, errors.New("MNEME_OIDC_CLIENT_SECRET=(not shown): it has no effect without MNEME_OIDC_CLIENT_ID: set that, too"))
	}
	if !slices.Contains(strings.Fields(s.Scopes), "openid") {
		errs = append(errs, refuse("MNEME_OIDC_SCOPES", s.Scopes, "it must contain openid, for which a provider gives an ID token"))
	}
	if s.Claims == "" {
		errs = append(errs, refuse("MNEME_OIDC_CLAIMS_FILE", "", "is needed with MNEME_OIDC_ISSUER: it says which claims give which rights"))
	}
	for _, a := range s.AlgorithmList() {
		if !slices.Contains(asymmetric, a) {
			errs = append(errs, refuse("MNEME_OIDC_ALGORITHMS", s.Algorithms, fmt.Sprintf("%q is none of %s", a, strings.Join(asymmetric, ", "))))
		}
	}
	if len(s.AlgorithmList()) == 0 {
		errs = append(errs, refuse("MNEME_OIDC_ALGORITHMS", s.Algorithms, "name at least one, such as RS256"))
	}
	if s.Skew < 0 || s.Skew > maxSkew {
		errs = append(errs, refuse("MNEME_OIDC_CLOCK_SKEW", s.Skew, "not between 0 and "+maxSkew.String()))
	}
	return errors.Join(errs...)
}

// hostOf returns the host of a URL with a port, as [Loopback] takes it.
func hostOf(text string) string {
	host := strings.TrimPrefix(text, "http://")
	host, _, _ = strings.Cut(host, "/")
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), "80")
}

// Listen checks the address of the HTTP API, which name set: on loopback anyone may use it, elsewhere only
// with a token, or in a network that is declared trusted.
func (s *Access) Listen(name, address string, trusted bool) error {
	if s.On() || trusted {
		return hostPort(name, address)
	}
	if err := hostPort(name, address); err != nil {
		return err
	}
	if err := Loopback(name, address); err != nil {
		return fmt.Errorf("%w, or require tokens with MNEME_TOKENS=true", err)
	}
	return nil
}

// NATSTLS configures how a program proves who it is to NATS, and how it knows the server.
type NATSTLS struct {
	NATSCAFile   string `name:"nats-ca-file" placeholder:"FILE" envconfig:"MNEME_NATS_CA_FILE" desc:"PEM file of the certificate authorities of the NATS server; empty for the system's"`
	NATSCertFile string `name:"nats-cert-file" placeholder:"FILE" envconfig:"MNEME_NATS_CERT_FILE" desc:"PEM file of the client certificate for NATS"`
	NATSKeyFile  string `name:"nats-key-file" placeholder:"FILE" envconfig:"MNEME_NATS_KEY_FILE" desc:"PEM file of its key"`
	NATSCreds    string `name:"nats-creds-file" placeholder:"FILE" envconfig:"MNEME_NATS_CREDS_FILE" desc:"NATS credentials file: a user's JWT and seed"`
}

// Check reads the files.
func (s *NATSTLS) Check() error {
	return errors.Join(authorities("MNEME_NATS_CA_FILE", s.NATSCAFile),
		pair("MNEME_NATS_CERT_FILE", s.NATSCertFile, "MNEME_NATS_KEY_FILE", s.NATSKeyFile), credentials("MNEME_NATS_CREDS_FILE", s.NATSCreds))
}

// credentials checks that a file holds what a NATS client needs. The client itself reads it only when the server asks who
// it is, and then tries again without end.
func credentials(name, path string) error {
	if err := file(name, path); path == "" || err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return refuse(name, path, "can't be read: "+err.Error())
	}
	if _, err := nkeys.ParseDecoratedUserNKey(text); err != nil {
		return refuse(name, path, "it holds no seed of a NATS user; mneme nats-config --jwt makes such files")
	}
	if jwt, err := nkeys.ParseDecoratedJWT(text); err != nil || strings.Count(jwt, ".") != 2 { // else the client would send the seed in its place
		return refuse(name, path, "it holds a seed, but no JWT: mneme needs a credentials file, with both, as mneme nats-config --jwt and nsc generate creds make it; a server that knows users by their nkeys only is not supported")
	}
	return nil
}

// Token is the token of a client command.
type Token struct {
	Token     string `name:"token" placeholder:"TOKEN" envconfig:"MNEME_TOKEN" secret:"true" desc:"the token for the HTTP API; other users of this machine can see a flag, so prefer the variable or a file"`
	TokenFile string `name:"token-file" placeholder:"FILE" envconfig:"MNEME_TOKEN_FILE" desc:"file that holds the token for the HTTP API"`
	CAFile    string `name:"ca-file" placeholder:"FILE" envconfig:"MNEME_CA_FILE" desc:"PEM file of the certificate authorities of the HTTP API; empty for the system's"`
}

func (s *Token) check() error {
	errs := []error{authorities("MNEME_CA_FILE", s.CAFile), file("MNEME_TOKEN_FILE", s.TokenFile)}
	if s.Token != "" && s.TokenFile != "" {
		errs = append(errs, refuse("MNEME_TOKEN_FILE", s.TokenFile, "MNEME_TOKEN is set too: give one of them"))
	}
	if strings.ContainsAny(s.Token, " \t\r\n") {
		errs = append(errs, errors.New("MNEME_TOKEN=(not shown): a token has no spaces and no line breaks"))
	}
	return errors.Join(errs...)
}

// Read returns the token, "" for none.
func (s *Token) Read() (string, error) {
	if s.TokenFile == "" {
		return s.Token, nil
	}
	text, err := os.ReadFile(s.TokenFile)
	if err != nil {
		return "", refuse("MNEME_TOKEN_FILE", s.TokenFile, err.Error())
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", refuse("MNEME_TOKEN_FILE", s.TokenFile, "it holds no token")
	}
	return token, nil
}

// Roots reads a file of certificate authorities; nil means the system's.
func Roots(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("it holds no certificate in PEM form")
	}
	return pool, nil
}

func authorities(name, path string) error {
	if _, err := Roots(path); err != nil {
		return refuse(name, path, reason(err))
	}
	return nil
}

// pair checks a certificate and its key.
func pair(certName, cert, keyName, key string) error {
	switch {
	case cert == "" && key == "":
		return nil
	case key == "":
		return refuse(certName, cert, "its key is missing: set "+keyName)
	case cert == "":
		return refuse(keyName, key, "its certificate is missing: set "+certName)
	}
	if err := errors.Join(file(certName, cert), file(keyName, key)); err != nil {
		return err
	}
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		return refuse(certName, cert, fmt.Sprintf("it can't be used with the key in %s: %s", keyName, reason(err)))
	}
	return nil
}

// reason returns why a file can't be used, without its path.
func reason(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err.Error()
	}
	return err.Error()
}
