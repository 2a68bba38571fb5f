package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"

	"mneme.dev/mneme/internal/access"
)

const sessionPath = "/session"

// maxSessionBody bounds the body with which a browser signs in.
const maxSessionBody = 32 << 10

// sessionState tells a browser whether it is signed in, and how it can sign in.
type sessionState struct {
	Needed   bool   `json:"needed"`             // the server requires a token
	SignedIn bool   `json:"signed_in"`          // the browser has sent one that is valid
	Ended    bool   `json:"ended"`              // it has sent one that has expired or was revoked
	Tokens   bool   `json:"tokens"`             // tokens that mneme tokens created are accepted
	Provider string `json:"provider,omitempty"` // where people can sign in, at access.SignInPath
	Problem  string `json:"problem,omitempty"`  // why a token that may be valid can't be accepted now
}

// serveSessions serves what the inspector page needs to sign people in. Programs do not use it: they send their token
// with each request.
func (a *api) serveSessions(mux *http.ServeMux) {
	public(mux, sessionPath, func(w http.ResponseWriter, r *http.Request) {
		state := sessionState{Needed: a.Gate != nil}
		if a.Gate != nil {
			_, err := a.Gate.Check(r)
			state.SignedIn, state.Tokens = err == nil, a.Gate.Tokens != nil
			state.Ended = errors.Is(err, access.ErrInvalid) && r.Header.Get("Authorization") == "" // what a cookie holds was valid once
			if errors.Is(err, access.ErrUnavailable) || errors.Is(err, access.ErrNothing) {
				state.Problem = err.Error()
			}
			if a.Gate.SignIn != nil {
				state.Provider = a.Gate.Issuer
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", cacheNothing)
		_ = json.NewEncoder(w).Encode(state)
	})
	mux.HandleFunc("POST "+sessionPath, a.signIn)
	mux.HandleFunc("DELETE "+sessionPath, func(w http.ResponseWriter, r *http.Request) {
		access.Forget(w, r)
		w.WriteHeader(http.StatusNoContent)
	})
	if a.Gate != nil && a.Gate.SignIn != nil {
		public(mux, access.SignInPath, a.Gate.SignIn.ServeHTTP)
		public(mux, access.CallbackPath, a.Gate.SignIn.ServeHTTP)
	}
}

// signIn gives a browser a session with the token in the body.
func (a *api) signIn(w http.ResponseWriter, r *http.Request) {
	var body struct{ Token string }
	switch err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxSessionBody)).Decode(&body); {
	case a.Gate == nil:
		writeProblem(w, http.StatusConflict, "this server requires no token, so there is nothing to sign in to")
		return
	case err != nil:
		writeProblem(w, http.StatusBadRequest, `the body must be JSON: {"token": "mneme_…"}`)
		return
	}
	if _, err := a.Gate.CheckToken(r.Context(), body.Token); err != nil {
		a.refuse(w, r, err)
		return
	}
	if err := access.Remember(w, r, body.Token); err != nil {
		writeProblem(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
