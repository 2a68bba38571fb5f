package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mnemetest"
)

// begun publishes a conversation of a project in which the user asks something, and returns the highest sequence.
func (b *bundle) begun(conversation, project, asked string) uint64 {
	b.t.Helper()
	return b.batch(conversation, &events.ConversationStarted{Project: project}, message("u", "user", asked), message("a", "assistant", "Done."))
}

func projectPath(name, below string) string { return "/v1/projects/" + url.PathEscape(name) + below }

// contextOf reads the context of a project as Markdown.
func (b *bundle) contextOf(name, query string) (text string) {
	b.t.Helper()
	b.get(projectPath(name, "/context?format=markdown&")+query, &text)
	return text
}

// namesOf lists the projects of a tenant, page by page.
func (b *bundle) namesOf(query string) (names []string) {
	b.t.Helper()
	for _, p := range all[httpapi.Project](b, "/v1/projects?"+query, "projects") {
		names = append(names, p.Name)
	}
	return names
}

// conversationsOf lists the conversations of a project, page by page.
func (b *bundle) conversationsOf(name, query string) (ids []string) {
	b.t.Helper()
	for _, c := range all[httpapi.Conversation](b, "/v1/conversations?project="+url.QueryEscape(name)+"&"+query, "conversations") {
		ids = append(ids, c.ID)
	}
	return ids
}

func TestAProjectMayHaveAnyName(t *testing.T) {
	b := setup(t)
	long := strings.Repeat("long/", 2_000)
	names := []string{"a/b", "100%", "%2F", "🎉 party", "../..", "...", "?x=1&y#z", "a\nb", long, long + "er"}
	var last uint64
	for i, name := range names {
		last = b.begun(fmt.Sprint("c", i), name, fmt.Sprint("canary", i))
	}
	b.get(fmt.Sprintf("/v1/projects?at_least=%d", last), nil)
	for i, name := range names {
		var shown struct {
			Conversations []httpapi.ProjectSession
		}
		b.get(projectPath(name, ""), &shown)
		require.Len(t, shown.Conversations, 1, "%.20q", name)
		require.Equal(t, fmt.Sprint("c", i), shown.Conversations[0].ID)
		text := b.contextOf(name, "max_chars=500")
		require.Contains(t, text, fmt.Sprint("canary", i))
		require.LessOrEqual(t, utf8.RuneCountInString(text), 500)
		require.Equal(t, []string{fmt.Sprint("c", i)}, b.conversationsOf(name, "limit=10"))
	}
	listed := b.namesOf("limit=3")
	require.Len(t, listed, len(names))
	require.IsIncreasing(t, listed)
}

func TestAProjectOfAnotherTenantIsNotFound(t *testing.T) {
	b := setup(t)
	b.do(http.StatusCreated, http.MethodPost, "/v1/events?tenant=other", map[string]string{"Content-Type": events.ContentTypeEvent},
		structured("c", "1", &events.ConversationStarted{Project: "secret"}), nil)
	last := b.begun("mine", "mine", "hello")
	b.get(fmt.Sprintf("/v1/projects?tenant=other&at_least=%d", last), nil)
	for _, name := range []string{"secret", "never there"} {
		for _, below := range []string{"", "/context"} {
			b.refused(http.StatusNotFound, http.MethodGet, projectPath(name, below), nil, "")
		}
		require.Empty(t, b.conversationsOf(name, "limit=10"))
	}
	require.Equal(t, []string{"mine"}, b.namesOf("limit=10"))
	require.Equal(t, []string{"secret"}, b.namesOf("limit=10&tenant=other"))
}

func TestProjectsAreMadeOneAndPartedAgain(t *testing.T) {
	b := setup(t)
	b.begun("here", "/home/ada/cli", "first canaryhere")
	before := b.begun("there", "/home/grace/cli", "then canarythere")
	apart := b.contextOf("/home/ada/cli", fmt.Sprintf("at_least=%d", before))
	require.NotContains(t, apart, "canarythere")

	w := b.write(http.StatusOK, http.MethodPut, projectPath("/home/grace/cli", "/alias"), "k", `{"into":"/home/ada/cli"}`)
	again := b.write(http.StatusOK, http.MethodPut, projectPath("/home/grace/cli", "/alias"), "k", `{"into":"/home/ada/cli"}`)
	require.True(t, again.Duplicate)
	for _, name := range []string{"/home/ada/cli", "/home/grace/cli"} {
		text := b.contextOf(name, fmt.Sprintf("at_least=%d", w.Seq))
		require.Contains(t, text, "canaryhere", name)
		require.Contains(t, text, "canarythere", name)
		require.Equal(t, []string{"there", "here"}, b.conversationsOf(name, "limit=1"))
		ids, _ := b.foundConversations("/v1/search?query=canarythere&project=" + url.QueryEscape(name))
		require.Equal(t, []string{"there"}, ids)
	}
	require.Equal(t, []string{"/home/ada/cli"}, b.namesOf("limit=10"))
	require.Equal(t, apart, b.contextOf("/home/ada/cli", fmt.Sprintf("as_of=%d", before)), "as of then nothing has changed")

	w = b.write(http.StatusOK, http.MethodDelete, projectPath("/home/grace/cli", "/alias"), "", "")
	require.Equal(t, apart, b.contextOf("/home/ada/cli", fmt.Sprintf("at_least=%d", w.Seq)))
	require.Equal(t, []string{"there"}, b.conversationsOf("/home/grace/cli", "limit=10"))
	p := b.refused(http.StatusUnprocessableEntity, http.MethodPut, projectPath("x", "/alias"), map[string]string{"Content-Type": "application/json"}, `{"into":"x"}`)
	require.Equal(t, "body.into", p.Errors[0].Location)
}

func TestOnlyOperatorsMakeProjectsOne(t *testing.T) {
	g := setupGuarded(t)
	for role, status := range map[access.Role]int{access.Read: http.StatusForbidden, access.Write: http.StatusForbidden, access.Operate: http.StatusOK} {
		token, _ := g.token(access.Rights{Tenant: "default", Role: role})
		g.eventually(token, func(status int) bool { return status != http.StatusUnauthorized })
		g.do(status, http.MethodPut, projectPath("a", "/alias"), with(bearer(token), "Content-Type", "application/json"), []byte(`{"into":"b"}`), nil)
		g.do(status, http.MethodDelete, projectPath("a", "/alias"), bearer(token), nil, nil)
	}
}

func TestNothingIsLeftOfADeletedConversationInItsProject(t *testing.T) {
	b := setup(t)
	b.begun("stays", "p", "hello")
	before := b.begun("gone", "p", "always use zanzibarcanary")
	require.Contains(t, b.contextOf("p", fmt.Sprintf("at_least=%d", before)), "zanzibarcanary")
	w := b.write(http.StatusOK, http.MethodDelete, "/v1/conversations/gone", "", "")
	alone := b.contextOf("p", fmt.Sprintf("at_least=%d", w.Seq))
	require.NotContains(t, alone, "zanzibarcanary")
	require.NotContains(t, alone, "gone")
	require.NotContains(t, b.contextOf("p", fmt.Sprintf("as_of=%d", before)), "zanzibarcanary", "nor as of then")
	require.Equal(t, []string{"stays"}, b.conversationsOf("p", "limit=10"))

	w = b.write(http.StatusOK, http.MethodDelete, "/v1/conversations/stays", "", "")
	b.refused(http.StatusNotFound, http.MethodGet, projectPath("p", fmt.Sprintf("?at_least=%d", w.Seq)), nil, "")
	require.Empty(t, b.namesOf("limit=10"))
}

func TestAProjectsContextHasEveryFormat(t *testing.T) {
	b := setup(t)
	last := b.begun("c", "p", "a < b && c")
	for format, want := range map[string]string{"json": `"strategy":"project"`, "openai": `"role":"system"`, "anthropic": `"system":"`} {
		var text string
		b.get(projectPath("p", fmt.Sprintf("/context?format=%s&at_least=%d", format, last)), &text)
		require.Contains(t, text, want)
		require.Contains(t, text, "a < b && c")
		require.NotContains(t, text, `"manifest"`)
	}
	var explained struct {
		Markdown string
		Manifest struct{ Sections []any }
	}
	b.get(projectPath("p", "/context?explain=true&include_markdown=true"), &explained)
	require.NotEmpty(t, explained.Manifest.Sections)
	var text string
	b.get(projectPath("p", "/context?format=markdown"), &text)
	require.Equal(t, text, explained.Markdown)
	for query, location := range map[string]string{"max_chars=1": "query.max_chars", "format=x": "query.format", "as_of=0": "query.as_of", "as_of=99999": "query.as_of", "strategy=recent": "query.strategy"} {
		p := b.refused(http.StatusUnprocessableEntity, http.MethodGet, projectPath("p", "/context?"+query), nil, "")
		require.Equal(t, location, p.Errors[0].Location, query)
	}
}

// The pages of a project's conversations are found by looking at all of them, a bounded number for each page.
func TestTheConversationsOfAProjectAreListedInPages(t *testing.T) {
	b := setup(t)
	var last uint64
	var want []string
	for i := range 230 {
		id, project := fmt.Sprintf("c%03d", i), "many"
		if i%20 == 0 {
			project, want = "few", append([]string{id}, want...)
		}
		last = b.publish(structured(id, "1", &events.ConversationStarted{Project: project})).Seq
	}
	require.Eventually(t, func() bool {
		response, _ := b.send(http.MethodGet, fmt.Sprintf("/v1/projects?at_least=%d", last), nil, nil)
		return response.StatusCode == http.StatusOK
	}, mnemetest.Patience, time.Millisecond)
	for _, limit := range []int{1, 5, 12, 1000} {
		require.Equal(t, want, b.conversationsOf("few", fmt.Sprintf("limit=%d&at_least=%d", limit, last)), limit)
		require.Equal(t, want, b.conversationsOf("few", fmt.Sprintf("order=created&limit=%d", limit)), limit)
		require.Len(t, b.conversationsOf("many", fmt.Sprintf("limit=%d", max(limit, 12))), 230-len(want))
	}
	b.publish(structured("c000", "2", &events.ConversationStarted{Project: "many"})) // one goes to another project
	require.NotContains(t, b.conversationsOf("few", fmt.Sprintf("limit=100&at_least=%d", b.head())), "c000")
}

func TestASearchInAProjectFindsWhatOthersMatchBetter(t *testing.T) {
	b := setup(t)
	b.begun("mine", "p", "this long request says zebra once, among many other words about something else")
	var last uint64
	for i := range 60 {
		last = b.begun(fmt.Sprint("other", i), "q", "zebra")
	}
	all, _ := b.foundConversations(fmt.Sprintf("/v1/search?query=zebra&limit=50&at_least=%d", last))
	require.NotContains(t, all, "mine")
	ids, _ := b.foundConversations("/v1/search?query=zebra&project=p")
	require.Equal(t, []string{"mine"}, ids)
	ids, _ = b.foundConversations("/v1/search?query=zebra&project=nobody")
	require.Empty(t, ids)
}
