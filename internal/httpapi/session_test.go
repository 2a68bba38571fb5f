package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/mnemetest"
)

// session asks for the session state of a browser with a cookie.
func (g *guarded) session(cookie string) (state struct {
	Needed   bool
	SignedIn bool `json:"signed_in"`
	Ended    bool
	Tokens   bool
	Provider string
}) {
	g.t.Helper()
	response, body := g.send(http.MethodGet, "/session", map[string]string{"Cookie": cookie}, nil)
	require.Equal(g.t, http.StatusOK, response.StatusCode)
	require.NoError(g.t, json.Unmarshal(body, &state))
	return state
}

func TestABrowserSignsInWithATokenAndOutAgain(t *testing.T) {
	g := setupGuarded(t)
	token, hash := g.token(access.Rights{Tenant: "team-a", Role: access.Read})
	state := g.session("")
	require.True(t, state.Needed)
	require.True(t, state.Tokens)
	require.False(t, state.SignedIn)
	require.False(t, state.Ended, "nobody has signed in yet")
	require.Empty(t, state.Provider)

	same := map[string]string{"Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"}
	response, body := g.send(http.MethodPost, "/session", same, []byte(`{"token": "`+token+`"}`))
	require.Equal(t, http.StatusNoContent, response.StatusCode, "%s", body)
	set := response.Cookies()
	require.Len(t, set, 1)
	require.True(t, set[0].HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, set[0].SameSite)
	require.Zero(t, set[0].MaxAge, "it ends with the browser")
	cookie := set[0].Name + "=" + set[0].Value
	require.True(t, g.session(cookie).SignedIn)

	get := func(site string) int {
		response, _ := g.send(http.MethodGet, "/v1/conversations", map[string]string{"Cookie": cookie, "Sec-Fetch-Site": site}, nil)
		return response.StatusCode
	}
	require.Equal(t, http.StatusOK, get("same-origin"))
	require.Equal(t, http.StatusForbidden, get("same-site"), "a page on another port")
	require.Equal(t, http.StatusForbidden, get("cross-site"))
	response, body = g.send(http.MethodGet, "/v1/access", with(bearer("nonsense"), "Cookie", cookie), nil)
	require.Equal(t, http.StatusUnauthorized, response.StatusCode, "a header decides alone: %s", body)

	response, _ = g.send(http.MethodDelete, "/session", map[string]string{"Cookie": cookie, "Sec-Fetch-Site": "same-origin"}, nil)
	require.Equal(t, http.StatusNoContent, response.StatusCode)
	require.Negative(t, response.Cookies()[0].MaxAge)

	require.NoError(t, g.file.Remove(t.Context(), hash))
	require.Eventually(t, func() bool { return !g.session(cookie).SignedIn }, mnemetest.Patience, 20*time.Millisecond, "a revoked token ends the session")
	require.True(t, g.session(cookie).Ended)
	response, body = g.send(http.MethodGet, "/session", with(bearer("nonsense"), "Cookie", cookie), nil)
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Contains(t, string(body), `"ended":false`, "a header decides alone")
}

func TestASignInThatIsWrongIsRefused(t *testing.T) {
	g := setupGuarded(t)
	token, _ := g.token(access.Rights{Tenant: "team-a", Role: access.Read})
	good := `{"token": "` + token + `"}`
	for name, c := range map[string]struct {
		site, body string
		want       int
	}{
		"an unknown token":       {"same-origin", `{"token": "` + access.NewToken() + `"}`, http.StatusUnauthorized},
		"no token":               {"same-origin", `{}`, http.StatusUnauthorized},
		"no JSON":                {"same-origin", "token=" + token, http.StatusBadRequest},
		"a body without end":     {"same-origin", `{"token": "` + strings.Repeat("x", 1<<20), http.StatusBadRequest},
		"a page of another site": {"cross-site", good, http.StatusForbidden},
		"a page on another port": {"same-site", good, http.StatusForbidden},
	} {
		response, body := g.send(http.MethodPost, "/session", map[string]string{"Sec-Fetch-Site": c.site}, []byte(c.body))
		require.Equal(t, c.want, response.StatusCode, "%s: %s", name, body)
		require.Empty(t, response.Cookies(), name)
	}
}

func TestAServerWithoutTokensNeedsNoSession(t *testing.T) {
	b := setup(t)
	var state struct{ Needed bool }
	b.get("/session", &state)
	require.False(t, state.Needed)
	b.do(http.StatusConflict, http.MethodPost, "/session", nil, []byte(`{"token": "x"}`), nil)
}
