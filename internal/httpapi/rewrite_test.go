package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest/llmtest"
	"mneme.dev/mneme/pkg/window"
)

// rewritten is the part of an answer that says what a model added to the query.
type rewritten struct {
	Messages      []httpapi.Found
	Conversations []httpapi.FoundConversation
	Rewritten     *window.Rewritten
}

// rewriting is a search whose query shares no word with the message that answers it.
func rewriting(t *testing.T, quotas string) (*llmtest.Endpoint, *bundle, func(path, parameters string) rewritten) {
	e := llmtest.New(t)
	e.Reply(llmtest.Chat("* \"zeppelin\" -mooring `mast`"))
	b := analyzing(t, e.URL(), quotas)
	b.say("default", "c", "The zeppelin waits at the mooring mast.")
	b.say("default", "d", "Lunch is at noon.")
	return e, b, func(path, parameters string) (a rewritten) {
		t.Helper()
		b.get(path+"?query=airship&"+parameters, &a)
		return a
	}
}

func TestAQueryIsWrittenAnewIfAskedAndTheAnswerSaysHow(t *testing.T) {
	e, b, search := rewriting(t, "")
	require.Empty(t, search("/v1/search", "").Conversations)
	require.Nil(t, search("/v1/conversations/c/search", "").Rewritten)
	require.Zero(t, e.Calls(), "never by default")

	want := &window.Rewritten{Query: "airship", Model: "canned", Added: "zeppelin mooring mast"}
	a := search("/v1/conversations/c/search", "method=words&rewrite=true")
	require.Equal(t, want, a.Rewritten, "without marks of a search")
	require.Len(t, a.Messages, 1)
	require.Equal(t, 1, e.Calls())
	require.Contains(t, e.Requests()[0].Text, "airship")
	a = search("/v1/search", "rewrite=true")
	require.Equal(t, want, a.Rewritten)
	require.Equal(t, "c", a.Conversations[0].ID)

	var c window.Context
	b.get("/v1/conversations/c/context?query=airship&rewrite=true&explain=true", &c)
	require.Equal(t, want, c.Manifest.Rewritten)
	require.Equal(t, "airship\nzeppelin mooring mast", c.Manifest.Search.Query)
	calls := e.Calls()
	var again window.Context
	b.get("/v1/conversations/c/context?explain=true&query="+url.QueryEscape(c.Manifest.Search.Query), &again)
	require.Equal(t, c.Manifest.Hash, again.Manifest.Hash, "the query as it was used makes the context again")
	require.Nil(t, again.Manifest.Rewritten)
	require.Equal(t, calls, e.Calls())
}

func TestMarksOfAQueryStayWhenAModelAddsWords(t *testing.T) {
	e, b, _ := rewriting(t, "")
	e.Reply(llmtest.Chat(strings.Repeat("zeppelin ", 40)))
	b.ranIn("p1", "p", call("k1", "Bash", `{"command":"ls"}`), result("k1", "the zeppelin waits", true), call("k2", "Bash", `{"command":"ls"}`), result("k2", "the zeppelin left", true))
	last := b.ranIn("p2", "p", call("k1", "Bash", `{"command":"ls"}`), result("k1", "a zeppelin waits here, too", true))
	long := strings.Repeat("airship ", 20)
	_, calls := b.results("project=p&kind=tool&rewrite=true&query=" + url.QueryEscape(long+" -left") + fmt.Sprintf("&at_least=%d", last))
	require.ElementsMatch(t, []string{"p1/k1", "p2/k1"}, calls)
}

func TestASearchWithOtherWordsHasOnePage(t *testing.T) {
	_, b, search := rewriting(t, "")
	b.say("default", "c", "Another zeppelin came to the mooring mast.")
	var page struct {
		Messages []httpapi.Found
		Next     string `json:"next_cursor"`
	}
	b.get("/v1/conversations/c/search?query=airship&rewrite=true&limit=1", &page)
	require.Len(t, page.Messages, 1)
	require.Empty(t, page.Next, "the model may answer differently for the next page")
	require.Len(t, search("/v1/conversations/c/search", "rewrite=true").Messages, 2)
	b.get("/v1/conversations/c/search?query=zeppelin&limit=1", &page)
	require.NotEmpty(t, page.Next)
	p := b.refused(http.StatusUnprocessableEntity, http.MethodGet, "/v1/conversations/c/search?query=zeppelin&limit=1&rewrite=true&cursor="+url.QueryEscape(page.Next), nil, "")
	require.Contains(t, p.Detail, "no further pages")
}

func TestAQueryStaysAsItIsIfTheModelDoesNotHelp(t *testing.T) {
	e, b, search := rewriting(t, "")
	for why, reply := range map[string]llmtest.Reply{
		"the answer is empty": llmtest.Chat("- \"\" *"), "refused": llmtest.Refusal(), "HTTP 400": llmtest.Failure(400, "bad", "no"),
	} {
		e.Reply(reply)
		a := search("/v1/conversations/c/search", "rewrite=true")
		require.Contains(t, a.Rewritten.Missing, why)
		require.Empty(t, a.Rewritten.Added)
		require.NotNil(t, a.Messages)
	}
	e.Reply(llmtest.Hang)
	require.Equal(t, "the model gave no answer within 5s", search("/v1/conversations/c/search", "rewrite=true").Rewritten.Missing)

	calls := e.Calls()
	var long rewritten
	b.get("/v1/conversations/c/search?rewrite=true&query="+strings.Repeat("airship+", 200), &long)
	require.Contains(t, long.Rewritten.Missing, "over 1000 characters")
	require.Equal(t, calls, e.Calls(), "a pasted text is not sent")
	for _, path := range []string{"/v1/conversations/c/search?kind=tool&", "/v1/conversations/c/context?", "/v1/search?project=p&kind=tool&"} {
		p := b.refused(http.StatusUnprocessableEntity, http.MethodGet, path+"rewrite=true", nil, "")
		require.Contains(t, p.Detail, "needs a query", path)
	}
}

func TestCallsThatWriteQueriesAnewCountAgainstTheQuota(t *testing.T) {
	e, _, search := rewriting(t, "tenants:\n  default:\n    model_calls_per_hour: 1\n")
	require.Empty(t, search("/v1/conversations/c/search", "rewrite=true").Rewritten.Missing)
	require.Contains(t, search("/v1/conversations/c/search", "rewrite=true").Rewritten.Missing, "over its quota of 1 model calls an hour")
	require.Equal(t, 1, e.Calls())
}

func TestAModelIsNotAskedAboutWhatDoesNotExist(t *testing.T) {
	e, b, search := rewriting(t, "")
	at := b.batch("erased", message("m", "user", "The zeppelin is gone."))
	b.get(fmt.Sprintf("/v1/conversations/erased?at_least=%d", at), nil)
	deleted := b.write(http.StatusOK, http.MethodDelete, "/v1/conversations/erased", "", "").Seq
	for path, status := range map[string]int{
		"/v1/conversations/nobody/search?kind=message&":                                    http.StatusNotFound,
		"/v1/conversations/nobody/search?kind=tool&":                                       http.StatusNotFound,
		"/v1/conversations/nobody/context?":                                                http.StatusNotFound,
		"/v1/conversations/nobody/context?record=true&":                                    http.StatusNotFound,
		fmt.Sprintf("/v1/conversations/erased/search?wait_ms=60000&at_least=%d&", deleted): http.StatusNotFound,
		"/v1/conversations/c/search?tenant=somebody-else&":                                 http.StatusNotFound,
		"/v1/conversations/c/context?tenant=somebody-else&":                                http.StatusNotFound,
		"/v1/conversations/c/context?as_of=1000000&":                                       http.StatusUnprocessableEntity,
		"/v1/conversations/c/search?at_least=1000000&":                                     http.StatusUnprocessableEntity,
		"/v1/search?at_least=1000000&":                                                     http.StatusUnprocessableEntity,
	} {
		b.refused(status, http.MethodGet, path+"query=airship&rewrite=true", nil, "")
		require.Zero(t, e.Calls(), path)
	}
	require.Equal(t, "no conversation belongs to the project", search("/v1/search", "project=nothing&rewrite=true").Rewritten.Missing)
	require.Zero(t, e.Calls())
	require.NotEmpty(t, search("/v1/conversations/c/search", "rewrite=true").Rewritten.Added)
	require.Equal(t, 1, e.Calls())
}

func TestAModelIsNotAskedForATokenOfAnotherProject(t *testing.T) {
	t.Parallel()
	e := llmtest.New(t)
	e.Reply(llmtest.Chat("zeppelin"))
	path := filepath.Join(t.TempDir(), "tokens.jsonl")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	c := withModel(t, e.URL())
	c.Access.TokensFile = path
	i, err := instance.Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close()) })
	g := &guarded{&bundle{t, i}, access.NewFile(path)}
	g.fill()
	shop, _ := g.token(access.Rights{Tenant: "team-a", Project: "shop", Role: access.Read})
	for _, path := range []string{"/v1/conversations/bank/search?", "/v1/conversations/bank/context?", "/v1/conversations/nobody/search?"} {
		g.do(http.StatusNotFound, http.MethodGet, path+"query=fruit&rewrite=true", bearer(shop), nil, nil)
	}
	g.do(http.StatusForbidden, http.MethodGet, "/v1/search?query=fruit&rewrite=true&project=bank", bearer(shop), nil, nil)
	require.Zero(t, e.Calls())
	var a rewritten
	g.do(http.StatusOK, http.MethodGet, "/v1/conversations/shop/search?query=fruit&rewrite=true", bearer(shop), nil, &a)
	require.Equal(t, "zeppelin", a.Rewritten.Added)
	require.Equal(t, 1, e.Calls())
}

func TestAServerWithoutAModelRefusesToWriteQueriesAnew(t *testing.T) {
	b := setup(t)
	b.batch("c", message("m", "user", "hello"))
	p := b.refused(http.StatusUnprocessableEntity, http.MethodGet, "/v1/conversations/c/search?query=hello&rewrite=true", nil, "")
	require.Contains(t, p.Detail, "needs a model")
	require.Equal(t, "query.rewrite", p.Errors[0].Location)
}
