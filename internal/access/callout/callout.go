// Package callout lets agents connect to NATS with the tokens of the HTTP API. The server asks about each connection that
// is not one of its configured users (NATS auth callout, architecture decision 26 of NATS), and an agent gets the permissions
// of its token's tenant.
package callout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/access"
)

const (
	// lasts is how long a connection may last. The client reconnects by itself, and its token is then checked again, so
	// a revoked token is used no longer than that.
	lasts = 15 * time.Minute

	// answerWithin is less than a server waits, 2 s.
	answerWithin = 1500 * time.Millisecond

	atOnce = 64 // checks, of which some may wait for the keys of an identity provider
)

// queue is the queue group of all processes that answer.
const queue = "mneme"

// Config is what answering a server needs.
type Config struct {
	Conn   *nats.Conn
	Issuer nkeys.KeyPair // see [ReadSeed]
	Gate   *access.Gate
	Logger *slog.Logger
	Now    func() time.Time
}

type service struct {
	Config
	public string
	free   chan struct{}
}

// Serve answers a server until stop is called. When it returns, the server asks it.
func Serve(c Config) (stop func(), err error) {
	s := &service{Config: c, free: make(chan struct{}, atOnce)}
	if s.public, err = c.Issuer.PublicKey(); err != nil {
		return nil, err
	}
	sub, err := c.Conn.QueueSubscribe(natsdeploy.CalloutSubject, queue, func(m *nats.Msg) {
		s.free <- struct{}{}
		go func() {
			defer func() { <-s.free }()
			s.answer(m)
		}()
	})
	if err != nil {
		return nil, err
	}
	// The server refuses a connection that nobody checks, so it must know the subscription now.
	if err := c.Conn.FlushTimeout(answerWithin); err != nil {
		return nil, errors.Join(err, sub.Unsubscribe())
	}
	return func() {
		_ = sub.Unsubscribe() // it fails only on a closed connection
		for range atOnce {
			s.free <- struct{}{}
		}
	}, nil
}

// answer answers a request. A message that is not a request of a server gets no answer.
func (s *service) answer(m *nats.Msg) {
	request, err := jwt.DecodeAuthorizationRequestClaims(string(m.Data))
	if err != nil || request.Subject != s.public || !nkeys.IsValidPublicServerKey(request.Issuer) {
		s.Logger.Warn("a request about a connection to NATS does not come from a server with this issuer", "error", cmp.Or(err, errors.New("another issuer")))
		return
	}
	answer := jwt.NewAuthorizationResponseClaims(request.UserNkey)
	answer.Audience = request.Server.ID
	if answer.Jwt, err = s.user(request); err != nil {
		s.Logger.Warn("a connection to NATS was refused", "client", request.ClientInformation.Host, "name", request.ConnectOptions.Name, "error", err)
		answer.Error = err.Error()
	}
	text, err := answer.Encode(s.Issuer)
	if err == nil {
		err = m.Respond([]byte(text))
	}
	if err != nil {
		s.Logger.Error("a server's request about a connection can't be answered", "error", err)
	}
}

// user returns the user under which a connection is accepted.
func (s *service) user(request *jwt.AuthorizationRequestClaims) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	// A URL has the token after the name of the user, or alone.
	grant, err := s.Gate.CheckToken(ctx, cmp.Or(request.ConnectOptions.Password, request.ConnectOptions.Token))
	switch {
	case err != nil:
		return "", err
	case grant.AllTenants:
		return "", errors.New("the token is for all tenants, but an agent belongs to one: give it a token of that tenant")
	case grant.Role < access.Write || grant.Project != "":
		return "", fmt.Errorf("an agent publishes, so it needs a token with the role %s of a whole tenant", access.Write)
	}
	u := jwt.NewUserClaims(request.UserNkey)
	u.Name = grant.Subject
	u.Audience = natsdeploy.AgentUser(grant.Tenant) // its account
	u.Pub.Allow.Add(natsdeploy.AgentSubjects(grant.Tenant)...)
	u.Sub.Allow.Add(natsdeploy.InboxPrefix(natsdeploy.AgentUser(grant.Tenant)) + ".>")
	end := s.Now().Add(lasts)
	if !grant.Expires.IsZero() && grant.Expires.Before(end) {
		end = grant.Expires
	}
	u.Expires = end.Unix()
	return u.Encode(s.Issuer)
}

// ReadSeed reads the key with which answers are signed: the seed of a NATS account's key, which nobody else may read.
func ReadSeed(path string) (nkeys.KeyPair, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := nkeys.ParseDecoratedNKey(text)
	if err != nil {
		return nil, fmt.Errorf("%s holds no seed of a NATS account: mneme nats-config --callout-seed-file makes one", path)
	}
	if public, err := key.PublicKey(); err != nil || !nkeys.IsValidPublicAccountKey(public) {
		return nil, fmt.Errorf("%s does not hold the seed of a NATS account: mneme nats-config --callout-seed-file makes one", path)
	}
	return key, nil
}

// MakeSeed is [ReadSeed], and makes the file if it is missing.
func MakeSeed(path string) (nkeys.KeyPair, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return ReadSeed(path)
	}
	if err != nil {
		return nil, err
	}
	key, err := nkeys.CreateAccount()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	seed, err := key.Seed()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	_, err = fmt.Fprintf(file, "%s\n", seed)
	return key, errors.Join(err, file.Close())
}
