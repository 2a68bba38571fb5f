package httpapi_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
)

func TestAServedContextIsRememberedAndMadeAgainToTheByte(t *testing.T) {
	b := setup(t)
	id := b.recorded("pi", 1_500).ID
	path := "/v1/conversations/" + url.PathEscape(id)
	shown := map[string]string{} // by the sequence that remembers it
	for _, query := range []string{"strategy=hybrid&query=the+failing+test", "strategy=recent", "strategy=levels&condense=off", "strategy=pruned", "frame=true&strategy=relevant", "as_of=700"} {
		response, body := b.send(http.MethodGet, path+"/context?format=markdown&record=true&max_chars=5000&"+query, nil, nil)
		require.Equal(t, http.StatusOK, response.StatusCode, "%s", body)
		seq := response.Header.Get("Mneme-Context-Seq")
		require.NotEmpty(t, seq)
		shown[seq] = string(body)
	}
	response, _ := b.send(http.MethodGet, path+"/context?format=markdown&max_chars=5000", nil, nil)
	require.NotContains(t, response.Header, "Mneme-Context-Seq")

	// The conversation moves on, and what was shown stays what it was.
	more := b.publish(structured(id, "later", message("later", "user", "Something else."))).Seq
	b.get(fmt.Sprintf("%s?at_least=%d", path, more), nil)

	list := all[httpapi.ServedContext](b, path+"/contexts?limit=4", "contexts")
	require.Len(t, list, len(shown))
	for _, c := range list {
		require.Equal(t, "mneme/context-api", c.Source)
		require.NotEmpty(t, c.Time)
		require.Equal(t, "markdown", c.Format)
		var again httpapi.RemadeContext
		b.get(fmt.Sprintf("%s/contexts/%d", path, c.Seq), &again)
		require.True(t, again.Equal, "%+v", c)
		require.Equal(t, c.Hash, fmt.Sprintf("%x", sha256.Sum256([]byte(again.Markdown))))
		if c.MaxChars == 5000 { // without a frame
			require.Equal(t, shown[fmt.Sprint(c.Seq)], again.Markdown)
		}
	}
	require.EqualValues(t, 700, list[5].AsOf)

	var verified httpapi.Verification
	b.do(http.StatusOK, http.MethodPost, "/v1/verify", nil, nil, &verified)
	require.True(t, verified.Equal, "what was served is in no read model")
}

func TestAskingForTheHeadOfAContextRecordsNothing(t *testing.T) {
	b := setup(t)
	b.publish(structured("c1", "1", message("m1", "user", "hello")))
	before := b.head()
	response, _ := b.send(http.MethodHead, fmt.Sprintf("/v1/conversations/c1/context?record=true&at_least=%d", before), nil, nil)
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Empty(t, response.Header.Get("Mneme-Context-Seq"))
	require.Equal(t, before, b.head())
}

func TestAContextThatWasNotServedIsNotShownAsSuch(t *testing.T) {
	b := setup(t)
	b.batch("c", message("m1", "user", "hello"))
	forged := b.publish(structured("c", "f", &events.ContextServed{AsOf: 1, Hash: fmt.Sprintf("%064d", 0), MaxChars: 500, Strategy: "recent"})).Seq
	var again httpapi.RemadeContext
	b.get(fmt.Sprintf("/v1/conversations/c/contexts/%d?at_least=%d", forged, forged), &again)
	require.False(t, again.Equal)
	require.Equal(t, "test", again.Served.Source)

	b.batch("d", message("m1", "user", "hello"))
	b.refused(404, http.MethodGet, fmt.Sprintf("/v1/conversations/d/contexts/%d", forged), nil, "")
	b.refused(404, http.MethodGet, "/v1/conversations/c/contexts/1", nil, "")
	b.refused(404, http.MethodGet, "/v1/conversations/c/contexts/99", nil, "")
	b.refused(404, http.MethodGet, "/v1/conversations/nobody/contexts", nil, "")
	strange := b.publish(structured("c", "s", &events.ContextServed{AsOf: 1, Hash: fmt.Sprintf("%064d", 0), MaxChars: 500, Strategy: "magic"})).Seq
	b.refused(422, http.MethodGet, fmt.Sprintf("/v1/conversations/c/contexts/%d", strange), nil, "")
	b.refused(403, http.MethodGet, "/v1/conversations/c/context?record=true", map[string]string{"Sec-Fetch-Site": "cross-site"}, "")
}
