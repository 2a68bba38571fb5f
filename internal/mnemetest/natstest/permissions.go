package natstest

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

// Guarded is a server that runs with server.conf and the permissions of [natsdeploy.Permissions],
// until the end of the test.
type Guarded struct {
	*server.Server
	Tenants []string

	log troubles
}

// Refused returns the server's words about each refusal.
func (g *Guarded) Refused() (list []string) {
	for line := range strings.Lines(g.log.String()) {
		if strings.Contains(line, "Violation") {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return list
}

// Guard starts the server. It sets environment variables, so the test can't be parallel.
func Guard(t *testing.T, tenants ...string) *Guarded {
	t.Helper()
	return GuardIn(t, t.TempDir(), natsdeploy.Permissions{Tenants: tenants})
}

// GuardIn is [Guard] with a store that may exist.
func GuardIn(t *testing.T, store string, of natsdeploy.Permissions) *Guarded {
	t.Helper()
	dir := t.TempDir()
	permissions, err := of.Render()
	require.NoError(t, err)
	settings := strings.NewReplacer(`"/data"`, `"`+filepath.ToSlash(store)+`"`, "port: 4222", "port: -1", "65GiB", "2GiB", "sync_interval: always", "").Replace(natsdeploy.ServerConf)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "server.conf"), []byte(settings), 0o600))
	conf := filepath.Join(dir, "permissions.conf")
	require.NoError(t, os.WriteFile(conf, []byte(permissions), 0o600))
	g := &Guarded{Tenants: of.Tenants}
	for _, user := range g.Users() {
		t.Setenv(natsdeploy.PasswordVariable(user), password(user))
	}
	options, err := server.ProcessConfigFile(conf)
	require.NoError(t, err)
	options.NoSigs = true
	g.Server, err = server.NewServer(options)
	require.NoError(t, err)
	g.SetLoggerV2(&g.log, false, false, false)
	g.Start()
	t.Cleanup(func() { g.Shutdown(); g.WaitForShutdown() })
	require.True(t, g.ReadyForConnections(readyWithin))
	return g
}

// Users are the roles, and the agents of each tenant.
func (g *Guarded) Users() (list []string) {
	for _, r := range natsdeploy.Roles() {
		list = append(list, r.Name)
	}
	for _, tenant := range g.Tenants {
		list = append(list, natsdeploy.AgentUser(tenant))
	}
	return list
}

// As returns the URL with which a user connects.
func (g *Guarded) As(user string) string {
	u, err := url.Parse(g.ClientURL())
	if err != nil {
		panic(err)
	}
	u.User = url.UserPassword(user, password(user))
	return u.String()
}

func password(user string) string { return "password-of-" + user }
