package access

import (
	"context"
	"net/http"
	"strings"
)

// Verifier checks the tokens of an identity provider.
type Verifier interface {
	// Check returns what a token grants. It returns [ErrInvalid], [ErrNothing] or [ErrUnavailable].
	Check(ctx context.Context, token string) (*Grant, error)
	// Ready returns why some tokens, or all, can't be checked now, or nil.
	Ready() error
}

// Gate finds out who sends a request. At least one of its parts is set.
type Gate struct {
	Tokens *Tokens
	JWT    Verifier
	Issuer string       // the identity provider whose tokens JWT checks
	SignIn http.Handler // serves [SignInPath] and [CallbackPath]; nil if people can't sign in at the provider
}

// The paths at which a browser begins to sign in at the identity provider, and to which it comes back.
const (
	SignInPath   = "/signin"
	CallbackPath = "/signin/callback"
)

// maxToken bounds a bearer token; those of identity providers have a few kilobytes.
const maxToken = 16 << 10

// Check returns what the sender of a request may do: by its header, or else by its browser's session. Its errors are
// those of the package.
func (g *Gate) Check(r *http.Request) (*Grant, error) {
	headers := r.Header.Values("Authorization")
	if len(headers) == 0 {
		token, err := session(r)
		switch {
		case err != nil:
			return nil, err
		case token == "":
			return nil, ErrNoToken
		}
		return g.CheckToken(r.Context(), token)
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if len(headers) > 1 || !strings.EqualFold(scheme, "Bearer") {
		return nil, ErrInvalid
	}
	return g.CheckToken(r.Context(), strings.Trim(token, " "))
}

// CheckToken returns what a token grants. Its errors are those of the package.
func (g *Gate) CheckToken(ctx context.Context, token string) (*Grant, error) {
	if token == "" || len(token) > maxToken {
		return nil, ErrInvalid
	}
	if strings.HasPrefix(token, prefix) {
		if g.Tokens == nil {
			return nil, ErrInvalid
		}
		return g.Tokens.Check(ctx, token)
	}
	if g.JWT == nil {
		return nil, ErrInvalid
	}
	return g.JWT.Check(ctx, token)
}

// Ready returns why some tokens can't be checked now, or nil.
func (g *Gate) Ready() error {
	if g.JWT == nil {
		return nil
	}
	return g.JWT.Ready()
}
