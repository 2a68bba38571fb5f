package signin_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/access/jwt"
	"mneme.dev/mneme/internal/access/signin"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/oidctest"
)

const rules = "rules: [{claims: {org: a}, tenant: team-a, role: write}]\n"

// site is a server that people sign in to, and the browser of one of them.
type site struct {
	*testing.T
	provider *oidctest.Provider
	url      string
	browser  *http.Client
	logged   *mnemetest.Log
}

func newSite(t *testing.T, start func(http.Handler) *httptest.Server) *site {
	t.Helper()
	t.Parallel()
	s := &site{T: t, provider: oidctest.New(t), logged: &mnemetest.Log{}}
	claims := filepath.Join(t.TempDir(), "claims.yaml")
	require.NoError(t, os.WriteFile(claims, []byte(rules), 0o600))
	verifier, err := jwt.New(jwt.Config{Issuer: s.provider.URL, ClientID: s.provider.Client.ID, Algorithms: []string{"RS256"}, Claims: claims, Now: time.Now})
	require.NoError(t, err)
	logger := slog.New(slog.NewTextHandler(s.logged, nil))
	var run sync.WaitGroup
	run.Go(func() { verifier.Run(t.Context(), logger) })
	t.Cleanup(run.Wait)
	require.Eventually(t, func() bool { return verifier.Ready() == nil }, mnemetest.Patience, time.Millisecond)
	gate := &access.Gate{JWT: verifier, SignIn: &signin.Handler{Config: signin.Config{
		Verifier: verifier, Secret: s.provider.Client.Secret, Scopes: []string{"openid"}, Logger: logger,
	}}}
	mux := http.NewServeMux()
	mux.Handle(access.SignInPath, gate.SignIn)
	mux.Handle(access.CallbackPath, gate.SignIn)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		grant, err := gate.Check(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, grant.Subject+" of "+grant.Tenant+" at "+r.URL.RawQuery)
	})
	server := start(mux)
	t.Cleanup(server.Close)
	s.url, s.browser = server.URL, server.Client()
	s.browser.Jar, err = cookiejar.New(nil)
	require.NoError(t, err)
	return s
}

func (s *site) get(address string) (status int, body string) {
	s.Helper()
	response, err := s.browser.Get(address)
	require.NoError(s, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(s, err)
	return response.StatusCode, string(text)
}

var link = regexp.MustCompile(`href="(/agree\?[^"]*)"`)

// signIn goes to the provider and enters a name. It returns the answer to which the browser comes back.
func (s *site) signIn(view string) (status int, body string) {
	s.Helper()
	status, page := s.get(s.url + access.SignInPath + "?view=" + url.QueryEscape(view))
	require.Equal(s, http.StatusOK, status, "%s", page)
	found := link.FindStringSubmatch(page)
	require.NotNil(s, found, "%s", page)
	return s.get(s.provider.URL + strings.ReplaceAll(found[1], "&amp;", "&"))
}

func TestAPersonSignsInAndComesBackToTheView(t *testing.T) {
	for name, start := range map[string]func(http.Handler) *httptest.Server{"http": httptest.NewServer, "https": httptest.NewTLSServer} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, start)
			status, _ := s.get(s.url + "/")
			require.Equal(t, http.StatusUnauthorized, status)
			status, body := s.signIn("c=one&view=context")
			require.Equal(t, http.StatusOK, status)
			require.Equal(t, "oidc:u1 of team-a at c=one&view=context", body)
			status, body = s.get(s.url + "/")
			require.Equal(t, http.StatusOK, status, "%s", body)
		})
	}
}

func TestTheCookieOfASessionIsOutOfReachOfScriptsAndOtherSites(t *testing.T) {
	for name, start := range map[string]func(http.Handler) *httptest.Server{"http": httptest.NewServer, "https": httptest.NewTLSServer} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, start)
			var set []*http.Cookie
			s.browser.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
				set = append(set, r.Response.Cookies()...)
				return nil
			}
			s.signIn("")
			require.Len(t, set, 3, "what the sign-in must know, its end, and the session")
			session := set[2]
			require.True(t, session.HttpOnly)
			require.Equal(t, http.SameSiteStrictMode, session.SameSite)
			require.Equal(t, name == "https", session.Secure)
			require.Equal(t, name == "https", strings.HasPrefix(session.Name, "__Host-"))
			require.Zero(t, session.MaxAge, "it ends with the browser")
			require.Empty(t, session.Domain)
			require.Equal(t, http.SameSiteLaxMode, set[0].SameSite)
			require.True(t, set[0].HttpOnly)
		})
	}
}

func TestAPageOfAnotherOriginCannotUseASession(t *testing.T) {
	s := newSite(t, httptest.NewServer)
	s.signIn("")
	for site, want := range map[string]int{"same-origin": 200, "none": 200, "": 200, "same-site": 401, "cross-site": 401} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/", nil)
		require.NoError(t, err)
		if site != "" {
			request.Header.Set("Sec-Fetch-Site", site)
		}
		response, err := s.browser.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, want, response.StatusCode, site)
	}
}

func TestASignInThatFailsSaysWhy(t *testing.T) {
	s := newSite(t, httptest.NewServer)
	for says, claims := range map[string]map[string]any{
		"no rule of the server&#39;s claims file": {"org": "b"},
		"answered another sign-in":                {"nonce": "of another"},
		"its client":                              {"aud": "another client"},
		"too large for a cookie":                  {"groups": strings.Repeat("group ", 1000)},
	} {
		s.provider.SetClaims(claims)
		status, body := s.signIn("")
		require.GreaterOrEqual(t, status, 400)
		require.Contains(t, body, says)
		status, _ = s.get(s.url + "/")
		require.Equal(t, http.StatusUnauthorized, status, "no session")
	}
	s.provider.SetClaims(nil)
	status, body := s.get(s.url + access.CallbackPath + "?code=x&state=y")
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, body, "began in another browser or window, or more than 10 minutes ago")

	_, page := s.get(s.url + access.SignInPath)
	state := regexp.MustCompile(`state=([^&"]+)`).FindStringSubmatch(page)[1]
	status, body = s.get(s.url + access.CallbackPath + "?error=access_denied%3Cscript%3E&state=" + state)
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, body, "access_denied&lt;script&gt;")
	require.Contains(t, s.logged.String(), "a sign-in at the identity provider failed")
}

func TestACodeAndAStateWorkOnce(t *testing.T) {
	s := newSite(t, httptest.NewServer)
	var back string
	s.browser.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), s.url+access.CallbackPath) {
			back = r.URL.String()
		}
		return nil
	}
	status, _ := s.signIn("")
	require.Equal(t, http.StatusOK, status)
	status, _ = s.get(back)
	require.Equal(t, http.StatusBadRequest, status, "the browser has no sign-in any more")
	_, _ = s.get(s.url + access.SignInPath) // another one
	status, _ = s.get(back)
	require.Equal(t, http.StatusBadRequest, status, "it has another state")
}

func TestAViewCannotSendAPersonElsewhere(t *testing.T) {
	s := newSite(t, httptest.NewServer)
	for _, view := range []string{"//evil.example", "https://evil.example/", "/\\evil.example", "x\r\nLocation: https://evil.example"} {
		var last *url.URL
		s.browser.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
			last = r.URL
			return nil
		}
		status, _ := s.signIn(view)
		require.Equal(t, http.StatusOK, status, view)
		require.Equal(t, s.url, last.Scheme+"://"+last.Host, view)
		require.Equal(t, "/", last.Path, view)
	}
	status, body := s.signIn(strings.Repeat("v", 5000))
	require.Equal(t, http.StatusOK, status)
	require.True(t, strings.HasSuffix(body, " at "), "a view that is too long for a cookie is forgotten")
}

func TestAProviderThatIsAwayIsTold(t *testing.T) {
	s := newSite(t, httptest.NewServer)
	s.provider.SetAway(true)
	status, body := s.signIn("")
	require.Equal(t, http.StatusBadGateway, status)
	require.Contains(t, body, "did not accept the sign-in")
}
