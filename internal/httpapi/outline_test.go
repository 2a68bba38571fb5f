package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
)

func TestTheOutlineHasEveryTurnInFewBytes(t *testing.T) {
	b := setup(t)
	c := b.recorded("pi", 1_500)
	path := "/v1/conversations/" + url.PathEscape(c.ID)
	turns := all[httpapi.Turn](b, path+"/turns?order=oldest&limit=7", "turns")
	outline := all[httpapi.OutlinedTurn](b, path+"/outline?order=oldest&limit=9", "turns")
	require.Len(t, outline, len(turns))
	for i, o := range outline {
		require.Equal(t, []any{turns[i].Number, turns[i].FirstSeq, turns[i].LastSeq, turns[i].TotalChars, turns[i].ToolCallCount}, []any{o.Number, o.FirstSeq, o.LastSeq, o.Chars, o.Calls})
		require.Equal(t, turns[i].Time != "", o.Time > 0)
	}
	_, raw := b.send(http.MethodGet, path+"/outline?limit=1000", nil, nil)
	var body map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &body))
	require.LessOrEqual(t, len(body["turns"])/len(turns), 80, "bytes a turn")
}

func TestTheEventsOfAConversationAreListedAsTheyWerePublished(t *testing.T) {
	b := setup(t)
	b.get(fmt.Sprintf("/v1/conversations/c?at_least=%d", b.session("c")), nil)
	for _, order := range []string{"oldest", "newest"} {
		list := all[httpapi.LoggedEvent](b, "/v1/conversations/c/events?limit=4&order="+order, "events")
		require.Len(t, list, 14)
		for i, e := range list {
			if order == "oldest" {
				require.EqualValues(t, i+1, e.Seq)
			} else {
				require.EqualValues(t, 14-i, e.Seq)
			}
			var logged string
			b.get(fmt.Sprintf("/v1/events/%d", e.Seq), &logged)
			require.JSONEq(t, logged, string(e.Event))
		}
	}
	require.Len(t, all[httpapi.LoggedEvent](b, "/v1/conversations/c/events?limit=2&kind=tool_called", "events"), 4)
	require.Len(t, all[httpapi.LoggedEvent](b, "/v1/conversations/c/events?limit=2&kind=tool_returned", "events"), 4)
	require.Len(t, all[httpapi.LoggedEvent](b, "/v1/conversations/c/events?as_of=3", "events"), 3)
}
