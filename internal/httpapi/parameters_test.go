package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAmbiguousParametersAreRefused(t *testing.T) {
	b := setup(t)
	const missing = "/v1/conversations/nobody"
	for path, want := range map[string]struct{ location, message string }{
		missing + "?tenant=":                      {"query.tenant", "has no value"},
		missing + "?tenant=a&tenant=b":            {"query.tenant", "is given 2 times"},
		missing + "?as_of=":                       {"query.as_of", "has no value"},
		missing + "?at_least=9223372036854775808": {"query.at_least", "beyond 64 bits"},
		missing + "/context?explain=":             {"query.explain", "has no value"},
		"/v1/conversations?tag=a&tag=":            {"query.tag", "has no value"},
		"/v1/conversations?status=":               {"query.status", "has no value"},
		"/v1/failed?after=9223372036854775808":    {"query.after", "beyond 64 bits"},
	} {
		p := b.refused(http.StatusUnprocessableEntity, http.MethodGet, path, nil, "")
		require.Len(t, p.Errors, 1, path)
		require.Equal(t, want.location, p.Errors[0].Location, path)
		require.Contains(t, p.Errors[0].Message, want.message, path)
	}
	for _, query := range []string{"tenant=%zz", "tenant=a;limit=1"} {
		p := b.refused(http.StatusUnprocessableEntity, http.MethodGet, "/v1/conversations?"+query, nil, "")
		require.Contains(t, p.Detail, "not well-formed", query)
	}
	b.get("/v1/conversations?cursor=", nil)

	event := `{"specversion":"1.0","type":"dev.mneme.message.created.v1","source":"s","id":"1","subject":"c","data":{"message_id":"m","role":"user","content":""}}`
	p := b.refused(http.StatusUnprocessableEntity, http.MethodPost, "/v1/events?tenant="+url.QueryEscape(strings.Repeat("é", 100)),
		map[string]string{"Content-Type": "application/cloudevents+json"}, event)
	require.Equal(t, "query.tenant", p.Errors[0].Location, "the limit counts bytes, the schema counts characters")
}

func TestProblemDetailsSayWhatToDo(t *testing.T) {
	b := setup(t)
	asJSON := map[string]string{"Content-Type": "application/json"}
	for request, want := range map[string]struct {
		status int
		header map[string]string
		body   string
		detail string
	}{
		"GET /v1/conversations?limit=-1":                                            {422, nil, "", "query.limit: expected number >= 1"},
		"GET /v1/conversations?limit=1000000000":                                    {422, nil, "", "query.limit: expected number <= 1000"},
		"GET /v1/conversations/c/summaries?level=9223372036854775807&frontier=true": {422, nil, "", "query.level: expected number <= 1000"},
		"GET /v1/insights?since=7d":                                                 {422, nil, "", "query.since: is not a UTC day such as 2026-01-31"},
		"POST /v1/analyses":                                                         {422, map[string]string{"Content-Type": "application/json"}, `{"task":"t","since":"7d"}`, "body.since: is not an RFC 3339 time such as 2026-01-31T15:04:05Z"},
		"GET /v1/conversations?updated_after=2026-01-31":                            {422, nil, "", "query.updated_after: is not an RFC 3339 time such as 2026-01-31T15:04:05Z"},
		"GET /v1/conversations/c/files?color=red":                                   {422, nil, "", "query.color: unknown query parameter; known are all, as_of, at_least, group_by, kind, limit, tenant, wait_ms"},
		"GET /v1/settings?color=red":                                                {422, nil, "", "query.color: unknown query parameter; this operation takes none"},
		"GET /v1/conversations?a=1&b=2&c=3&d=4":                                     {422, nil, "", "and 1 more"},
		"GET /v1/settings?d=4&c=3&b=2&a=1":                                          {422, nil, "", "query.a: unknown query parameter; this operation takes none; query.b: unknown query parameter; this operation takes none; query.c: "},
		"POST /v1/conversations?tenant=d":                                           {422, asJSON, `{"d":1,"c":"a title","b":1,"a":1}`, "body.a: unexpected property; body.b: unexpected property; body.c: unexpected property; and 1 more"},
		"GET /v1/conversations/c":                                                   {404, nil, "", `conversation "c" of tenant "default": not found`},
		"POST /v1/conversations":                                                    {415, map[string]string{"Content-Type": "text/plain"}, `{"title":"a title"}`, "send Content-Type: application/json"},
		"POST /v1/conversations?tenant=t":                                           {422, asJSON, `{"titel":"a title"}`, "body.titel: unexpected property"},
	} {
		method, path, _ := strings.Cut(request, " ")
		var text string
		b.do(want.status, method, path, want.header, []byte(want.body), &text)
		var p problem
		require.NoError(t, json.Unmarshal([]byte(text), &p))
		require.Contains(t, p.Detail, want.detail, request)
		require.NotContains(t, text, "a title", "the client knows what it sent")
	}
}
