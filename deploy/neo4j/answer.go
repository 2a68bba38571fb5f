package neo4jdeploy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/neo4j/neo4j-go-driver/v5/neo4j/config"
)

const (
	minPassword = 8 // the server's default

	// initialPassword is the password of every new Neo4j. It only permits changing the password.
	initialPassword = "neo4j"
)

// answers waits until the server answers a query. In a new directory it sets the
// password first.
func (s *Server) answers(ctx context.Context) error {
	err := s.query(ctx, s.cfg.Password, "neo4j", "RETURN 1", nil)
	if !isUnauthorized(err) {
		return err
	}
	err = s.query(ctx, initialPassword, "system", "ALTER CURRENT USER SET PASSWORD FROM $old TO $new",
		map[string]any{"old": initialPassword, "new": s.cfg.Password})
	if isUnauthorized(err) {
		return fmt.Errorf("%w: this directory was first started with another one", ErrPassword)
	}
	if err != nil {
		return err
	}
	return s.query(ctx, s.cfg.Password, "neo4j", "RETURN 1", nil)
}

func isUnauthorized(err error) bool {
	var refused *neo4j.Neo4jError
	return errors.As(err, &refused) && refused.Code == "Neo.ClientError.Security.Unauthorized"
}

// query runs one statement. The driver retries for 30 seconds while the database
// is not available yet.
func (s *Server) query(ctx context.Context, password, database, statement string, parameters map[string]any) error {
	auth := neo4j.NoAuth()
	if s.cfg.Password != "" {
		auth = neo4j.BasicAuth(User, password, "")
	}
	trusted, err := s.cfg.TLS.trusted()
	if err != nil {
		return err
	}
	driver, err := neo4j.NewDriverWithContext(s.URI(), auth, func(c *config.Config) {
		c.TelemetryDisabled = true
		c.SocketConnectTimeout = 5 * time.Second
		c.TlsConfig = trusted
	})
	if err != nil {
		return err
	}
	defer driver.Close(context.WithoutCancel(ctx))
	_, err = neo4j.ExecuteQuery(ctx, driver, statement, parameters, neo4j.EagerResultTransformer,
		neo4j.ExecuteQueryWithDatabase(database))
	return err
}

// trusted returns what a client needs to check the server's certificate and to show its own; nil without TLS.
func (t *TLS) trusted() (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	pem, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", t.CAFile)
	}
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if t.ClientCertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.ClientCertFile, t.ClientKeyFile)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
