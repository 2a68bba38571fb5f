package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
)

// searchAnswer is the answer of a search in one conversation.
type searchAnswer struct {
	Messages   []httpapi.Found       `json:"messages"`
	Results    []httpapi.FoundResult `json:"tool_results"`
	NextCursor string                `json:"next_cursor"`
	Contains   []string              `json:"contains"`
	Without    []string              `json:"without"`
}

// searchTools has messages and tool results that share words.
func searchTools(t *testing.T) (b *bundle, find func(parameters string) searchAnswer) {
	b = setup(t)
	last := b.batch("c", message("m1", "user", "Why does the parser fail?"), message("m2", "assistant", "I run the tests of the parser."),
		call("k1", "Bash", `{"command":"go test ./pkg/parser"}`), result("k1", "--- FAIL: TestQuotes, unexpected quote in the parser", false),
		call("k2", "Read", `{"file_path":"/w/pkg/parser.go"}`), result("k2", "package parser // quotes", true),
		message("m3", "assistant", `It fails on a quote, with "go test -race" too.`))
	return b, func(parameters string) (a searchAnswer) {
		t.Helper()
		b.get(fmt.Sprintf("/v1/conversations/c/search?at_least=%d&%s", last, parameters), &a)
		require.NotNil(t, a.Messages, "an empty list is [], not null")
		return a
	}
}

func TestASearchFindsToolResultsIfAsked(t *testing.T) {
	_, find := searchTools(t)
	a := find("query=quote")
	require.NotEmpty(t, a.Messages)
	require.Empty(t, a.Results, "not by default")

	a = find("query=unexpected+quotes&kind=tool")
	require.Empty(t, a.Messages)
	require.Len(t, a.Results, 2)
	r := a.Results[0]
	require.Equal(t, []any{"k1", "Bash", "go test ./pkg/parser", uint64(3), uint64(4), 1, 1.0}, []any{r.ToolCallID, r.ToolName, r.Argument, r.CallSeq, r.Seq, r.Turn, r.Relevance})
	require.False(t, *r.Success)
	var lit []string
	for _, h := range r.Highlights {
		lit = append(lit, string([]rune(r.Text)[h.Start:h.End]))
	}
	require.Equal(t, []string{"TestQuotes", "unexpected", "quote"}, lit)

	a = find("query=parser&kind=all")
	require.NotEmpty(t, a.Messages)
	require.Len(t, a.Results, 2)
	require.Empty(t, a.NextCursor)

	a = find("query=parser&file=parser.go")
	require.Equal(t, "k2", a.Results[0].ToolCallID, "file and tool ask for results")
	require.Len(t, a.Results, 1)
	require.Len(t, find("query=parser&tool=bash").Results, 1)
	require.Empty(t, find("kind=tool&as_of=3").Results)
}

func TestAQueryMayHaveMarksOrNoWords(t *testing.T) {
	_, find := searchTools(t)
	ids := func(a searchAnswer) (ids []string) {
		for _, m := range a.Messages {
			ids = append(ids, m.MessageID)
		}
		return ids
	}
	a := find("query=" + url.QueryEscape(`parser "I run"`))
	require.Equal(t, []string{"m2"}, ids(a))
	require.Equal(t, []string{"I run"}, a.Contains)
	a = find("query=" + url.QueryEscape(`parser -tests`))
	require.NotContains(t, ids(a), "m2")
	require.Equal(t, []string{"tests"}, a.Without)
	require.Equal(t, []string{"m1"}, ids(find("query="+url.QueryEscape("-quote -tests"))), "without a word to rank by, all that is left")
	require.Equal(t, []string{"m3", "m2"}, ids(find("role=assistant")), "newest first")
	require.Equal(t, []string{"m3"}, ids(find("query="+url.QueryEscape("rac*"))))
	require.Equal(t, "m3", ids(find("syntax=plain&query=" + url.QueryEscape("go test -race")))[0])
	require.Equal(t, "m3", ids(find("query=" + url.QueryEscape(`a " quote - of`)))[0], "a lone quote and a lone dash are words")

	first := find("role=assistant&limit=1")
	require.Equal(t, []string{"m3"}, ids(first))
	second := find("role=assistant&limit=1&cursor=" + first.NextCursor)
	require.Equal(t, []string{"m2"}, ids(second))
	require.Empty(t, second.NextCursor)
	one := find("kind=tool&limit=1")
	require.Equal(t, "k2", one.Results[0].ToolCallID)
	two := find("kind=tool&limit=1&cursor=" + one.NextCursor)
	require.Equal(t, "k1", two.Results[0].ToolCallID)
	require.Empty(t, two.NextCursor)
}

func TestSearchesThatMeanNothingAreRefused(t *testing.T) {
	b, _ := searchTools(t)
	for parameters, location := range map[string]string{
		"": "query.query", "query=+": "query.query", "syntax=plain": "query.query", "query=x&kind=call": "query.kind",
		"query=x&kind=message&tool=Bash": "query.tool", "query=x&kind=message&file=a.go": "query.file",
		"query=x&kind=tool&role=user": "query.role", "query=x&tool=Bash&speaker=Ann": "query.speaker",
		"query=x&kind=tool&method=meaning": "query.method", "query=x&kind=tool&ranks=true": "query.ranks",
		"query=" + strings.Repeat("x", 100_001): "query.query", "query=x&kind=tool&cursor=AAAA": "query.cursor",
		"query=x&from_turn=3&to_turn=2": "query.to_turn", "from_seq=3&to_seq=2": "query.to_seq", "role=user&since=2026-02-02T00:00:00Z&until=2026-02-01T00:00:00Z": "query.until",
	} {
		p := b.refused(http.StatusUnprocessableEntity, http.MethodGet, "/v1/conversations/c/search?"+parameters, nil, "")
		require.NotEmpty(t, p.Errors, parameters)
		require.Equal(t, location, p.Errors[0].Location, parameters)
	}
	b.refused(http.StatusNotFound, http.MethodGet, "/v1/conversations/nobody/search?kind=tool&query=x", nil, "")
}
