package jwt_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/access/jwt"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/oidctest"
)

const rules = `
rules:
  - claims: {groups: leads, org: a}
    tenant: team-a
    role: operate
  - claims: {org: a}
    tenant: team-a
    role: write
`

// bundle is a verifier for a provider, with a clock that only the test moves.
type bundle struct {
	*oidctest.Provider
	*jwt.Verifier
	claims string      // path of the claims file
	log    chan string // what Run logs; more than it holds is dropped
	begun  time.Time   // what the clock shows until it is moved
	mu     sync.Mutex
	off    time.Duration
}

func (b *bundle) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.begun.Add(b.off)
}

func (b *bundle) move(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.off += d
}

func setup(t *testing.T, away bool) *bundle {
	return setupWith(t, away, http.DefaultClient, mnemetest.Patience)
}

// setupWith is setup with another client, and another time that checks wait for a key.
func setupWith(t *testing.T, away bool, client *http.Client, wait time.Duration) *bundle {
	t.Helper()
	t.Parallel()
	b := &bundle{Provider: oidctest.New(t), begun: time.Now(), claims: filepath.Join(t.TempDir(), "claims.yaml"), log: make(chan string, 10)}
	b.SetAway(away)
	require.NoError(t, os.WriteFile(b.claims, []byte(rules), 0o600))
	var err error
	b.Verifier, err = jwt.New(jwt.Config{Issuer: b.URL, Audience: "mneme", ClientID: "page", Algorithms: []string{"RS256", "ES256", "EdDSA"}, Skew: 30 * time.Second, Claims: b.claims, Now: b.now, Client: client})
	require.NoError(t, err)
	b.SetPatience(wait, mnemetest.Patience)
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { b.Run(ctx, slog.New(slog.NewTextHandler(lines(b.log), nil))) })
	t.Cleanup(func() { cancel(); run.Wait() })
	if !away {
		require.Eventually(t, func() bool { return b.Verifier.Ready() == nil }, mnemetest.Patience, 5*time.Millisecond)
	}
	return b
}

type lines chan<- string

func (l lines) Write(p []byte) (int, error) {
	select {
	case l <- string(p):
	default:
	}
	return len(p), nil
}

// good returns the claims of a token that is valid when the test begins, with changes.
func (b *bundle) good(changes map[string]any) map[string]any {
	claims := map[string]any{"iat": b.begun.Unix(), "nbf": b.begun.Unix(), "exp": b.begun.Add(time.Hour).Unix()}
	maps.Copy(claims, changes)
	return b.Claims("mneme", claims)
}

func (b *bundle) token(t testing.TB, changes map[string]any) string {
	return oidctest.Sign(t, jose.RS256, "one", b.Key, b.good(changes))
}

func TestClaimsBecomeRights(t *testing.T) {
	b := setup(t, false)
	grant, err := b.Check(t.Context(), b.token(t, nil))
	require.NoError(t, err)
	require.Equal(t, access.Rights{Tenant: "team-a", Role: access.Write}, grant.Rights)
	_, err = b.Check(t.Context(), b.token(t, map[string]any{"aud": "page"}))
	require.NoError(t, err, "an ID token of the page's client")
	grant, err = b.Check(t.Context(), b.token(t, map[string]any{"groups": []string{"all", "leads"}, "aud": []string{"other", "mneme"}}))
	require.NoError(t, err)
	require.Equal(t, access.Rights{Tenant: "team-a", Role: access.Operate}, grant.Rights, "the first rule that matches")
	_, err = b.Check(t.Context(), b.token(t, map[string]any{"org": "b"}))
	require.ErrorIs(t, err, access.ErrNothing)
}

func TestAForgedOrStaleTokenIsRefused(t *testing.T) {
	b := setup(t, false)
	now := b.begun
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(&b.Key.PublicKey)
	require.NoError(t, err)
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	body, err := json.Marshal(b.good(nil))
	require.NoError(t, err)
	encode := base64.RawURLEncoding.EncodeToString
	good := b.token(t, nil)
	part := strings.Split(good, ".") // header, body, signature
	other, err := json.Marshal(b.good(map[string]any{"sub": "somebody-else"}))
	require.NoError(t, err)
	for name, token := range map[string]string{
		"expired":              b.token(t, map[string]any{"exp": now.Add(-time.Minute).Unix()}),
		"without expiry":       b.token(t, map[string]any{"exp": nil}),
		"not yet valid":        b.token(t, map[string]any{"nbf": now.Add(time.Minute).Unix()}),
		"issued in the future": b.token(t, map[string]any{"iat": now.Add(time.Minute).Unix()}),
		"of another issuer":    b.token(t, map[string]any{"iss": "https://evil.example"}),
		"for another audience": b.token(t, map[string]any{"aud": "other"}),
		"without audience":     b.token(t, map[string]any{"aud": nil}),
		"of a stranger's key":  oidctest.Sign(t, jose.RS256, "one", stranger, b.good(nil)),
		"of an unknown key":    oidctest.Sign(t, jose.RS256, "two", stranger, b.good(nil)),
		"another algorithm":    oidctest.Sign(t, jose.RS384, "one", b.Key, b.good(nil)),
		"alg none":             encode([]byte(`{"alg":"none"}`)) + "." + encode(body) + ".",
		"HS256 with the key":   oidctest.Sign(t, jose.HS256, "one", public, b.good(nil)),
		"HS256 with its DER":   oidctest.Sign(t, jose.HS256, "one", der, b.good(nil)),
		"a changed body":       part[0] + "." + encode(other) + "." + part[2],
		"a changed signature":  part[0] + "." + part[1] + "." + changed(part[2]),
		"no JWT":               "a.b.c", "empty parts": "..", "words": "let me in",
	} {
		_, err := b.Check(t.Context(), token)
		require.ErrorIs(t, err, access.ErrInvalid, name)
	}
	_, err = b.Check(t.Context(), good)
	require.NoError(t, err)
}

// changed returns text with another character in its middle.
func changed(text string) string {
	middle := len(text) / 2
	with := "A"
	if text[middle] == 'A' {
		with = "B"
	}
	return text[:middle] + with + text[middle+1:]
}

func TestAClockThatIsOffByTenMinutesIsNotForgiven(t *testing.T) {
	b := setup(t, false)
	for _, off := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		b.move(off)
		short := b.token(t, map[string]any{"exp": b.begun.Add(5 * time.Minute).Unix()})
		_, err := b.Check(t.Context(), short)
		require.ErrorIs(t, err, access.ErrInvalid, off)
		b.move(-off)
	}
	for _, off := range []time.Duration{-20 * time.Second, 20 * time.Second} {
		b.move(off)
		_, err := b.Check(t.Context(), b.token(t, map[string]any{"jti": off.String(), "exp": b.begun.Add(10 * time.Second).Unix()}))
		require.NoError(t, err, off)
		b.move(-off)
	}
}

func TestTheReasonSaysWhichTimeOfATokenIsWrong(t *testing.T) {
	b := setup(t, false)
	for says, changes := range map[string]map[string]any{
		"it never expires": {"exp": nil},
		"it expired at":    {"exp": b.begun.Add(-time.Minute).Unix()},
		"it is valid only": {"iat": b.begun.Add(5 * time.Minute).Unix()},
		"valid only from":  {"nbf": b.begun.Add(5 * time.Minute).Unix()},
	} {
		require.ErrorContains(t, b.Why(t.Context(), b.token(t, changes)), says)
	}
}

func TestACheckedTokenExpiresToo(t *testing.T) {
	b := setup(t, false)
	token := b.token(t, nil)
	_, err := b.Check(t.Context(), token)
	require.NoError(t, err)
	b.move(2 * time.Hour)
	_, err = b.Check(t.Context(), token)
	require.ErrorIs(t, err, access.ErrInvalid)
}

func TestANewKeyIsFetchedAndUnknownKeysDoNotFloodTheProvider(t *testing.T) {
	b := setup(t, false)
	elliptical, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	b.Publish("two", elliptical)
	_, err = b.Check(t.Context(), oidctest.Sign(t, jose.ES256, "two", elliptical, b.good(nil)))
	require.NoError(t, err, "published since")
	b.Publish("three", edwards)
	_, err = b.Check(t.Context(), oidctest.Sign(t, jose.EdDSA, "three", edwards, b.good(nil)))
	require.NoError(t, err, "published right after another one")
	before := b.Fetched()
	for range 200 {
		_, err = b.Check(t.Context(), oidctest.Sign(t, jose.EdDSA, "unknown", edwards, b.good(nil)))
		require.ErrorIs(t, err, access.ErrInvalid)
	}
	require.LessOrEqual(t, b.Fetched()-before, 1)
}

func TestAProviderWhoseServersDisagreeAboutTheKeysIsNotFlooded(t *testing.T) {
	b := setup(t, false)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	before := b.Fetched()
	servers := []string{"two", "three"}
	for i := range 50 {
		b.Publish(servers[i%2], edwards)
		b.Withdraw(servers[1-i%2])
		_, err = b.Check(t.Context(), oidctest.Sign(t, jose.EdDSA, "unknown", edwards, b.good(nil)))
		require.ErrorIs(t, err, access.ErrInvalid)
	}
	require.LessOrEqual(t, b.Fetched()-before, 5)
}

// gated is a transport that counts its requests, which wait while it is shut.
type gated struct {
	gate  sync.RWMutex
	asked atomic.Int64
}

func (g *gated) RoundTrip(r *http.Request) (*http.Response, error) {
	g.asked.Add(1)
	g.gate.RLock()
	defer g.gate.RUnlock()
	return http.DefaultTransport.RoundTrip(r)
}

func TestAllWhoPresentANewKeyAtOnceAreAccepted(t *testing.T) {
	slow := &gated{}
	b := setupWith(t, false, &http.Client{Transport: slow}, mnemetest.Patience)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	b.Publish("two", edwards)
	before := b.Fetched()
	slow.gate.Lock()
	checked := make(chan error, 20)
	for i := range cap(checked) {
		token := oidctest.Sign(t, jose.EdDSA, "two", edwards, b.good(map[string]any{"jti": i}))
		go func() {
			_, err := b.Check(t.Context(), token)
			checked <- err
		}()
	}
	assert.Eventually(t, func() bool { return b.Waiting() == cap(checked) }, mnemetest.Patience, time.Millisecond, "a check did not wait for the provider")
	slow.gate.Unlock()
	for range cap(checked) {
		require.NoError(t, <-checked)
	}
	require.Equal(t, 1, b.Fetched()-before)
}

func TestAnUnknownKeyIsNoReasonToRefuseATokenWhileTheProviderIsAway(t *testing.T) {
	client := &gated{}
	b := setupWith(t, false, &http.Client{Transport: client}, mnemetest.Patience)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	b.SetAway(true)
	b.Publish("two", edwards)
	token := oidctest.Sign(t, jose.EdDSA, "two", edwards, b.good(nil))
	before := client.asked.Load()
	for range 20 {
		_, err = b.Check(t.Context(), token)
		require.ErrorIs(t, err, access.ErrUnavailable)
	}
	require.EqualValues(t, 1, client.asked.Load()-before, "unknown keys flood a provider that does not answer")
	b.SetAway(false)
	b.move(3 * time.Second)
	_, err = b.Check(t.Context(), token)
	require.NoError(t, err)
}

func TestAProviderThatHangsHoldsUpOnlySomeChecks(t *testing.T) {
	hangs := &gated{}
	b := setupWith(t, false, &http.Client{Transport: hangs}, mnemetest.Patience)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	token := oidctest.Sign(t, jose.EdDSA, "two", edwards, b.good(nil))
	hangs.gate.Lock()
	open := sync.OnceFunc(hangs.gate.Unlock)
	defer open()
	const many = 2 * jwt.MaxWaiting
	checked := make(chan error, many)
	for range many {
		go func() {
			_, err := b.Check(t.Context(), token)
			checked <- err
		}()
	}
	for range many - jwt.MaxWaiting {
		require.ErrorIs(t, <-checked, access.ErrUnavailable, "too many wait")
	}
	require.Equal(t, jwt.MaxWaiting, b.Waiting())
	open()
	for range jwt.MaxWaiting {
		require.ErrorIs(t, <-checked, access.ErrInvalid, "the provider does not know the key")
	}
}

func TestAProviderThatHangsHoldsUpAnUnknownKeyOnlyForAWhile(t *testing.T) {
	hangs := &gated{}
	b := setupWith(t, false, &http.Client{Transport: hangs}, 10*time.Millisecond)
	hangs.gate.Lock()
	defer hangs.gate.Unlock()
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	_, err = b.Check(t.Context(), oidctest.Sign(t, jose.EdDSA, "two", edwards, b.good(nil)))
	require.ErrorIs(t, err, access.ErrUnavailable)
	require.Zero(t, b.Waiting())
}

func TestAProviderThatIsAwayIsToldAndForgiven(t *testing.T) {
	b := setup(t, true)
	token := b.token(t, nil)
	_, err := b.Check(t.Context(), token)
	require.ErrorIs(t, err, access.ErrUnavailable)
	require.Error(t, b.Verifier.Ready())
	b.SetAway(false)
	require.Eventually(t, func() bool { return b.Verifier.Ready() == nil }, mnemetest.Patience, 10*time.Millisecond)
	_, err = b.Check(t.Context(), token)
	require.NoError(t, err)
	b.SetAway(true)
	_, err = b.Check(t.Context(), b.token(t, map[string]any{"jti": "another"}))
	require.NoError(t, err, "the keys that were fetched stay in use")
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	_, err = b.Check(t.Context(), oidctest.Sign(t, jose.RS256, "two", stranger, b.good(nil)))
	require.ErrorIs(t, err, access.ErrUnavailable)
	require.ErrorContains(t, b.Verifier.Ready(), "those from before are in use")
}

// answers is a transport that answers each address with a document, or with a redirect.
type answers map[string]string

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	document, ok := a[r.URL.String()]
	if to, redirects := strings.CutPrefix(document, "→ "); redirects {
		http.Redirect(recorder, r, to, http.StatusTemporaryRedirect)
	} else if ok {
		_, _ = recorder.WriteString(document)
	} else {
		http.NotFound(recorder, r)
	}
	return recorder.Result(), nil
}

func TestKeysAreFetchedFromNoOtherServerAndOnlyEncrypted(t *testing.T) {
	t.Parallel()
	claims := filepath.Join(t.TempDir(), "claims.yaml")
	require.NoError(t, os.WriteFile(claims, []byte(rules), 0o600))
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "one"}}})
	require.NoError(t, err)
	const issuer = "https://id.example.org"
	found := func(keys, token string) string {
		return `{"issuer": "` + issuer + `", "jwks_uri": "` + keys + `", "token_endpoint": "` + token + `"}`
	}
	for name, c := range map[string]struct {
		answers answers
		says    string
	}{
		"as it should be":           {answers{issuer + "/.well-known/openid-configuration": found("https://keys.example.org/k", issuer+"/token"), "https://keys.example.org/k": string(set)}, ""},
		"redirected within":         {answers{issuer + "/.well-known/openid-configuration": "→ /oidc", issuer + "/oidc": found(issuer+"/k", issuer+"/token"), issuer + "/k": string(set)}, ""},
		"redirected elsewhere":      {answers{issuer + "/.well-known/openid-configuration": found(issuer+"/k", issuer+"/token"), issuer + "/k": "→ http://169.254.169.254/latest", "http://169.254.169.254/latest": string(set)}, "redirects to another server, http://169.254.169.254"},
		"keys in plain text":        {answers{issuer + "/.well-known/openid-configuration": found("http://id.example.org/k", issuer+"/token"), "http://id.example.org/k": string(set)}, "not encrypted"},
		"the secret in plain text":  {answers{issuer + "/.well-known/openid-configuration": found(issuer+"/k", "HTTP://id.example.org/token"), issuer + "/k": string(set)}, "not encrypted"},
		"redirected without an end": {answers{issuer + "/.well-known/openid-configuration": "→ /.well-known/openid-configuration"}, "in a loop"},
	} {
		v, err := jwt.New(jwt.Config{Issuer: issuer, Audience: "mneme", Algorithms: []string{"ES256"}, Claims: claims, Now: time.Now, Client: &http.Client{Transport: c.answers}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { v.Run(ctx, slog.New(slog.DiscardHandler)) })
		if c.says == "" {
			assert.Eventually(t, func() bool { return v.Ready() == nil }, mnemetest.Patience, time.Millisecond, name)
		} else {
			assert.Eventually(t, func() bool { err := v.Ready(); return err != nil && strings.Contains(err.Error(), c.says) }, mnemetest.Patience, time.Millisecond, name)
		}
		cancel()
		run.Wait()
	}
}

func TestATenantThatIsTakenOutOfTheRulesLosesItsTokens(t *testing.T) {
	b := setup(t, false)
	token := b.token(t, nil)
	grant, err := b.Check(t.Context(), token)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(b.claims, []byte("rules: [{claims: {org: b}, tenant: team-b, role: read}]\n"), 0o600))
	<-grant.Ended[0].Done()
	_, err = b.Check(t.Context(), token)
	require.ErrorIs(t, err, access.ErrNothing)
}

func TestAKeyThatTheProviderWithdrawsEndsItsTokens(t *testing.T) {
	b := setup(t, false)
	_, next, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	old := b.token(t, nil)
	grant, err := b.Check(t.Context(), old)
	require.NoError(t, err)
	open, end := grant.During(t.Context(), func() {})
	defer end()
	b.Publish("two", next)
	good := oidctest.Sign(t, jose.EdDSA, "two", next, b.good(nil))
	other, err := b.Check(t.Context(), good)
	require.NoError(t, err)
	stays, endOther := other.During(t.Context(), func() {})
	defer endOther()
	_, err = b.Check(t.Context(), old)
	require.NoError(t, err, "its key is still published")
	b.Withdraw("one")
	b.move(time.Minute) // another unknown key may cause a fetch
	_, err = b.Check(t.Context(), oidctest.Sign(t, jose.EdDSA, "three", next, b.good(nil)))
	require.ErrorIs(t, err, access.ErrInvalid)
	_, err = b.Check(t.Context(), old)
	require.ErrorIs(t, err, access.ErrInvalid)
	select {
	case <-open.Done(): // a request in progress
		require.ErrorIs(t, context.Cause(open), access.ErrWithdrawn)
	case <-time.After(mnemetest.Patience):
		t.Fatal("what the token opened goes on")
	}
	require.NoError(t, stays.Err())
	again, err := b.Check(t.Context(), good)
	require.NoError(t, err)
	require.Same(t, other, again, "a token of another key is not checked again")
}

func TestOnePersonIsDeniedWhatTheirGroupMay(t *testing.T) {
	b := setup(t, false)
	left, stays := b.token(t, map[string]any{"sub": "left"}), b.token(t, nil)
	grant, err := b.Check(t.Context(), left)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(b.claims, []byte("rules:\n  - claims: {sub: left}\n    deny: true\n  - claims: {org: a}\n    tenant: team-a\n    role: write\n"), 0o600))
	<-grant.Ended[0].Done()
	_, err = b.Check(t.Context(), left)
	require.ErrorIs(t, err, access.ErrNothing)
	require.Contains(t, <-b.log, "denies")
	_, err = b.Check(t.Context(), stays)
	require.NoError(t, err)
}

// Keycloak puts roles into realm_access.roles; Auth0 demands names such as https://example.org/roles.
func TestARuleNamesAClaimWithinAnother(t *testing.T) {
	b := setup(t, false)
	first, err := b.Check(t.Context(), b.token(t, nil))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(b.claims, []byte(`rules:
  - claims: {realm_access.roles: lead}
    tenant: team-a
    role: operate
  - claims: {"https://example.org/roles": lead}
    tenant: team-b
    role: operate
  - claims: {resource_access.shop.web.roles: lead}
    tenant: team-c
    role: operate
`), 0o600))
	<-first.Ended[0].Done()
	for _, c := range []struct {
		claims map[string]any
		tenant string
	}{
		{map[string]any{"realm_access": map[string]any{"roles": []string{"all", "lead"}}}, "team-a"},
		{map[string]any{"realm_access.roles": "lead"}, "team-a"},
		{map[string]any{"https://example.org/roles": []string{"lead"}}, "team-b"},
		{map[string]any{"resource_access": map[string]any{"shop": map[string]any{"roles": "lead"}, "shop.web": map[string]any{"roles": []string{"lead"}}}}, "team-c"},
		{map[string]any{"resource_access": map[string]any{"shop": map[string]any{"roles": "lead"}}}, ""},
		{map[string]any{"realm_access": "lead", "roles": "lead"}, ""},
		{map[string]any{"realm_access": map[string]any{"other": map[string]any{"roles": "lead"}}}, ""},
	} {
		grant, err := b.Check(t.Context(), b.token(t, c.claims))
		if c.tenant == "" {
			require.ErrorIs(t, err, access.ErrNothing, "%v", c.claims)
			continue
		}
		require.NoError(t, err, "%v", c.claims)
		require.Equal(t, c.tenant, grant.Tenant)
	}
}

func TestRulesThatSayTooMuchOrTooLittleAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claims.yaml")
	for text, says := range map[string]string{
		"": "no rules", "rules: []": "no rules",
		"rules: [{tenant: a, role: read}]":                                    "match every token",
		"rules: [{deny: true}]":                                               "match every token",
		"rules: [{claims: {a: b}, deny: true, tenant: a}]":                    "grants nothing",
		"rules: [{claims: {a: b}, role: read}]":                               "rule 1: the tenant is missing",
		"rules: [{claims: {a: b}, tenant: a, role: god}]":                     `"god" is not a role`,
		"rules: [{claims: {a: b}, tenant: a, role: read, on: sundays}]":       `the field "on" is unknown`,
		"rules: [{claims: {a: b}, tenant: a, role: write, project: shop}]":    "can only read",
		"rules: [{claims: {a: b}, tenant: a, all_tenants: true, role: read}]": "not both",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := jwt.New(jwt.Config{Claims: path, Algorithms: []string{"RS256"}, Now: time.Now})
		require.ErrorContains(t, err, says, text)
	}
	_, err := jwt.New(jwt.Config{Claims: path, Algorithms: []string{"HS256"}, Now: time.Now})
	require.ErrorContains(t, err, "HS256")
}

// BenchmarkCheck measures a token that was checked before, and one that was not.
func BenchmarkCheck(b *testing.B) {
	provider := oidctest.New(b)
	claims := filepath.Join(b.TempDir(), "claims.yaml")
	require.NoError(b, os.WriteFile(claims, []byte(rules), 0o600))
	v, err := jwt.New(jwt.Config{Issuer: provider.URL, Audience: "mneme", Algorithms: []string{"RS256"}, Claims: claims, Now: time.Now})
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	var run sync.WaitGroup
	run.Go(func() { v.Run(ctx, slog.New(slog.DiscardHandler)) })
	defer func() { cancel(); run.Wait() }()
	require.Eventually(b, func() bool { return v.Ready() == nil }, mnemetest.Patience, time.Millisecond)
	cached := oidctest.Sign(b, jose.RS256, "one", provider.Key, provider.Claims("mneme", nil))
	b.Run("cached", func(b *testing.B) {
		for b.Loop() {
			if _, err := v.Check(ctx, cached); err != nil {
				b.Fatal(err)
			}
		}
	})
	wrong := cached[:len(cached)-8] + "AAAAAAAA"
	b.Run("wrong signature", func(b *testing.B) {
		for b.Loop() {
			if _, err := v.Check(ctx, wrong); err == nil {
				b.Fatal("accepted")
			}
		}
	})
}

// The sender is not told why, so the log must say it: a wrong audience is the most common mistake of a first setup.
func TestTheLogSaysWhyATokenIsRefusedButIsNotFlooded(t *testing.T) {
	b := setup(t, false)
	_, err := b.Check(t.Context(), b.token(t, map[string]any{"aud": "another-service"}))
	require.ErrorIs(t, err, access.ErrInvalid)
	require.Contains(t, <-b.log, "another-service")
	began := time.Now()
	for range 100 {
		_, err := b.Check(t.Context(), "junk")
		require.ErrorIs(t, err, access.ErrInvalid)
	}
	if time.Since(began) < 5*time.Second { // longer on a machine that stood still
		require.Empty(t, b.log)
	}
}

func TestTheLogSaysWhichClaimsATokenHasThatNoRuleKnows(t *testing.T) {
	b := setup(t, false)
	_, err := b.Check(t.Context(), b.token(t, map[string]any{"org": nil, "roles": "nobody"}))
	require.ErrorIs(t, err, access.ErrNothing)
	line := <-b.log
	require.Contains(t, line, "roles")
	require.Contains(t, line, "u1", "who it was")
	require.NotContains(t, line, "nobody")
}
