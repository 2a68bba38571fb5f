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
	// unknownEvery is how long to wait, after a token with an unknown key caused a fetch that brought no new key, before
	// another one may cause a fetch, so that wrong tokens can't flood the provider.
	unknownEvery = 10 * time.Second
	// renewedAtOnce is how many fetches may bring a new key before the next one waits all the same: a provider of several
	// servers may publish other keys each time.
	renewedAtOnce = 3
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

	mu       sync.Mutex
	set      []*key    // nil until fetched
	at       Discovery // as fetched with set
	trouble  error     // of the last fetch
	asked    time.Time // when a fetch that an unknown key caused last ended, zero if it brought a new key
	renewals int       // fetches since then that did

	fetching sync.Mutex
	renewing singleflight.Group // the fetch that an unknown key caused
	waiting  atomic.Int64       // checks that wait for it
}

// key is a public key of the provider.
type key struct {
	jose.JSONWebKey
	ended context.Context // done when the provider has withdrawn the key, as after it was stolen
	end   context.CancelFunc
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

// verify returns what was signed, and the key that signed it. It returns [access.ErrUnavailable] if the provider may have
// the key, but does not answer.
func (k *keys) verify(ctx context.Context, token string) ([]byte, *key, error) {
	signed, err := jose.ParseSigned(token, k.algorithms)
	if err != nil {
		return nil, nil, err
	}
	if len(signed.Signatures) != 1 {
		return nil, nil, errors.New("not signed exactly once")
	}
	id := signed.Signatures[0].Header.KeyID
	candidates, err := k.find(id)
	if err != nil {
		return nil, nil, err
	}
	if len(candidates) == 0 {
		if err := k.renewed(ctx); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", access.ErrUnavailable, err)
		}
		if candidates, err = k.find(id); err != nil {
			return nil, nil, err
		}
	}
	for _, by := range candidates {
		if payload, err := signed.Verify(by.JSONWebKey); err == nil {
			return payload, by, nil
		}
	}
	return nil, nil, errors.New("not signed by the provider")
}

// find returns the keys with an id; all, if the token names none.
func (k *keys) find(id string) (list []*key, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.set == nil {
		return nil, access.ErrUnavailable
	}
	for _, one := range k.set {
		if id == "" || one.KeyID == id {
			list = append(list, one)
		}
	}
	return list, nil
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

// renew fetches the keys, unless an unknown key caused a fetch in vain a short while ago; then it returns how that one went.
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
	k.mu.Lock()
	before := slices.Clone(k.set)
	k.mu.Unlock()
	err := k.fetch(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.renewals < renewedAtOnce && slices.ContainsFunc(k.set, func(now *key) bool { return !slices.ContainsFunc(before, now.is) }) {
		k.asked = time.Time{}
		k.renewals++
	} else {
		k.asked, k.renewals = k.Now(), 0
	}
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
		k.at = at
		k.replace(set)
	}
	return err
}

// replace takes over the keys that the provider publishes now, and ends those that it has withdrawn.
func (k *keys) replace(set []jose.JSONWebKey) {
	withdrawn := k.set
	k.set = make([]*key, len(set))
	for i, published := range set {
		now := &key{JSONWebKey: published}
		if j := slices.IndexFunc(withdrawn, now.is); j >= 0 {
			now.ended, now.end = withdrawn[j].ended, withdrawn[j].end
			withdrawn = slices.Delete(withdrawn, j, j+1)
		} else {
			now.ended, now.end = context.WithCancel(context.Background())
		}
		k.set[i] = now
	}
	for _, old := range withdrawn {
		old.end()
	}
}

// is reports whether both are the same key under the same id.
func (k *key) is(other *key) bool {
	mine, err := k.Thumbprint(crypto.SHA256)
	theirs, otherErr := other.Thumbprint(crypto.SHA256)
	return k.KeyID == other.KeyID && err == nil && otherErr == nil && bytes.Equal(mine, theirs)
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
func (k *keys) ask(ctx context.Context) (provider Discovery, set []jose.JSONWebKey, err error) {
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
	for _, key := range all.Keys {
		if key.Valid() && key.IsPublic() && key.Use != "enc" {
			set = append(set, key)
		}
	}
	if len(set) == 0 {
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
