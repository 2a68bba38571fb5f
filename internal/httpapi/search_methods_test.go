package httpapi_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
)

func TestASearchRanksByEachMethodAndInPages(t *testing.T) {
	b := setup(t)
	id := b.recorded("pi", 1_500).ID
	path := "/v1/conversations/" + url.PathEscape(id) + "/search?query=" + url.QueryEscape("why does the test of the editor fail") + "&ranks=true"
	for _, method := range []string{"fused", "words", "meaning"} {
		whole := path + "&method=" + method
		var first struct{ Messages []httpapi.Found }
		b.get(whole+"&limit=40", &first)
		require.NotEmpty(t, first.Messages)
		for i, m := range first.Messages {
			require.NotNil(t, m.Ranks)
			rank := map[string]int{"fused": m.Ranks.Fused, "words": m.Ranks.Words, "meaning": m.Ranks.Meaning}[method]
			require.Equal(t, i+1, rank, "%s: seq %d", method, m.Seq)
			require.InDelta(t, m.Score, m.Parts.Sum(), 1e-9)
			switch method {
			case "words":
				require.Equal(t, m.Parts.Lexical, m.Score)
				require.Positive(t, m.BM25)
			case "meaning":
				require.Equal(t, m.Parts.Dense, m.Score)
			}
		}
		paged := all[httpapi.Found](b, whole+"&limit=7", "messages")
		require.Greater(t, len(paged), 7)
		for i := range first.Messages {
			require.Equal(t, first.Messages[i].Seq, paged[i].Seq, "%s %d", method, i)
		}
		var kept []uint64
		narrow := map[uint64]bool{}
		for _, m := range paged {
			if m.Role == "user" && m.Seq >= 100 {
				kept = append(kept, m.Seq)
			}
		}
		require.NotEmpty(t, kept)
		for i, m := range all[httpapi.Found](b, whole+"&limit=7&role=user&from_seq=100", "messages") {
			require.Equal(t, kept[i], m.Seq)
		}
		for _, m := range all[httpapi.Found](b, whole+"&limit=7&max_chars=100000&contains=test*&without=editor&to_turn=5", "messages") {
			narrow[m.Seq] = true
			require.Regexp(t, `(?i)\btest`, m.Text)
			require.NotRegexp(t, `(?i)\beditor\b`, m.Text)
			require.LessOrEqual(t, m.Turn, 5)
		}
		require.NotEmpty(t, narrow)
		require.Less(t, len(narrow), len(paged))
	}
	p := b.refused(422, "GET", path+"&cursor=xyz", nil, "")
	require.True(t, strings.HasSuffix(p.Errors[0].Location, "query.cursor"), "%+v", p)
	b.refused(422, "GET", path+"&method=magic", nil, "")
	b.refused(422, "GET", path+"&since=yesterday", nil, "")
}
