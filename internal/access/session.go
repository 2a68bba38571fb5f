package access

import (
	"errors"
	"net"
	"net/http"
	"strings"
)

// maxCookie is what browsers keep of a cookie, name and value.
const maxCookie = 4096

// ErrTooLarge: the token does not fit into a cookie.
var ErrTooLarge = errors.New("the token is too large for a cookie, which holds 4,096 bytes: let the identity provider send fewer claims, such as groups, to this client")

// BaseOf returns the URL under which a client reached this server. Behind a proxy that speaks TLS, the proxy says so. The
// caller has checked the host.
func BaseOf(r *http.Request) string {
	spoken, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",") // of several proxies, the first is the client's
	if r.TLS != nil || strings.EqualFold(strings.TrimSpace(spoken), "https") {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// NewCookie returns a cookie for the browser that sent a request. No script can read it. Over TLS no other domain can
// replace it; otherwise its name has the port, because browsers share cookies between the ports of a host.
func NewCookie(r *http.Request, name, value string, site http.SameSite) *http.Cookie {
	c := &http.Cookie{Name: cookieName(r, name), Value: value, Path: "/", HttpOnly: true, SameSite: site}
	c.Secure = overTLS(r)
	return c
}

// CookieOf returns the value of a cookie that [NewCookie] made, "" if the browser sent none.
func CookieOf(r *http.Request, name string) string {
	c, err := r.Cookie(cookieName(r, name))
	if err != nil {
		return ""
	}
	return c.Value
}

func overTLS(r *http.Request) bool { return BaseOf(r)[len("http")] == 's' }

func cookieName(r *http.Request, name string) string {
	if overTLS(r) {
		return "__Host-mneme_" + name
	}
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "80"
	}
	return "mneme_" + name + "_" + port
}

const sessionCookie = "session"

// Remember gives a browser a session: it sends the token with each request until it is closed. It returns [ErrTooLarge].
func Remember(w http.ResponseWriter, r *http.Request, token string) error {
	c := NewCookie(r, sessionCookie, token, http.SameSiteStrictMode)
	if len(c.Name)+len(c.Value) > maxCookie {
		return ErrTooLarge
	}
	http.SetCookie(w, c)
	return nil
}

// Forget ends the session of a browser.
func Forget(w http.ResponseWriter, r *http.Request) {
	c := NewCookie(r, sessionCookie, "", http.SameSiteStrictMode)
	c.MaxAge = -1
	http.SetCookie(w, c)
}

// session returns the token of a browser's session, "" if there is none. It returns [ErrOtherOrigin] if the browser says
// that a page of another origin sent the request: SameSite does not know ports and sibling domains.
func session(r *http.Request) (string, error) {
	token := CookieOf(r, sessionCookie)
	if token == "" {
		return "", nil
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return token, nil
	}
	return "", ErrOtherOrigin
}
