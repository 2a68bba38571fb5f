// Package signin lets people sign in with their browser at the identity provider: the authorization code flow of
// OpenID Connect Core 1.0, section 3.1, with PKCE (RFC 7636).
//
// No process keeps anything about a sign-in, so the browser may come back to another replica than the one that it left.
// docs/adr/0030-signing-in-with-a-browser.md says why it is so.
package signin

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/access/jwt"
)

const (
	exchangeWithin = 10 * time.Second
	patience       = 10 * time.Minute // how long a person may take at the provider
	maxView        = 2000             // bytes of the view's parameters
)

// Config says as which client mneme signs people in.
type Config struct {
	Verifier *jwt.Verifier // its ClientID is the client
	Secret   string        // "" for a public client
	Scopes   []string
	Logger   *slog.Logger
}

// Handler serves [access.SignInPath] and [access.CallbackPath].
type Handler struct{ Config }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	step := h.begin
	if r.URL.Path == access.CallbackPath {
		step = h.finish
	}
	if err := step(w, r); err != nil {
		h.Logger.Warn("a sign-in at the identity provider failed", "error", err)
		show(w, err)
	}
}

// pending is what a sign-in needs to know when the browser returns.
type pending struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	View     string `json:"q"` // the parameters of the view that the person came from
}

const pendingCookie = "signin"

// problem is an error for the person who signs in.
type problem struct {
	status int
	text   string
	cause  error
}

func (p *problem) Error() string {
	if p.cause == nil {
		return p.text
	}
	return p.text + ": " + p.cause.Error()
}

// begin sends the browser to the provider. The parameter view says where it goes afterwards.
func (h *Handler) begin(w http.ResponseWriter, r *http.Request) error {
	client, err := h.client(r)
	if err != nil {
		return err
	}
	p := pending{State: oauth2.GenerateVerifier(), Nonce: oauth2.GenerateVerifier(), Verifier: oauth2.GenerateVerifier()}
	if view, err := url.ParseQuery(r.URL.Query().Get("view")); err == nil && len(view.Encode()) <= maxView {
		p.View = view.Encode()
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	// Lax, because the browser comes back by a link of the provider's site.
	c := access.NewCookie(r, pendingCookie, base64.RawURLEncoding.EncodeToString(raw), http.SameSiteLaxMode)
	c.MaxAge = int(patience.Seconds())
	http.SetCookie(w, c)
	http.Redirect(w, r, client.AuthCodeURL(p.State, oauth2.S256ChallengeOption(p.Verifier), oauth2.SetAuthURLParam("nonce", p.Nonce)), http.StatusFound)
	return nil
}

// finish takes the code with which the provider sends the browser back, and gives the browser a session.
func (h *Handler) finish(w http.ResponseWriter, r *http.Request) error {
	c := access.NewCookie(r, pendingCookie, "", http.SameSiteLaxMode)
	c.MaxAge = -1
	http.SetCookie(w, c) // a code works once
	var p pending
	raw, err := base64.RawURLEncoding.DecodeString(access.CookieOf(r, pendingCookie))
	given := r.URL.Query()
	if err != nil || json.Unmarshal(raw, &p) != nil || p.State == "" || subtle.ConstantTimeCompare([]byte(p.State), []byte(given.Get("state"))) != 1 {
		return &problem{status: http.StatusBadRequest, text: fmt.Sprintf("this sign-in began in another browser or window, or more than %.0f minutes ago", patience.Minutes())}
	}
	if code := given.Get("error"); code != "" {
		cause := fmt.Errorf("%.300q", given.Get("error_description"))
		return &problem{http.StatusForbidden, fmt.Sprintf("the identity provider did not sign you in: %.100q", code), cause}
	}
	token, err := h.exchange(r, given.Get("code"), p)
	if err != nil {
		return err
	}
	if err := access.Remember(w, r, token); err != nil {
		return &problem{status: http.StatusBadGateway, text: err.Error()}
	}
	http.Redirect(w, r, (&url.URL{Path: "/", RawQuery: p.View}).String(), http.StatusSeeOther)
	return nil
}

// exchange gets the ID token for a code, and checks that it grants something.
func (h *Handler) exchange(r *http.Request, code string, p pending) (token string, err error) {
	client, err := h.client(r)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), oauth2.HTTPClient, h.Verifier.Client), exchangeWithin)
	defer cancel()
	answer, err := client.Exchange(ctx, code, oauth2.VerifierOption(p.Verifier))
	if err != nil {
		return "", &problem{http.StatusBadGateway, "the identity provider did not accept the sign-in; the log of the server says why", err}
	}
	token, ok := answer.Extra("id_token").(string)
	if !ok {
		return "", &problem{status: http.StatusBadGateway, text: "the identity provider sent no ID token: MNEME_OIDC_SCOPES needs the scope openid"}
	}
	_, err = h.Verifier.Check(ctx, token)
	switch {
	case errors.Is(err, access.ErrNothing):
		return "", &problem{status: http.StatusForbidden, text: "the identity provider knows you, but no rule of the server's claims file gives you any right: ask whoever runs this server"}
	case errors.Is(err, access.ErrUnavailable):
		return "", &problem{http.StatusServiceUnavailable, err.Error(), nil}
	case err != nil:
		return "", &problem{http.StatusBadGateway, "the ID token of the identity provider is not valid here: its client, its signature algorithm or its clock does not fit the server's settings", h.Verifier.Why(ctx, token)}
	case nonceOf(token) != p.Nonce:
		return "", &problem{status: http.StatusBadGateway, text: "the identity provider answered another sign-in than yours"}
	}
	return token, nil
}

// client returns the client for a request, which says under which address the browser knows this server.
func (h *Handler) client(r *http.Request) (*oauth2.Config, error) {
	provider, err := h.Verifier.Provider()
	if err != nil {
		return nil, &problem{http.StatusServiceUnavailable, "the identity provider does not answer now: try again", err}
	}
	if provider.Authorization == "" || provider.Token == "" {
		return nil, &problem{status: http.StatusBadGateway, text: "the identity provider names no endpoints at which people sign in"}
	}
	// A code works once, so the style must not be found out by trying.
	style := oauth2.AuthStyleInHeader
	if h.Secret == "" || provider.Methods != nil && !slices.Contains(provider.Methods, "client_secret_basic") {
		style = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{
		ClientID: h.Verifier.ClientID, ClientSecret: h.Secret, Scopes: h.Scopes, RedirectURL: access.BaseOf(r) + access.CallbackPath,
		Endpoint: oauth2.Endpoint{AuthURL: provider.Authorization, TokenURL: provider.Token, AuthStyle: style},
	}, nil
}

// nonceOf returns the nonce of an ID token that was checked.
func nonceOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	var claims struct {
		Nonce string `json:"nonce"`
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(raw, &claims) != nil {
		return ""
	}
	return claims.Nonce
}

// show tells the person what went wrong.
func show(w http.ResponseWriter, err error) {
	shown := &problem{status: http.StatusInternalServerError, text: "this is a mistake in mneme; its log has the details"}
	errors.As(err, &shown)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(shown.status)
	_, _ = fmt.Fprintf(w, `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>mneme: not signed in</title>
<link rel="stylesheet" href="/page/style.css">
<main class="signin">
<h1>You are not signed in</h1>
<p>%s.</p>
<p><a href="/">Back to the page</a></p>
</main>
`, html.EscapeString(strings.ToUpper(shown.text[:1])+shown.text[1:]))
}
