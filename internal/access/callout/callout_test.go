package callout_test

import (
	"context"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/access/callout"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
)

// system is a server with a log that lets agents in by their tokens.
type system struct {
	*testing.T
	server *natstest.Guarded
	issuer nkeys.KeyPair
	tokens *access.Tokens
	file   *access.File
	admin  jetstream.JetStream
}

func setup(t *testing.T) *system {
	t.Helper()
	issuer, err := callout.MakeSeed(filepath.Join(t.TempDir(), "seed.nk"))
	require.NoError(t, err)
	public, err := issuer.PublicKey()
	require.NoError(t, err)
	s := &system{T: t, issuer: issuer, tokens: access.NewTokens(time.Now), file: access.NewFile(filepath.Join(t.TempDir(), "tokens.jsonl")), server: natstest.GuardIn(t, t.TempDir(), natsdeploy.Permissions{Tenants: []string{"acme", "other"}, Callout: public})}
	s.admin, err = jetstream.New(s.as("admin"))
	require.NoError(t, err)
	_, err = natsdeploy.Apply(mnemetest.Context(t), s.admin, natsdeploy.Settings{MaxBytes: 1 << 28})
	require.NoError(t, err)
	return s
}

// as connects as a user of the server's configuration.
func (s *system) as(user string) *nats.Conn {
	s.Helper()
	conn, err := nats.Connect(s.server.As(user), nats.CustomInboxPrefix(natsdeploy.InboxPrefix(user)), nats.Timeout(mnemetest.Handshake))
	require.NoError(s, err)
	s.Cleanup(conn.Close)
	return conn
}

// serve answers the server as context-api does.
func (s *system) serve() (stop func()) {
	s.Helper()
	stop, err := callout.Serve(callout.Config{Conn: s.as("context-api"), Issuer: s.issuer, Gate: &access.Gate{Tokens: s.tokens}, Logger: slog.New(slog.DiscardHandler), Now: time.Now})
	require.NoError(s, err)
	stop = sync.OnceFunc(stop)
	s.Cleanup(stop)
	return stop
}

// token makes a token.
func (s *system) token(rights access.Rights, lasts time.Duration) string {
	s.Helper()
	token, record, err := access.Issue(rights, "agent", time.Now(), lasts)
	require.NoError(s, err)
	require.NoError(s, s.file.Add(s.Context(), record))
	require.NoError(s, s.file.Load(s.tokens))
	return token
}

// dial connects as an agent of acme does: with the token after the user's name in the URL.
func (s *system) dial(token string, options ...nats.Option) (*nats.Conn, error) {
	at, err := url.Parse(s.server.ClientURL())
	require.NoError(s, err)
	at.User = url.UserPassword("agent-acme", token)
	conn, err := nats.Connect(at.String(), append(options, nats.CustomInboxPrefix(natsdeploy.InboxPrefix("agent-acme")), nats.Timeout(mnemetest.Handshake))...)
	if err == nil {
		s.Cleanup(conn.Close)
	}
	return conn, err
}

func publish(ctx context.Context, t *testing.T, conn *nats.Conn, subject string) error {
	t.Helper()
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(10*time.Second))
	require.NoError(t, err)
	_, err = js.Publish(ctx, subject, []byte("{}"))
	return err
}

func TestAnAgentConnectsWithItsTokenAndMayDoWhatItsTenantMay(t *testing.T) {
	s := setup(t)
	s.serve()
	token := s.token(access.Rights{Tenant: "acme", Role: access.Write}, time.Hour)
	refused := make(chan error, 100)
	conn, err := s.dial(token, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	require.NoError(t, err)
	require.NoError(t, publish(t.Context(), t, conn, "mneme.acme.c1.message_created"))
	for _, subject := range []string{"mneme.other.c1.message_created", "mneme.acme.c1.summary_written", "$JS.API.STREAM.PURGE.AGENT_EVENTS", "$KV.AGENT_TOKENS.token.1f"} {
		require.NoError(t, conn.Publish(subject, []byte("{}")))
		require.NoError(t, conn.Flush())
		require.ErrorIs(t, <-refused, nats.ErrPermissionViolation, subject)
	}
	for _, subject := range []string{">", "mneme.acme.>", natsdeploy.CalloutSubject, natsdeploy.InboxPrefix("agent-other") + ".>"} {
		_, err := conn.SubscribeSync(subject)
		require.NoError(t, err)
		require.NoError(t, conn.Flush())
		require.ErrorIs(t, <-refused, nats.ErrPermissionViolation, subject)
	}
	alone, err := nats.Connect(s.server.ClientURL(), nats.Token(token), nats.CustomInboxPrefix(natsdeploy.InboxPrefix("agent-acme")), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err, "a token without a user")
	defer alone.Close()
	require.NoError(t, publish(t.Context(), t, alone, "mneme.acme.c1.message_created"))
}

func TestAConnectionWithoutTheRightTokenIsRefused(t *testing.T) {
	s := setup(t)
	s.serve()
	expired := s.token(access.Rights{Tenant: "acme", Role: access.Write}, time.Nanosecond)
	for name, token := range map[string]string{
		"unknown":          access.NewToken(),
		"expired":          expired,
		"that only reads":  s.token(access.Rights{Tenant: "acme", Role: access.Read}, time.Hour),
		"of a project":     s.token(access.Rights{Tenant: "acme", Role: access.Read, Project: "p"}, time.Hour),
		"of all tenants":   s.token(access.Rights{AllTenants: true, Role: access.Admin}, time.Hour),
		"of an unknown":    s.token(access.Rights{Tenant: "third", Role: access.Write}, time.Hour),
		"a word":           "secret",
		"a user's old one": "password-of-agent-acme",
	} {
		_, err := s.dial(token)
		require.ErrorIs(t, err, nats.ErrAuthorization, name)
	}
	_, err := nats.Connect(s.server.ClientURL(), nats.Timeout(mnemetest.Handshake))
	require.ErrorIs(t, err, nats.ErrAuthorization)
}

// Programs start before context-api can answer, and continue when it is gone.
func TestProgramsNeedNobodyToAnswer(t *testing.T) {
	s := setup(t)
	require.NoError(t, publish(t.Context(), t, s.as("operator"), "mneme.acme.c1.message_created"))
	_, err := s.dial(s.token(access.Rights{Tenant: "acme", Role: access.Write}, time.Hour))
	require.Error(t, err, "an agent waits until somebody answers")
	s.serve()
	_, err = s.dial(s.token(access.Rights{Tenant: "acme", Role: access.Write}, time.Hour))
	require.NoError(t, err)
}

// As docs/operations/access.md says, agents need two options for that.
func TestAnAgentSurvivesThatNobodyAnswersForAWhile(t *testing.T) {
	s := setup(t)
	stop := s.serve()
	conn, err := s.dial(s.token(access.Rights{Tenant: "acme", Role: access.Write}, time.Hour), nats.IgnoreAuthErrorAbort(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	require.NoError(t, err)
	stop()
	require.NoError(t, conn.ForceReconnect())
	require.Never(t, conn.IsConnected, 5*time.Second, 100*time.Millisecond) // the server refuses it after 2 seconds each time
	require.False(t, conn.IsClosed(), "it goes on trying")
	s.serve()
	require.Eventually(t, func() bool { return publish(t.Context(), t, conn, "mneme.acme.c1.message_created") == nil }, mnemetest.Patience, 10*time.Millisecond)
}

func TestAConnectionEndsWithItsToken(t *testing.T) {
	s := setup(t)
	s.serve()
	connect := func(lasts time.Duration) (<-chan struct{}, error) {
		closed := make(chan struct{})
		conn, err := s.dial(s.token(access.Rights{Tenant: "acme", Role: access.Write}, lasts), nats.MaxReconnects(2), nats.ReconnectWait(10*time.Millisecond),
			nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
		if err == nil {
			err = publish(t.Context(), t, conn, "mneme.acme.c1.message_created")
		}
		return closed, err
	}
	lasts := 5 * time.Second
	closed, err := connect(lasts)
	for ; err != nil && lasts < time.Minute; closed, err = connect(lasts) { // on a busy machine, the token may end before that
		lasts *= 3
	}
	require.NoError(t, err)
	select {
	case <-closed:
	case <-time.After(mnemetest.Patience):
		require.Fail(t, "the connection outlived its token")
	}
}

func TestOnlyTheSeedOfAnAccountSignsAnswers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "seed.nk")
	made, err := callout.MakeSeed(path)
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	again, err := callout.MakeSeed(path)
	require.NoError(t, err)
	one, err := made.PublicKey()
	require.NoError(t, err)
	other, err := again.PublicKey()
	require.NoError(t, err)
	require.Equal(t, one, other)

	user, err := nkeys.CreateUser()
	require.NoError(t, err)
	seed, err := user.Seed()
	require.NoError(t, err)
	for name, text := range map[string]string{"empty": "", "words": "let me in", "user": string(seed)} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := callout.ReadSeed(path)
		require.ErrorContains(t, err, "mneme nats-config --callout-seed-file makes one", name)
	}
}
