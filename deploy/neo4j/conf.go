package neo4jdeploy

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Conf holds the settings that mneme relies on, as a neo4j.conf that explains each.
//
//go:embed neo4j.conf
var Conf string

// transactionMax is the setting in the file that a server may override.
const transactionMax = "db.memory.transaction.max"

// conf is a server's complete neo4j.conf. Neo4j 5.26 does not start with an unknown
// setting, and no version starts with a duplicate one.
func (c Config) conf(version, address string) string {
	var b strings.Builder
	b.WriteString(strings.Replace(Conf, transactionMax+"=256m", fmt.Sprintf("%s=%dm", transactionMax, c.TransactionMiB), 1))
	set := func(name string, value any) { fmt.Fprintf(&b, "%s=%v\n", name, value) }

	b.WriteString("\n# Of this server.\n")
	set("server.default_listen_address", "127.0.0.1")
	set("server.bolt.listen_address", address)
	set("server.bolt.advertised_address", address)
	set("server.memory.heap.initial_size", fmt.Sprintf("%dm", c.HeapMiB))
	set("server.memory.heap.max_size", fmt.Sprintf("%dm", c.HeapMiB))
	set("server.memory.pagecache.size", fmt.Sprintf("%dm", c.PageCacheMiB))
	set("dbms.security.auth_enabled", c.Password != "")
	if c.small() {
		// An empty store grows so fast that each plan would be replaced every 10 s.
		set("dbms.cypher.min_replan_interval", "1h")
		// One plan of a statement, not one for each order of magnitude of its parameters.
		set("internal.cypher.use_parameter_size", false)
	}

	// The quiet time between closing the port and the end of the process: 10 s.
	if isFive(version) {
		set("internal.dbms.bolt.netty_server_shutdown_quiet_period", 0)
	} else {
		// Some releases of the line do not know all of these.
		set("server.config.strict_validation.enabled", false)
		set("internal.dbms.bolt.netty_server_shutdown_quiet_period", 0)
		set("internal.dbms.bolt.netty_server_shutdown_quiet_period_duration", "0s")
		// Otherwise it broadcasts to find other servers in the network.
		set("server.fleet_discovery.enabled", false)
		set("dbms.fleet_manager.enabled", false)
	}
	if c.TLS != nil {
		set("server.bolt.tls_level", "REQUIRED")
		set("dbms.ssl.policy.bolt.enabled", true)
		set("dbms.ssl.policy.bolt.base_directory", filepath.Dir(c.TLS.CertFile))
		set("dbms.ssl.policy.bolt.public_certificate", c.TLS.CertFile)
		set("dbms.ssl.policy.bolt.private_key", c.TLS.KeyFile)
		if c.TLS.ClientCertFile == "" {
			set("dbms.ssl.policy.bolt.client_auth", "NONE")
		} else {
			set("dbms.ssl.policy.bolt.client_auth", "REQUIRE")
			set("dbms.ssl.policy.bolt.trusted_dir", c.trustedDir())
		}
	}
	return b.String()
}

func (c Config) confDir() string { return filepath.Join(c.Dir, "conf") }

// trustedDir has the certificates that may sign those of clients, and nothing else.
func (c Config) trustedDir() string { return filepath.Join(c.confDir(), "trusted") }

func (c Config) writeConf(version, address string) error {
	if err := os.MkdirAll(c.confDir(), 0o700); err != nil {
		return err
	}
	if c.TLS != nil && c.TLS.ClientCertFile != "" {
		authority, err := os.ReadFile(c.TLS.CAFile)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(c.trustedDir(), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(c.trustedDir(), "authority.crt"), authority, 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(c.confDir(), "neo4j.conf"), []byte(c.conf(version, address)), 0o600)
}
