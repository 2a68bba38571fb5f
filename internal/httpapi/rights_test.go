package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/httpapi"
)

func TestATokenIsToldWhatItMayDo(t *testing.T) {
	g := setupGuarded(t)
	for _, c := range g.callers() {
		response, body := g.send(http.MethodGet, "/v1/access", bearer(c.token), nil)
		require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", c.name, body)
		var told httpapi.Access
		require.NoError(t, json.Unmarshal(body, &told))
		require.NotEmpty(t, told.Expires)
		told.Expires = ""
		require.Equal(t, httpapi.Access{Role: c.Role.String(), AllTenants: c.AllTenants, Tenant: c.Tenant, Project: c.Project, Name: c.name}, told)
	}
	response, _ := g.send(http.MethodGet, "/v1/access", nil, nil)
	require.Equal(t, http.StatusUnauthorized, response.StatusCode)
}

func TestAServerWithoutTokensSaysThatEverythingIsAllowed(t *testing.T) {
	b := setup(t)
	var told httpapi.Access
	b.get("/v1/access", &told)
	require.Equal(t, httpapi.Access{Role: access.Admin.String(), AllTenants: true}, told)
}
