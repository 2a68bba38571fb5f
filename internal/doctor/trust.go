package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"time"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/quota"
	"mneme.dev/mneme/internal/settings"
)

// expiresSoon is how long before its expiry a certificate causes a warning.
const expiresSoon = 21 * 24 * time.Hour

const quotasRemedy = "correct the file; until then servers keep the quotas that they have, and none starts"

// trust checks the files with which programs on this machine prove their identity: whether certificates expire, and
// whether other users can read secrets. It also reads those that say who may do how much.
func (e *examination) trust() {
	for _, variable := range []string{"MNEME_TLS_CERT_FILE", "MNEME_NATS_CERT_FILE", "MNEME_NATS_CA_FILE", "MNEME_CA_FILE", "MNEME_NEO4J_CA_FILE", "MNEME_NEO4J_CERT_FILE"} {
		if path := os.Getenv(variable); path != "" {
			e.certificates(variable, path)
		}
	}
	private := []string{"MNEME_TLS_KEY_FILE", "MNEME_NATS_KEY_FILE", "MNEME_NATS_CREDS_FILE", "MNEME_NATS_CALLOUT_SEED_FILE", "MNEME_NEO4J_KEY_FILE", "MNEME_TOKEN_FILE"}
	for _, variable := range append(private, settings.FileVariables()...) {
		if path := os.Getenv(variable); path != "" {
			e.secret(variable, path)
		}
	}
	if path := os.Getenv("MNEME_TOKENS_FILE"); path != "" {
		if records, err := access.NewFile(path).Read(); err != nil {
			e.add("tokens", Failed, "MNEME_TOKENS_FILE: "+err.Error(), "correct the line; until then servers keep the tokens that they have, and none starts")
		} else {
			e.add("tokens", OK, fmt.Sprintf("tokens in %s: %d", path, len(records)), "")
		}
	}
	if path := os.Getenv("MNEME_QUOTAS_FILE"); path != "" {
		if _, err := quota.Open(path); err != nil {
			e.add("quotas", Failed, "MNEME_QUOTAS_FILE: "+err.Error(), quotasRemedy)
		} else {
			e.add("quotas", OK, path+" can be read", "")
		}
	}
}

// certificates checks when the certificates of a PEM file end.
func (e *examination) certificates(variable, path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		e.add("certificate", Failed, fmt.Sprintf("%s: %v", variable, err), "correct the path, or its permissions")
		return
	}
	var ends time.Time
	subject := ""
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			e.add("certificate", Failed, fmt.Sprintf("%s=%s: %v", variable, path, err), "replace the file")
			return
		}
		if ends.IsZero() || c.NotAfter.Before(ends) {
			ends, subject = c.NotAfter, c.Subject.String()
		}
	}
	left := ends.Sub(e.now())
	detail := fmt.Sprintf("%s: %s ends %s", variable, subject, ends.UTC().Format("2006-01-02 15:04 MST"))
	switch {
	case ends.IsZero():
		e.add("certificate", Failed, fmt.Sprintf("%s=%s holds no certificate", variable, path), "give a PEM file")
	case left <= 0:
		e.add("certificate", Failed, detail+", which is over", "renew it; programs read the new files within a second")
	case left < expiresSoon:
		e.add("certificate", Warning, fmt.Sprintf("%s, in %d days", detail, int(left.Hours()/24)), "renew it; programs read the new files within a second")
	default:
		e.add("certificate", OK, detail, "")
	}
}

// secret checks that only its owner, and perhaps its group, can read a file.
func (e *examination) secret(variable, path string) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		e.add("secret", Failed, fmt.Sprintf("%s: %v", variable, err), "correct the path, or its permissions")
	case info.Mode().Perm()&0o007 != 0:
		e.add("secret", Warning, fmt.Sprintf("%s: every user of this machine can use %s (mode %03o)", variable, path, info.Mode().Perm()), "chmod o= "+path)
	default:
		e.add("secret", OK, fmt.Sprintf("%s: other users can't read %s", variable, path), "")
	}
}

// client returns a client of the API by the settings.
func (e *examination) client() (*http.Client, error) {
	return program.HTTPClient(e.Client.URL, e.Client.Token)
}

// served checks when the server's certificate ends.
func (e *examination) served(state *tls.ConnectionState) {
	if state == nil || len(state.PeerCertificates) == 0 {
		return
	}
	ends := state.PeerCertificates[0].NotAfter
	detail := "the certificate of the HTTP API ends " + ends.UTC().Format("2006-01-02 15:04 MST")
	if left := ends.Sub(e.now()); left < expiresSoon {
		e.add("http certificate", Warning, fmt.Sprintf("%s, in %d days", detail, int(left.Hours()/24)), "renew it on the server, which reads the new files within a second")
		return
	}
	e.add("http certificate", OK, detail, "")
}
