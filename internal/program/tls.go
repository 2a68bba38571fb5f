package program

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/settings"
)

// lookEvery is the shortest time between two checks of a certificate's files.
const lookEvery = time.Second

// certificate is the certificate of a listener. It is read again when one of its files has changed. A certificate that
// can't be used is logged, and the previous one stays in use.
type certificate struct {
	certFile, keyFile string
	logger            *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	looked  time.Time
	files   [2]os.FileInfo // as they were when last read; nil for one that can't be read
}

// isUnchanged reports whether a file is as it was. A file that replaces another one may have its size and, where the clock of
// the file system is coarse, its time.
func isUnchanged(was os.FileInfo, path string) bool {
	now, err := os.Stat(path)
	if err != nil || was == nil {
		return err != nil && was == nil
	}
	return os.SameFile(was, now) && was.ModTime().Equal(now.ModTime()) && was.Size() == now.Size()
}

func newCertificate(certFile, keyFile string, logger *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, logger: logger}
	return c, c.read()
}

func (c *certificate) read() error {
	for i, path := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(path)
		if c.files[i] = info; err != nil {
			c.files[i] = nil
		}
	}
	loaded, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err == nil {
		c.current = &loaded
	}
	return err
}

// get returns the certificate for a new connection.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) >= lookEvery {
		c.looked = now
		if !isUnchanged(c.files[0], c.certFile) || !isUnchanged(c.files[1], c.keyFile) {
			if err := c.read(); err != nil {
				c.logger.Error("the new TLS certificate can't be used; the old one stays in use", "error", err)
			} else {
				c.logger.Info("the TLS certificate was reloaded")
			}
		}
	}
	return c.current, nil
}

// NATSOptions returns how to connect to NATS by these settings. The client reads the files
// again at every connection.
func NATSOptions(s settings.NATSTLS) []nats.Option {
	var list []nats.Option
	if s.NATSCAFile != "" {
		list = append(list, nats.RootCAs(s.NATSCAFile))
	}
	if s.NATSCertFile != "" {
		list = append(list, nats.ClientCert(s.NATSCertFile, s.NATSKeyFile))
	}
	if s.NATSCreds != "" {
		list = append(list, nats.UserCredentials(s.NATSCreds))
		if inbox := inboxOf(s.NATSCreds); inbox != "" {
			list = append(list, nats.CustomInboxPrefix(inbox))
		}
	}
	return list
}

// inboxOf returns the prefix of the subjects under which the user of a credentials file receives answers, "" for the client's usual
// one. A file that can't be read is the connection's error.
func inboxOf(creds string) string {
	text, err := os.ReadFile(creds)
	if err != nil {
		return ""
	}
	token, err := nkeys.ParseDecoratedJWT(text)
	if err != nil {
		return ""
	}
	_, body, _ := strings.Cut(token, ".")
	body, _, _ = strings.Cut(body, ".")
	decoded, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return ""
	}
	var user struct {
		Name string `json:"name"`
		NATS struct {
			Sub struct {
				Allow []string `json:"allow"`
			} `json:"sub"`
		} `json:"nats"`
	}
	if json.Unmarshal(decoded, &user) != nil {
		return ""
	}
	// mneme nats-config gives each user an inbox of its own.
	if own := natsdeploy.InboxPrefix(user.Name); slices.Contains(user.NATS.Sub.Allow, own+".>") {
		return own
	}
	return ""
}
