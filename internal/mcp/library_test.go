package mcp_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/frame"
	"mneme.dev/mneme/internal/mcp"
)

// addresses lists the resources.
func (a *agent) addresses() (list []string) {
	a.t.Helper()
	result, err := a.ListResources(a.t.Context(), nil)
	require.NoError(a.t, err)
	require.Equal(a.t, "private", result.CacheScope)
	for _, r := range result.Resources {
		list = append(list, r.URI)
	}
	return list
}

// resource reads a resource, which must be nothing but a frame.
func (a *agent) resource(uri string) string {
	a.t.Helper()
	result, err := a.ReadResource(a.t.Context(), &sdk.ReadResourceParams{URI: uri})
	require.NoError(a.t, err)
	require.Len(a.t, result.Contents, 1)
	require.Equal(a.t, uri, result.Contents[0].URI)
	require.Equal(a.t, "text/markdown", result.Contents[0].MIMEType)
	require.Equal(a.t, "private", result.CacheScope)
	rest, ids := frame.Strip(result.Contents[0].Text)
	require.Empty(a.t, rest)
	require.Len(a.t, ids, 1)
	return result.Contents[0].Text
}

// refusedResource reads a resource that must be refused.
func (a *agent) refusedResource(uri string) string {
	a.t.Helper()
	_, err := a.ReadResource(a.t.Context(), &sdk.ReadResourceParams{URI: uri})
	var refused *jsonrpc.Error
	require.ErrorAs(a.t, err, &refused)
	require.EqualValues(a.t, jsonrpc.CodeInvalidParams, refused.Code)
	return refused.Message
}

// completed completes an argument of a prompt.
func (a *agent) completed(prompt, argument, typed string) []string {
	a.t.Helper()
	result, err := a.Complete(a.t.Context(), &sdk.CompleteParams{
		Ref: &sdk.CompleteReference{Type: "ref/prompt", Name: prompt}, Argument: sdk.CompleteParamsArgument{Name: argument, Value: typed},
	})
	require.NoError(a.t, err)
	return result.Completion.Values
}

func (a *agent) prompted(name string, args map[string]string) (string, error) {
	a.t.Helper()
	result, err := a.GetPrompt(a.t.Context(), &sdk.GetPromptParams{Name: name, Arguments: args})
	if err != nil {
		return "", err
	}
	require.Len(a.t, result.Messages, 1)
	text := result.Messages[0].Content.(*sdk.TextContent).Text
	asked, ids := frame.Strip(text)
	require.NotEmpty(a.t, strings.TrimSpace(asked), "what is asked stands before the frame")
	require.Len(a.t, ids, 1)
	return text, nil
}

func TestResourcesAreTheProjectAndItsNewestConversations(t *testing.T) {
	b := setup(t)
	b.shop("default")
	a := b.agent("", "project", "shop")
	require.Equal(t, []string{"mneme://projects/shop/context", "mneme://conversations/login/context", "mneme://conversations/cart/context"}, a.addresses())
	require.Contains(t, a.resource("mneme://projects/shop/context"), "expired cookie")
	cart := a.resource("mneme://conversations/cart/context")
	require.Contains(t, cart, "shop · cart · as of ")
	require.Contains(t, cart, "vouchers")
	require.Contains(t, a.resource("mneme://conversations/cart/turns/1"), "call of Edit")
	require.Empty(t, b.agent("").addresses(), "nothing names a project")
}

func TestTheListOfResourcesIsBounded(t *testing.T) {
	b := setup(t)
	for i := range 30 {
		b.say("default", fmt.Sprint("c", i), started("shop"), said("m1", "user", "hello"))
	}
	b.applied()
	list := b.agent("", "project", "shop").addresses()
	require.Len(t, list, 21)
	require.Equal(t, "mneme://conversations/c29/context", list[1])
	require.Equal(t, "mneme://conversations/c10/context", list[20])
}

func TestAddressesOfResourcesHoldAnyName(t *testing.T) {
	b := setup(t)
	const id, project = "claude_code:a/b c?#%é", "/home/me/my shop"
	b.say("default", id, started(project), said("m1", "user", "The question"))
	b.applied()
	a := b.agent("", "project", project)
	list := a.addresses()
	require.Equal(t, []string{"mneme://projects/%2Fhome%2Fme%2Fmy%20shop/context", "mneme://conversations/claude_code%3Aa%2Fb%20c%3F%23%25%C3%A9/context"}, list)
	for _, uri := range list {
		require.Contains(t, a.resource(uri), "The question")
	}
}

func TestALongTurnIsReadInPages(t *testing.T) {
	b := setup(t)
	b.say("default", "c", started("shop"), said("m1", "user", "run it"), used("c1", "Bash", `{"command":"run"}`), returned("c1", "done"),
		said("m2", "assistant", strings.Repeat("a word and ", 9_000)+"the end"))
	b.applied()
	a := b.agent("", "project", "shop")
	uri, pages := "mneme://conversations/c/turns/1", 0
	for next := uri; ; pages++ {
		require.Less(t, pages, 5)
		text := a.resource(next)
		require.LessOrEqual(t, utf8.RuneCountInString(text), 40_000)
		_, cursor, more := strings.Cut(text, "\nThere is more: the same ref with cursor ")
		if !more {
			break
		}
		cursor, _, _ = strings.Cut(cursor, "\n")
		next = uri + "?cursor=" + cursor
	}
	require.NotZero(t, pages)
}

func TestWhatIsNoResourceIsRefused(t *testing.T) {
	b := setup(t)
	b.shop("default")
	a := b.agent("", "project", "shop")
	for _, uri := range []string{
		"mneme://conversations/cart", "mneme://conversations//context", "mneme://conversations/cart/summary", "mneme://projects/shop/turns/1", "mneme://nothing/x/context", "file:///etc/passwd",
		"mneme://conversations/nothing/context", "mneme://conversations/cart/turns/9", "mneme://conversations/cart/turns/x",
	} {
		require.NotEmpty(t, a.refusedResource(uri), uri)
	}
	require.Contains(t, a.refusedResource("mneme://conversations/nothing/context"), `no conversation "nothing"`)
}

func TestPromptsAskAboutTheMemory(t *testing.T) {
	b := setup(t)
	b.shop("default")
	a := b.agent("", "project", "shop")
	var names []string
	for p, err := range a.Prompts(t.Context(), nil) {
		require.NoError(t, err)
		names = append(names, p.Name)
	}
	require.Equal(t, []string{mcp.PromptRecall, mcp.PromptResume}, names)
	text, err := a.prompted(mcp.PromptRecall, nil)
	require.NoError(t, err)
	require.Contains(t, text, "expired cookie")
	text, err = a.prompted(mcp.PromptRecall, map[string]string{"project": "blog"})
	require.NoError(t, err)
	require.Contains(t, text, "blog · all conversations")
	text, err = a.prompted(mcp.PromptResume, map[string]string{"conversation": "cart"})
	require.NoError(t, err)
	require.Contains(t, text, "shop · cart · ")
	_, err = a.prompted(mcp.PromptResume, nil)
	require.ErrorContains(t, err, "give the argument conversation")
	_, err = b.agent("").prompted(mcp.PromptRecall, nil)
	require.ErrorContains(t, err, "The newest: blog, shop")
}

func TestNamesAreCompletedByAnyPart(t *testing.T) {
	b := setup(t)
	b.shop("default")
	a := b.agent("", "project", "shop")
	require.Equal(t, []string{"blog", "shop"}, a.completed(mcp.PromptRecall, "project", ""))
	require.Equal(t, []string{"shop"}, a.completed(mcp.PromptRecall, "project", "HO"))
	require.Equal(t, []string{"login", "cart"}, a.completed(mcp.PromptResume, "conversation", ""))
	require.Equal(t, []string{"cart"}, a.completed(mcp.PromptResume, "conversation", "car"))
	require.Empty(t, a.completed(mcp.PromptResume, "conversation", "post"), "it is of another project")
	require.Equal(t, []string{"post"}, b.agent("").completed(mcp.PromptResume, "conversation", "pos"))
	require.Empty(t, a.completed(mcp.PromptRecall, "query", "x"))
	result, err := a.Complete(t.Context(), &sdk.CompleteParams{
		Ref: &sdk.CompleteReference{Type: "ref/resource", URI: "mneme://projects/{project}/context"}, Argument: sdk.CompleteParamsArgument{Name: "project", Value: "sh"},
	})
	require.NoError(t, err)
	require.Equal(t, []string{"shop"}, result.Completion.Values)
}

func TestTokensDecideWhatResourcesPromptsAndCompletionsReach(t *testing.T) {
	b := setupGuarded(t)
	b.shop("team-a")
	b.say("team-b", "other", started("theirs"), said("m1", "user", "a secret of team-b"))
	b.applied()
	only := b.agent(b.token(access.Rights{Tenant: "team-a", Role: access.Read, Project: "shop"}), "project", "blog")
	require.Equal(t, []string{"mneme://projects/shop/context", "mneme://conversations/login/context", "mneme://conversations/cart/context"}, only.addresses(), "the token decides, not the URL")
	require.Contains(t, only.refusedResource("mneme://conversations/post/context"), `no conversation "post"`)
	require.Contains(t, only.refusedResource("mneme://conversations/post/turns/1"), `no conversation "post"`)
	require.Contains(t, only.refusedResource("mneme://projects/blog/context"), "is only for the")
	_, err := only.prompted(mcp.PromptResume, map[string]string{"conversation": "post"})
	require.ErrorContains(t, err, `no conversation "post"`)
	require.Equal(t, []string{"shop"}, only.completed(mcp.PromptRecall, "project", ""))
	require.Equal(t, []string{"login", "cart"}, only.completed(mcp.PromptResume, "conversation", ""))

	tenant := b.agent(b.token(access.Rights{Tenant: "team-a", Role: access.Read}))
	require.Equal(t, []string{"blog", "shop"}, tenant.completed(mcp.PromptRecall, "project", ""))
	require.NotContains(t, tenant.completed(mcp.PromptResume, "conversation", ""), "other")
	require.Contains(t, tenant.refusedResource("mneme://conversations/other/context"), "no conversation")
	require.NotContains(t, tenant.resource("mneme://projects/theirs/context"), "secret")
}
