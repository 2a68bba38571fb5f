package jwt

import (
	"bytes"
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"

	"mneme.dev/mneme/internal/access"
)

const (
	fetchWithin = 10 * time.Second
	retryEvery  = 2 * time.Second
	renewEvery  = 15 * time.Minute
	// unknownEvery is how long to wait before a token with an unknown key may cause another fetch of the keys, so that
	// wrong tokens can't flood the provider.
	unknownEvery = 10 * time.Second
	// waitWithin is how long a check waits for a key that the provider may have added just now, and maxWaiting how many
	// checks wait at once. It is less than package callout checks at once.
	waitWithin = 3 * time.Second
	maxWaiting = 48
	maxAnswer  = 1 << 20
)

// keys are the public keys of the provider. They are fetched in the background; a check
// never waits for the provider, except for a key that it may have added just now.
type keys struct {
	Config
	algorithms              []jose.SignatureAlgorithm
	waitWithin, fetchWithin time.Duration // the constants, except in tests

	mu      sync.Mutex
	set     *jose.JSONWebKeySet // nil until fetched
	at      Discovery           // as fetched with set
	trouble error               // of the last fetch
	asked   time.Time           // when a fetch that an unknown key caused last ended
	gone    int                 // how often a fetch brought a set that lacks a key of the one before

	fetching sync.Mutex
	renewing singleflight.Group // the fetch that an unknown key caused
	waiting  atomic.Int64       // checks that wait for it
}

func newKeys(c Config) *keys {
	k := &keys{Config: c, waitWithin: waitWithin, fetchWithin: fetchWithin, trouble: errors.New("they have not been fetched yet")}
	for _, a := range c.Algorithms {
		k.algorithms = append(k.algorithms, jose.SignatureAlgorithm(a))
	}
	return k
}

// run fetches the keys until ctx ends: soon again after a failure, otherwise at long intervals.
func (k *keys) run(ctx context.Context, logger *slog.Logger) {
	said := ""
	for {
		pause := renewEvery
		switch err := k.fetch(ctx); {
		case err != nil && err.Error() != said && ctx.Err() == nil:
			said = err.Error()
			logger.Warn("the keys of the identity provider can't be fetched; trying again", "issuer", k.Issuer, "error", err)
			fallthrough
		case err != nil:
			pause = retryEvery
		default:
			said = ""
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

func (k *keys) ready() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.set == nil:
		return fmt.Errorf("no keys of %s: %w", k.Issuer, k.trouble)
	case k.trouble != nil:
		return fmt.Errorf("the keys of %s could not be fetched again, so those from before are in use: %w", k.Issuer, k.trouble)
	}
	return nil
}

// VerifySignature implements oidc.KeySet. It returns [access.ErrUnavailable] if the provider may have the key, but does
// not answer.
func (k *keys) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	signed, err := jose.ParseSigned(token, k.algorithms)
	if err != nil {
		return nil, err
	}
	if len(signed.Signatures) != 1 {
		return nil, errors.New("not signed exactly once")
	}
	id := signed.Signatures[0].Header.KeyID
	candidates, err := k.find(id)
	if err != nil {
		return nil, err
	}
	if len(candidates) == 0 {
		if err := k.renewed(ctx); err != nil {
			return nil, fmt.Errorf("%w: %w", access.ErrUnavailable, err)
		}
		if candidates, err = k.find(id); err != nil {
			return nil, err
		}
	}
	for _, key := range candidates {
		if payload, err := signed.Verify(key); err == nil {
			return payload, nil
		}
	}
	return nil, errors.New("not signed by the provider")
}

// find returns the keys with an id; all, if the token names none.
func (k *keys) find(id string) ([]jose.JSONWebKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.set == nil {
		return nil, access.ErrUnavailable
	}
	if id == "" {
		return k.set.Keys, nil
	}
	return k.set.Key(id), nil
}

// renewed waits until the keys are those that the provider publishes now, or were so a short while ago. All who wait
// share one fetch, which goes on if one of them gives up.
func (k *keys) renewed(ctx context.Context) error {
	defer k.waiting.Add(-1)
	if k.waiting.Add(1) > maxWaiting {
		return errors.New("too many checks wait for the provider already")
	}
	ctx, cancel := context.WithTimeout(ctx, k.waitWithin)
	defer cancel()
	select {
	case r := <-k.renewing.DoChan("", func() (any, error) { return nil, k.renew(context.WithoutCancel(ctx)) }):
		return r.Err
	case <-ctx.Done():
		return fmt.Errorf("wait for the provider: %w", ctx.Err())
	}
}

// renew fetches the keys, unless an unknown key caused a fetch a short while ago; then it returns how the last one went.
func (k *keys) renew(ctx context.Context) error {
	k.mu.Lock()
	every, trouble, asked := unknownEvery, k.trouble, k.asked
	k.mu.Unlock()
	if trouble != nil {
		every = retryEvery
	}
	if !asked.IsZero() && k.Now().Sub(asked) < every {
		return trouble
	}
	ctx, cancel := context.WithTimeout(ctx, k.fetchWithin)
	defer cancel()
	err := k.fetch(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = k.Now()
	return err
}

// fetch replaces the keys with those that the provider publishes now. If it fails, the
// old ones stay.
func (k *keys) fetch(ctx context.Context) error {
	k.fetching.Lock()
	defer k.fetching.Unlock()
	at, set, err := k.ask(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.trouble = err
	if err == nil {
		if k.set != nil && slices.ContainsFunc(k.set.Keys, func(old jose.JSONWebKey) bool { return !published(set, old) }) {
			k.gone++
		}
		k.at, k.set = at, set
	}
	return err
}

// withdrawals counts when the provider withdrew keys, as after one was stolen: tokens that were checked before then must
// be checked again.
func (k *keys) withdrawals() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.gone
}

// published reports whether a set has a key under the same id.
func published(set *jose.JSONWebKeySet, key jose.JSONWebKey) bool {
	return slices.ContainsFunc(set.Key(key.KeyID), func(k jose.JSONWebKey) bool {
		mine, err := k.Thumbprint(crypto.SHA256)
		other, otherErr := key.Thumbprint(crypto.SHA256)
		return err == nil && otherErr == nil && bytes.Equal(mine, other)
	})
}

// Discovery is what a provider says about itself, see OpenID Connect Discovery 1.0, section 3.
type Discovery struct {
	Issuer        string   `json:"issuer"`
	Keys          string   `json:"jwks_uri"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Methods       []string `json:"token_endpoint_auth_methods_supported"`
}

// provider returns what the provider says about itself.
func (k *keys) provider() (Discovery, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.set == nil {
		return Discovery{}, fmt.Errorf("%w: %w", access.ErrUnavailable, k.trouble)
	}
	return k.at, nil
}

// ask asks the provider where its keys are, and for the keys.
func (k *keys) ask(ctx context.Context) (provider Discovery, set *jose.JSONWebKeySet, err error) {
	if err := k.get(ctx, strings.TrimSuffix(k.Issuer, "/")+"/.well-known/openid-configuration", &provider); err != nil {
		return provider, nil, err
	}
	if provider.Issuer != k.Issuer {
		return provider, nil, fmt.Errorf("the provider calls itself %.200q, so its tokens would not be accepted: set MNEME_OIDC_ISSUER to that name if it is the right one", provider.Issuer)
	}
	if strings.HasPrefix(k.Issuer, "https://") {
		for _, endpoint := range []string{provider.Keys, provider.Authorization, provider.Token} {
			if strings.HasPrefix(strings.ToLower(endpoint), "http://") {
				return provider, nil, fmt.Errorf("the provider names %.200q, which is not encrypted: anyone on the network could read secrets, or substitute other keys", endpoint)
			}
		}
	}
	var all jose.JSONWebKeySet
	if err := k.get(ctx, provider.Keys, &all); err != nil {
		return provider, nil, err
	}
	set = &jose.JSONWebKeySet{}
	for _, key := range all.Keys {
		if key.Valid() && key.IsPublic() && key.Use != "enc" {
			set.Keys = append(set.Keys, key)
		}
	}
	if len(set.Keys) == 0 {
		return provider, nil, errors.New("the provider publishes no key for checking signatures")
	}
	return provider, set, nil
}

func (k *keys) get(ctx context.Context, url string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := k.Client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(answer); err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	return nil
}
