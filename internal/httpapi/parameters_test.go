package httpapi_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAParameterIsNeverReadAsSomethingElse(t *testing.T) {
	b := setup(t)
	const missing = "/v1/conversations/nobody"
	for path, want := range map[string]struct{ location, message string }{
		missing + "?tenant=":                      {"query.tenant", "has no value"},
		missing + "?tenant=a&tenant=b":            {"query.tenant", "is given 2 times"},
		missing + "?as_of=":                       {"query.as_of", "has no value"},
		missing + "?at_least=9223372036854775808": {"query.at_least", "beyond 64 bits"},
		missing + "/context?explain=":             {"query.explain", "has no value"},
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
	require.Equal(t, "query.tenant", p.Errors[0].Location, "the limit is one of bytes, the schema counts characters")
}
