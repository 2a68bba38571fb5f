package program

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/access/jwt"
	"mneme.dev/mneme/internal/access/signin"
	"mneme.dev/mneme/internal/quota"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/pkg/eventlog"
)

// OpenGate returns who may use the API by these settings, or nil if no token is required.
// It waits until the tokens are loaded or ctx ends, and keeps them up to date until close is called. The
// identity provider need not answer yet.
//
// The tokens are in a file if the settings name one, otherwise in a bucket of the NATS server.
func OpenGate(ctx context.Context, s settings.Access, conn *nats.Conn, logger *slog.Logger) (opened *access.Gate, stop func(), err error) {
	if !s.On() {
		return nil, func() {}, nil
	}
	gate := &access.Gate{} // the results are nil as soon as one below is an error, while what it began still runs
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var ended sync.WaitGroup
	end := func() {
		cancel()
		ended.Wait()
	}
	defer func() {
		if err != nil {
			end()
		}
	}()
	if s.OIDCIssuer != "" {
		verifier, err := jwt.New(jwt.Config{Issuer: s.OIDCIssuer, Audience: s.Audience, ClientID: s.ClientID, Algorithms: s.AlgorithmList(), Skew: s.Skew, Claims: s.Claims, Now: time.Now})
		if err != nil {
			return nil, nil, &UsageError{fmt.Errorf("MNEME_OIDC_CLAIMS_FILE: %w", err)}
		}
		gate.JWT, gate.Issuer = verifier, s.OIDCIssuer
		if s.ClientID != "" {
			gate.SignIn = &signin.Handler{Config: signin.Config{Verifier: verifier, Secret: s.ClientSecret, Scopes: strings.Fields(s.Scopes), Logger: logger}}
		}
		ended.Go(func() { verifier.Run(running, logger) })
	}
	store, err := tokenStore(s, conn)
	if err != nil || store == nil {
		return gate, end, err
	}
	gate.Tokens = access.NewTokens(time.Now)
	if file, ok := store.(*access.File); ok {
		if err := file.Load(gate.Tokens); err != nil {
			return nil, nil, &UsageError{fmt.Errorf("MNEME_TOKENS_FILE: %w", err)}
		}
	}
	loaded := make(chan struct{})
	once := sync.OnceFunc(func() { close(loaded) })
	ended.Go(func() { store.Follow(running, gate.Tokens, logger, once) })
	for waiting := true; waiting; { // as for NATS itself; Follow logs what is in the way
		select {
		case <-loaded:
			waiting = false
		case <-time.After(SayEvery):
			logger.Warn("waiting for the access tokens")
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("the access tokens %w", ErrNeverAvailable)
		}
	}
	if gate.Tokens.Len() == 0 && gate.JWT == nil {
		logger.Warn("tokens are required, but there is none yet: make one with mneme tokens create")
	}
	return gate, end, nil
}

// tokenStore returns where the tokens of these settings are, nil if none are required.
func tokenStore(s settings.Access, conn *nats.Conn) (access.Store, error) {
	switch {
	case s.TokensFile != "":
		return access.NewFile(s.TokensFile), nil
	case s.Tokens:
		return access.NewBucket(conn)
	}
	return nil, nil
}

// ServingOf returns how the HTTP API is served.
func ServingOf(s settings.Access, hosts settings.Hosts, trusted bool) Serving {
	// Where a token is required, DNS rebinding is harmless: the page has no token to send.
	return Serving{Hosts: hosts, AnyAddress: trusted || s.On(), CertFile: s.CertFile, KeyFile: s.KeyFile}
}

// OpenQuotas returns the quotas of tenants from a file, or nil without a file. Until stop is called, it keeps the
// quotas up to date, and counts what tenants store in the log. The counts are kept below data. Without a log it counts
// nothing there.
func OpenQuotas(ctx context.Context, path, data string, log *eventlog.Log, logger *slog.Logger) (q *quota.Quotas, stop func(), err error) {
	if path == "" {
		return nil, func() {}, nil
	}
	if q, err = quota.Open(path); err != nil {
		return nil, nil, &UsageError{fmt.Errorf("MNEME_QUOTAS_FILE: %w", err)}
	}
	if log != nil {
		q.Count(quota.NewMeter(log, filepath.Join(data, "stored.json"), logger))
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var ended sync.WaitGroup
	ended.Go(func() { q.Run(running, logger) })
	return q, func() {
		cancel()
		ended.Wait()
	}, nil
}
