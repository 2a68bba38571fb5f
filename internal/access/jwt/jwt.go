// Package jwt checks the tokens of an identity provider (OpenID Connect): who issued them,
// for whom, and until when; and which rights their claims give.
//
// The provider may be away when a program starts, and later. Without its keys no token can
// be checked, which is [access.ErrUnavailable]; keys that were fetched stay in use. A token
// with another key makes a check ask the provider for its keys.
package jwt

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"mneme.dev/mneme/internal/access"
)

// Config says whose tokens are accepted.
type Config struct {
	Issuer     string
	Audience   string        // of the tokens that programs send
	ClientID   string        // the page's client at the provider: ID tokens are for it; "" if people can't sign in there
	Algorithms []string      // of signatures; nothing else is accepted, whatever a token says
	Skew       time.Duration // how far the provider's clock may be off
	Claims     string        // path of the file that turns claims into rights
	Now        func() time.Time
	Client     *http.Client // nil for one with a time limit
}

// Algorithms lists the signature algorithms that can be configured. All of them are
// asymmetric: with a symmetric one a server's public key would be the secret.
func Algorithms() []string {
	return []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}
}

// Verifier checks tokens. It implements [access.Verifier].
type Verifier struct {
	Config
	keys  *keys
	rules atomic.Pointer[ruleset]
	seen  cache
	said  refusals
}

var _ access.Verifier = (*Verifier)(nil)

// New reads the claims file. It does not call the provider; [Verifier.Run] does.
func New(c Config) (*Verifier, error) {
	client := http.Client{Timeout: fetchWithin}
	if c.Client != nil {
		client = *c.Client
	}
	client.CheckRedirect = withinServer
	c.Client = &client
	for _, a := range c.Algorithms {
		if !slices.Contains(Algorithms(), a) {
			return nil, fmt.Errorf("%q is not an algorithm that can be used: choose among %v", a, Algorithms())
		}
	}
	v := &Verifier{Config: c, keys: newKeys(c)}
	return v, v.load()
}

// withinServer refuses a redirect to another server, which could be any in this machine's network, and which must get
// neither the client's secret nor a person's code.
func withinServer(request *http.Request, via []*http.Request) error {
	if to, from := request.URL, via[0].URL; to.Scheme != from.Scheme || to.Host != from.Host {
		return fmt.Errorf("it redirects to another server, %s://%s, which is not followed", to.Scheme, to.Host)
	}
	if len(via) >= 10 {
		return errors.New("it redirects in a loop")
	}
	return nil
}

// load reads the claims file. The rights that older rules gave end, also of requests in progress.
func (v *Verifier) load() error {
	rules, err := readRules(v.Claims)
	if err != nil {
		return err
	}
	if old := v.rules.Swap(rules); old != nil {
		old.end()
	}
	return nil
}

// Run fetches the provider's keys, and reads the claims file again when it changes, until
// ctx ends.
func (v *Verifier) Run(ctx context.Context, logger *slog.Logger) {
	v.said.logger.Store(logger)
	var both sync.WaitGroup
	both.Go(func() { v.keys.run(ctx, logger) })
	both.Go(func() {
		access.Reread(ctx, v.Claims, time.Second, v.load, func(err error) {
			logger.Error("the claims file can't be read; the rules read before stay in force", "error", err)
		}, nil)
	})
	both.Wait()
}

// Provider returns what the provider said about itself when its keys were fetched last. It returns
// [access.ErrUnavailable] if that never succeeded.
func (v *Verifier) Provider() (Discovery, error) { return v.keys.provider() }

// Ready returns why some tokens, or all, can't be checked now, or nil.
func (v *Verifier) Ready() error { return v.keys.ready() }

// times are the claims about when a token is valid, in Unix seconds.
type times struct {
	Expires   float64  `json:"exp"`
	NotBefore *float64 `json:"nbf"`
	Issued    *float64 `json:"iat"`
}

// errNoKeys: nobody can tell whether the provider made the token.
var errNoKeys = fmt.Errorf("%w: the keys of the identity provider are not available", access.ErrUnavailable)

// Check implements [access.Verifier]. A token that was checked before costs a hash and a
// lookup, until it expires, the rules change, or the provider withdraws its key.
func (v *Verifier) Check(ctx context.Context, token string) (*access.Grant, error) {
	rules, hash := v.rules.Load(), sha256.Sum256([]byte(token))
	if grant := v.seen.get(hash, rules); grant != nil {
		if !v.Now().Before(grant.Expires) {
			return nil, access.ErrInvalid
		}
		return grant, nil
	}
	checked, by, claims, at, err := v.read(ctx, token)
	switch {
	case errors.Is(err, access.ErrUnavailable):
		return nil, errNoKeys
	case err != nil:
		v.said.add(err.Error())
		return nil, access.ErrInvalid // without the reason, which would help to guess
	}
	rule, ok := rules.match(claims)
	switch {
	case !ok:
		v.said.add(fmt.Sprintf("no rule of the claims file grants anything to %.200q; the token has the claims %q", checked.Subject, slices.Sorted(maps.Keys(claims))))
		return nil, access.ErrNothing
	case rule.Deny:
		v.said.add(fmt.Sprintf("a rule of the claims file denies %.200q everything", checked.Subject))
		return nil, access.ErrNothing
	}
	grant := &access.Grant{Rights: rule.Rights, Name: checked.Subject, Subject: "oidc:" + checked.Subject, Expires: unix(at.Expires).Add(v.Skew), Ended: []context.Context{rules.ended, by.ended}}
	v.seen.put(hash, rules, grant)
	return grant, nil
}

// sayEvery is how often the log says why a token was refused. Anybody can send wrong tokens, which must not fill it.
const sayEvery = 10 * time.Second

// refusals tells the log why tokens are refused, because the answer to their senders does not.
type refusals struct {
	logger atomic.Pointer[slog.Logger] // nil before [Verifier.Run]

	mu sync.Mutex
	at time.Time // of the last line
}

func (r *refusals) add(why string) {
	logger := r.logger.Load()
	if logger == nil {
		return
	}
	r.mu.Lock()
	due := time.Since(r.at) >= sayEvery
	if due {
		r.at = time.Now()
	}
	r.mu.Unlock()
	if due {
		logger.Warn("a token of the identity provider was refused; further refusals within 10 seconds are not logged", "reason", fmt.Sprintf("%.500s", why))
	}
}

// signature is an oidc.KeySet for one token. It keeps what package oidc does not pass on: the key, and more of an error than
// its text.
type signature struct {
	keys *keys
	by   *key
	err  error
}

func (s *signature) VerifySignature(ctx context.Context, token string) (payload []byte, err error) {
	payload, s.by, s.err = s.keys.verify(ctx, token)
	return payload, s.err
}

// read checks a token, and returns its key and its claims. It returns [access.ErrUnavailable] if the provider may have that
// key, but does not answer.
func (v *Verifier) read(ctx context.Context, token string) (checked *oidc.IDToken, by *key, claims map[string]any, at times, err error) {
	signed := &signature{keys: v.keys}
	checked, err = oidc.NewVerifier(v.Issuer, signed, &oidc.Config{
		SupportedSigningAlgs: v.Algorithms,
		SkipExpiryCheck:      true, // checked below, with the configured skew
		SkipClientIDCheck:    true, // checked below, because there are two
	}).Verify(ctx, token)
	if err != nil {
		return nil, nil, nil, at, cmp.Or(signed.err, err)
	}
	if !slices.ContainsFunc(checked.Audience, v.isFor) {
		return nil, nil, nil, at, fmt.Errorf("it is for %.200q", checked.Audience)
	}
	if err := errors.Join(checked.Claims(&claims), checked.Claims(&at)); err != nil {
		return nil, nil, nil, at, err
	}
	if err := v.valid(at); err != nil {
		return nil, nil, nil, at, err
	}
	return checked, signed.by, claims, at, nil
}

// Why returns the reason why [Verifier.Check] finds a token invalid, for the log.
func (v *Verifier) Why(ctx context.Context, token string) error {
	_, _, _, _, err := v.read(ctx, token)
	return err
}

// isFor reports whether an audience means this server.
func (v *Verifier) isFor(audience string) bool {
	return audience != "" && (audience == v.Audience || audience == v.ClientID)
}

// valid checks the times of a token. One that never expires is refused, because it could
// never be withdrawn.
func (v *Verifier) valid(at times) error {
	if at.Expires <= 0 {
		return errors.New("it never expires")
	}
	now := v.Now()
	if ends := unix(at.Expires); !now.Before(ends.Add(v.Skew)) {
		return fmt.Errorf("it expired at %s, %s ago by this machine's clock", ends.UTC().Format(time.RFC3339), now.Sub(ends).Round(time.Second))
	}
	for _, t := range []*float64{at.NotBefore, at.Issued} {
		if t != nil && now.Add(v.Skew).Before(unix(*t)) {
			return fmt.Errorf("it is valid only from %s on, in %s by this machine's clock, and MNEME_OIDC_CLOCK_SKEW forgives %s", unix(*t).UTC().Format(time.RFC3339), unix(*t).Sub(now).Round(time.Second), v.Skew)
		}
	}
	return nil
}

// maxUnix keeps times in a range with which one can calculate: the year 9999.
const maxUnix = 253402300799

func unix(seconds float64) time.Time { return time.Unix(int64(min(max(seconds, 0), maxUnix)), 0) }

// maxSeen bounds how many checked tokens are remembered.
const maxSeen = 10_000

// cache remembers checked tokens. Only valid ones get in, so that wrong tokens displace none.
type cache struct {
	mu      sync.Mutex
	rules   *ruleset
	grants  map[[sha256.Size]byte]*access.Grant
	earlier map[[sha256.Size]byte]*access.Grant // dropped when grants is full
}

func (c *cache) get(hash [sha256.Size]byte, rules *ruleset) *access.Grant {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rules != rules {
		return nil
	}
	g := cmp.Or(c.grants[hash], c.earlier[hash])
	if g != nil && slices.ContainsFunc(g.Ended, func(ended context.Context) bool { return ended.Err() != nil }) {
		return nil
	}
	return g
}

func (c *cache) put(hash [sha256.Size]byte, rules *ruleset, g *access.Grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rules != rules {
		c.rules, c.grants, c.earlier = rules, nil, nil
	}
	if len(c.grants) >= maxSeen/2 || c.grants == nil {
		c.grants, c.earlier = map[[sha256.Size]byte]*access.Grant{}, c.grants
	}
	c.grants[hash] = g
}

// claim returns a claim by its name, or else by its path: realm_access.roles is the claim roles within realm_access. Names
// on the path may have dots too, as the clients of Keycloak.
func claim(claims map[string]any, name string) any {
	if value, ok := claims[name]; ok {
		return value
	}
	for i, c := range name {
		if within, ok := claims[name[:i]].(map[string]any); ok && c == '.' {
			if value := claim(within, name[i+1:]); value != nil {
				return value
			}
		}
	}
	return nil
}

// claimText returns the texts of a claim: one, several for a list, none for anything else.
func claimText(value any) []string {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		var list []string
		for _, one := range v {
			if s, ok := one.(string); ok {
				list = append(list, s)
			}
		}
		return list
	case bool, float64:
		text, err := json.Marshal(v)
		if err == nil {
			return []string{string(text)}
		}
	}
	return nil
}
