package natstest

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/access/natsjwt"
	"mneme.dev/mneme/internal/mnemetest"
)

// Guarded is a server that runs with server.conf and the permissions of [natsdeploy.Permissions],
// until the end of the test.
type Guarded struct {
	*server.Server
	Tenants []string

	creds natsjwt.Folder // of a server without passwords
	log   troubles
}

// Refused returns the server's message about each refusal.
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
	permissions, err := of.Render()
	require.NoError(t, err)
	g := &Guarded{Tenants: of.Tenants}
	for _, user := range g.Users() {
		t.Setenv(natsdeploy.PasswordVariable(user), password(user))
	}
	dir := t.TempDir()
	conf := filepath.Join(dir, "permissions.conf")
	require.NoError(t, os.WriteFile(conf, []byte(permissions), 0o600))
	g.start(t, conf, store)
	return g
}

// GuardWithJWTs starts a server in operator mode, with the files of a folder that [natsjwt.Folder.Make] has made.
func GuardWithJWTs(t *testing.T, store string, folder natsjwt.Folder, tenants ...string) *Guarded {
	t.Helper()
	g := &Guarded{Tenants: tenants, creds: folder}
	g.start(t, filepath.Join(string(folder), natsjwt.Conf), store)
	return g
}

// start starts the server with a configuration, and server.conf beside it.
func (g *Guarded) start(t *testing.T, conf, store string) {
	t.Helper()
	settings := strings.NewReplacer(`"/data"`, `"`+filepath.ToSlash(store)+`"`, "port: 4222", "port: -1", "65GiB", "2GiB", "sync_interval: always", "").Replace(natsdeploy.ServerConf)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(conf), "server.conf"), []byte(settings), 0o600))
	options, err := server.ProcessConfigFile(conf)
	require.NoError(t, err)
	options.NoSigs = true
	g.Server, err = server.NewServer(options)
	require.NoError(t, err)
	g.SetLoggerV2(&g.log, false, false, false)
	g.Start()
	t.Cleanup(func() { g.Shutdown(); g.WaitForShutdown() })
	require.True(t, g.ReadyForConnections(readyWithin))
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

// Environment returns the variables with which a program connects as a user.
func (g *Guarded) Environment(user string) []string {
	if g.creds != "" {
		return []string{"MNEME_NATS_URL=" + g.ClientURL(), "MNEME_NATS_CREDS_FILE=" + g.creds.Creds(user)}
	}
	return []string{"MNEME_NATS_URL=" + g.As(user)}
}

// Connect connects as a user.
func (g *Guarded) Connect(user string, options ...nats.Option) (*nats.Conn, error) {
	options = append(options, nats.CustomInboxPrefix(natsdeploy.InboxPrefix(user)), nats.Timeout(mnemetest.Handshake))
	if g.creds != "" {
		return nats.Connect(g.ClientURL(), append(options, nats.UserCredentials(g.creds.Creds(user)))...)
	}
	return nats.Connect(g.As(user), options...)
}

// Hello is the first line of a client that speaks the protocol by itself: it connects as a user to a server that sent
// this nonce.
func (g *Guarded) Hello(t *testing.T, user, nonce string) string {
	t.Helper()
	hello := map[string]any{"verbose": false, "headers": true, "no_responders": true, "user": user, "pass": password(user)}
	if g.creds != "" {
		text, err := os.ReadFile(g.creds.Creds(user))
		require.NoError(t, err)
		key, err := nkeys.ParseDecoratedUserNKey(text)
		require.NoError(t, err)
		signature, err := key.Sign([]byte(nonce))
		require.NoError(t, err)
		token, err := nkeys.ParseDecoratedJWT(text)
		require.NoError(t, err)
		hello = map[string]any{"verbose": false, "headers": true, "no_responders": true, "jwt": token, "sig": base64.RawURLEncoding.EncodeToString(signature)}
	}
	line, err := json.Marshal(hello)
	require.NoError(t, err)
	return "CONNECT " + string(line)
}

// Shown returns what the server's log calls a user.
func (g *Guarded) Shown(t *testing.T, user string) string {
	t.Helper()
	if g.creds == "" {
		return user
	}
	text, err := os.ReadFile(g.creds.Creds(user))
	require.NoError(t, err)
	key, err := nkeys.ParseDecoratedUserNKey(text)
	require.NoError(t, err)
	public, err := key.PublicKey()
	require.NoError(t, err)
	return public
}

// As returns the URL for a user who has a password.
func (g *Guarded) As(user string) string {
	u, err := url.Parse(g.ClientURL())
	if err != nil {
		panic(err)
	}
	u.User = url.UserPassword(user, password(user))
	return u.String()
}

func password(user string) string { return "password-of-" + user }
