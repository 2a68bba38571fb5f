package natsjwt_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/access/natsjwt"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func TestCredentialsStayWhenATenantIsAdded(t *testing.T) {
	t.Parallel()
	folder := natsjwt.Folder(t.TempDir())
	require.NoError(t, folder.Make([]string{"acme"}, false))
	ingestor, agent := read(t, folder.Creds("ingestor")), read(t, folder.Creds("agent-acme"))
	require.NoError(t, folder.Make([]string{"acme", "other"}, false))
	require.Equal(t, ingestor, read(t, folder.Creds("ingestor")))
	require.Equal(t, agent, read(t, folder.Creds("agent-acme")))

	g := natstest.GuardWithJWTs(t, t.TempDir(), folder, "acme", "other")
	for _, user := range g.Users() {
		conn, err := g.Connect(user)
		require.NoError(t, err, user)
		conn.Close()
	}
}

func TestKeysAndCredentialsAreReadableOnlyByTheirOwner(t *testing.T) {
	t.Parallel()
	folder := natsjwt.Folder(filepath.Join(t.TempDir(), "nats-jwt"))
	require.NoError(t, folder.Make([]string{"acme"}, false))
	require.NoError(t, filepath.WalkDir(string(folder), func(path string, entry os.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := entry.Info()
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, path)
		return nil
	}))
}

func TestRenewedCredentialsWorkAndThoseFromBeforeAreRefused(t *testing.T) {
	t.Parallel()
	folder, before := natsjwt.Folder(t.TempDir()), natsjwt.Folder(t.TempDir())
	require.NoError(t, folder.Make([]string{"acme"}, false))
	require.NoError(t, os.CopyFS(filepath.Join(string(before), "creds"), os.DirFS(filepath.Join(string(folder), "creds"))))
	nextSecond(t, folder) // JWTs know seconds

	require.NoError(t, folder.Make([]string{"acme"}, true))
	g := natstest.GuardWithJWTs(t, t.TempDir(), folder, "acme")
	for _, user := range g.Users() {
		conn, err := g.Connect(user)
		require.NoError(t, err, user)
		conn.Close()
		_, err = nats.Connect(g.ClientURL(), nats.UserCredentials(before.Creds(user)), nats.Timeout(mnemetest.Handshake))
		require.ErrorIs(t, err, nats.ErrAuthorization, user)
	}
}

func TestARunningServerTakesNewTenantsAndRenewedCredentialsWhenItReloads(t *testing.T) {
	t.Parallel()
	folder, before := natsjwt.Folder(t.TempDir()), natsjwt.Folder(t.TempDir())
	require.NoError(t, folder.Make([]string{"acme"}, false))
	require.NoError(t, os.CopyFS(filepath.Join(string(before), "creds"), os.DirFS(filepath.Join(string(folder), "creds"))))
	g := natstest.GuardWithJWTs(t, t.TempDir(), folder, "acme")
	stays, err := g.Connect("ingestor")
	require.NoError(t, err)
	defer stays.Close()

	require.NoError(t, folder.Make([]string{"acme", "other"}, false))
	require.NoError(t, g.Reload())
	agent, err := g.Connect("agent-other")
	require.NoError(t, err)
	agent.Close()
	require.NoError(t, stays.Flush())
	require.Zero(t, stays.Reconnects, "its credentials are the same")

	nextSecond(t, folder)
	require.NoError(t, folder.Make([]string{"acme", "other"}, true))
	require.NoError(t, g.Reload())
	_, err = nats.Connect(g.ClientURL(), nats.UserCredentials(before.Creds("ingestor")), nats.Timeout(mnemetest.Handshake))
	require.ErrorIs(t, err, nats.ErrAuthorization)
	again, err := g.Connect("ingestor")
	require.NoError(t, err)
	again.Close()
}

// nextSecond waits until a JWT that is issued now is newer than those of all credentials files, which may have been made in
// two seconds.
func nextSecond(t *testing.T, folder natsjwt.Folder) {
	t.Helper()
	files, err := filepath.Glob(folder.Creds("*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	newest := int64(0)
	for _, file := range files {
		token, err := nkeys.ParseDecoratedJWT([]byte(read(t, file)))
		require.NoError(t, err)
		claims, err := jwt.DecodeUserClaims(token)
		require.NoError(t, err)
		newest = max(newest, claims.IssuedAt)
	}
	require.Eventually(t, func() bool { return time.Now().Unix() > newest }, mnemetest.Patience, 10*time.Millisecond)
}

func TestCredentialsOfARoleWhoseRightsHaveChangedAreMadeAgain(t *testing.T) {
	t.Parallel()
	folder := natsjwt.Folder(t.TempDir())
	require.NoError(t, folder.Make([]string{"acme"}, false))
	// A file of another account grants what no role of this one needs.
	other := natsjwt.Folder(t.TempDir())
	require.NoError(t, other.Make([]string{"acme"}, false))
	foreign := read(t, other.Creds("ingestor"))
	require.NoError(t, os.WriteFile(folder.Creds("ingestor"), []byte(foreign), 0o600))
	require.NoError(t, folder.Make([]string{"acme"}, false))
	require.NotEqual(t, foreign, read(t, folder.Creds("ingestor")))
	conn, err := natstest.GuardWithJWTs(t, t.TempDir(), folder, "acme").Connect("ingestor")
	require.NoError(t, err)
	conn.Close()
}

func TestDamagedKeysAndBadTenantsAreRefusedAndNothingIsReplaced(t *testing.T) {
	t.Parallel()
	folder := natsjwt.Folder(t.TempDir())
	require.ErrorContains(t, folder.Make([]string{"a b"}, false), "only letters")
	require.NoError(t, folder.Make([]string{"acme"}, false))
	conf := read(t, filepath.Join(string(folder), natsjwt.Conf))
	key := filepath.Join(string(folder), "keys", "account-"+natsdeploy.LogAccount+".nk")
	require.NoError(t, os.WriteFile(key, []byte("garbage"), 0o600))
	require.ErrorContains(t, folder.Make([]string{"acme"}, false), "restore it from a copy")
	require.Equal(t, conf, read(t, filepath.Join(string(folder), natsjwt.Conf)))

	require.NoError(t, os.Remove(key))
	require.NoError(t, os.WriteFile(folder.Creds("ingestor"), []byte("garbage"), 0o600))
	err := folder.Make([]string{"acme"}, false)
	require.ErrorContains(t, err, "remove it, and new ones are made")
	require.True(t, strings.Contains(err.Error(), folder.Creds("ingestor")), err)
}
