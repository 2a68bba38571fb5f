package httpapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/pkg/graph/readmodel"
)

func TestTheStoredVectorsOfAMessageAreShown(t *testing.T) {
	b := setup(t)
	text := "The upload fails. " + strings.Repeat("It says that the server does not answer. ", 100)
	last := b.batch("c", message("m1", "user", text), message("m2", "assistant", ""))
	var e httpapi.EmbeddedMessage
	b.get(fmt.Sprintf("/v1/conversations/c/messages/m1/embedding?at_least=%d", last), &e)
	require.NotEmpty(t, e.Model)
	require.Greater(t, len(e.Passages), 1)
	end := 0
	for _, p := range e.Passages {
		require.GreaterOrEqual(t, p.Start, end)
		require.LessOrEqual(t, p.End, len(text))
		require.Len(t, p.Vector, e.Dimensions)
		end = p.End
	}
	var none httpapi.EmbeddedMessage
	b.get("/v1/conversations/c/messages/m2/embedding", &none)
	require.NotNil(t, none.Passages)
	require.Empty(t, none.Passages)
	b.refused(404, http.MethodGet, "/v1/conversations/c/messages/m3/embedding", nil, "")
}

func TestAVerificationShowsHowFarItIs(t *testing.T) {
	b := setup(t)
	b.get(fmt.Sprintf("/v1/conversations/c?at_least=%d", b.session("c")), nil)
	response, body := b.send(http.MethodPost, "/v1/verify/stream", nil, nil)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s", body)
	f := &follower{t: t}
	f.read(strings.NewReader(string(body)))
	var last streamed
	progress := 0
	for m, more := f.next(); more; m, more = f.next() {
		if last = m; m.name == "progress" {
			progress++
		}
	}
	require.Equal(t, io.EOF, f.ended)
	require.Equal(t, "verified", last.name)
	require.Positive(t, progress)
	var verified httpapi.Verification
	require.NoError(t, json.Unmarshal([]byte(last.data), &verified))
	require.True(t, verified.Equal)
	require.Len(t, verified.Projections, len(readmodel.Names())-1, "without embeddings")
}
