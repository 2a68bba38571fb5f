// Package access decides who may do what over HTTP: it makes and checks tokens, and holds
// the one table of what each route needs.
//
//	Authorization: Bearer mneme_…   ──▶ [Tokens]      ─┐
//	Authorization: Bearer eyJ… (JWT) ─▶ package jwt   ─┴─▶ [*Grant] ──▶ [Routes] ──▶ allowed, or 403
//
// A [Grant] says what its bearer may do: a tenant (or all of them), a role, and perhaps one
// project. Nothing that a request says widens it.
//
// # The returned error is the contract
//
//	nil             the bearer is who the grant says
//	ErrNoToken      the request has no bearer token: 401
//	ErrInvalid      the token is unknown, revoked, expired, or was never one: 401
//	ErrNothing      the identity provider vouches for the bearer, but no rule grants anything: 403
//	ErrUnavailable  the identity provider or the log's server has to be asked, and does not answer: 503, try again
//	ErrTooMany      too many requests bring unknown tokens: 429, try again; the server itself does not fail
package access
