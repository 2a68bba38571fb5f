package neo4jstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/neo4j/neo4j-go-driver/v5/neo4j/config"
	"github.com/neo4j/neo4j-go-driver/v5/neo4j/notifications"
)

var (
	// ErrUnauthorized: the server refuses user and password.
	ErrUnauthorized = errors.New("the Neo4j server refuses user and password")
	// ErrTLS: no encrypted connection is possible, because the server's certificate is
	// not trusted.
	ErrTLS = errors.New("no encrypted connection to the Neo4j server")
	// ErrDatabase: the server has no such database.
	ErrDatabase = errors.New("the Neo4j server does not have this database")
	// ErrVersion: the server is older than 5.26.
	ErrVersion = errors.New("this version of Neo4j is too old")
	// ErrForeign: another program has written nodes with our labels.
	ErrForeign = errors.New("the database holds another program's data")
	// ErrSchema: a newer or different build of mneme has made the schema.
	ErrSchema = errors.New("the database has a schema that this program does not know")
	// ErrNotThere: nothing has been written yet.
	ErrNotThere = errors.New("nothing has been written yet")
)

// BatchEvents is the largest number of events that a batch should hold, for
// projection.BatchOf. With fewer, the statements of a batch, a millisecond each whatever
// they write, weigh more; a transaction of four thousand keeps the server's garbage
// collector busy.
const BatchEvents = 1500

// Config says how to reach a server. Zero values mean the defaults below.
type Config struct {
	URI            string        // bolt://127.0.0.1:7687
	User           string        // neo4j
	Password       string        // "" for a server without authentication
	Database       string        // neo4j
	CAFile         string        // PEM file of the certificates that may sign the server's, "" for the system's
	CertFile       string        // PEM file of the certificate that a server with client_auth requires, read for each connection
	KeyFile        string        // PEM file of its key
	PoolSize       int           // maximum number of connections, 16
	ConnectTimeout time.Duration // for getting a connection from the pool or the server, 3 s
	ReadTimeout    time.Duration // for one read in the server, 30 s
	WriteTimeout   time.Duration // for one batch in the server, and so for a frozen owner's lock, 30 s
	Warm           bool          // package readmodel makes the server plan every statement as soon as it has opened a store
}

func (c Config) withDefaults() Config {
	for _, s := range []struct {
		value *string
		def   string
	}{{&c.URI, "bolt://127.0.0.1:7687"}, {&c.User, "neo4j"}, {&c.Database, "neo4j"}} {
		if *s.value == "" {
			*s.value = s.def
		}
	}
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{{&c.ConnectTimeout, 3 * time.Second}, {&c.ReadTimeout, 30 * time.Second}, {&c.WriteTimeout, 30 * time.Second}} {
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	c.PoolSize = cmp.Or(c.PoolSize, 16)
	return c
}

// idleTrust is how long an idle connection is assumed to be alive. After that the driver
// checks it first, which detects a lost server within the ConnectTimeout.
const idleTrust = time.Second

// db is a connection to one database.
type db struct {
	driver neo4j.DriverWithContext
	Config
	version string

	closing    context.Context // done when the store is being closed
	end        context.CancelFunc
	background sync.WaitGroup
}

// ServerVersion is the version of Neo4j, "5.26.30".
func (d *db) ServerVersion() string { return d.version }

// NewDriver makes a driver like that of a store, for reading or writing outside the store.
// It does not connect yet.
func NewDriver(c Config) (neo4j.DriverWithContext, error) {
	c = c.withDefaults()
	auth := neo4j.NoAuth()
	if c.Password != "" {
		auth = neo4j.BasicAuth(c.User, c.Password, "")
	}
	var roots *x509.CertPool
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, err
		}
		if roots = x509.NewCertPool(); !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate in PEM format", c.CAFile)
		}
	}
	if c.CertFile != "" {
		if _, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile); err != nil {
			return nil, err
		}
	}
	return neo4j.NewDriverWithContext(c.URI, auth, func(d *config.Config) {
		d.MaxConnectionPoolSize = c.PoolSize
		d.ConnectionAcquisitionTimeout = c.ConnectTimeout
		d.SocketConnectTimeout = c.ConnectTimeout
		d.ConnectionLivenessCheckTimeout = idleTrust
		d.MaxTransactionRetryTime = 0 // see inTransaction
		d.TelemetryDisabled = true
		d.UserAgent = "mneme"
		d.NotificationsMinSeverity = notifications.DisabledLevel
		if roots == nil && c.CertFile == "" {
			return
		}
		d.TlsConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		if c.CertFile != "" {
			d.TlsConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
				return &pair, err
			}
		}
	})
}

// open connects and checks that the server can be used. It does not wait for a server that is down.
func open(ctx context.Context, c Config) (_ *db, err error) {
	c = c.withDefaults()
	driver, err := NewDriver(c)
	if err != nil {
		return nil, err
	}
	d := &db{driver: driver, Config: c}
	d.closing, d.end = context.WithCancel(context.Background())
	if err := d.checkVersion(ctx); err != nil {
		_ = d.close()
		return nil, err
	}
	return d, nil
}

// openWriter opens a database for a writer, and makes the schema.
func openWriter(ctx context.Context, c Config) (*db, error) { return openAnd(ctx, c, (*db).migrate) }

func openAnd(ctx context.Context, c Config, check func(*db, context.Context) error) (*db, error) {
	d, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := check(d, ctx); err != nil {
		_ = d.close()
		return nil, err
	}
	return d, nil
}

// Background runs work concurrently with users of the store. Closing the store cancels the
// work's context and waits for it, because the driver must not be closed while in use. The
// work's error is ignored.
func (d *db) Background(work func(context.Context) error) {
	d.background.Go(func() { _ = work(d.closing) })
}

// close ends all connections.
func (d *db) close() error {
	d.end()
	d.background.Wait()
	return d.driver.Close(context.Background())
}

// oldest is the first version of Neo4j whose Cypher the statements are written in.
var oldest = [2]int{5, 26}

func (d *db) checkVersion(ctx context.Context) error {
	rows, err := d.Read(ctx, "CALL dbms.components() YIELD name, versions WHERE name = 'Neo4j Kernel' RETURN versions[0]", nil)
	if err != nil {
		return fmt.Errorf("Neo4j at %s: %w", d.URI, err)
	}
	if len(rows) == 0 {
		return fmt.Errorf("%w: %s does not report its version", ErrVersion, d.URI)
	}
	d.version, _ = rows[0][0].(string)
	if !newEnough(d.version) {
		return fmt.Errorf("%w: %s runs %q, mneme needs %d.%d or later", ErrVersion, d.URI, d.version, oldest[0], oldest[1])
	}
	return nil
}

// newEnough reports whether the statements run on a version, "5.26.30" or "2026.09.0".
func newEnough(version string) bool {
	var has [2]int
	for i, part := range strings.SplitN(version, ".", 3) {
		if i < len(has) {
			part, _, _ = strings.Cut(part, "-")
			has[i], _ = strconv.Atoi(part)
		}
	}
	return slices.Compare(has[:], oldest[:]) >= 0
}
