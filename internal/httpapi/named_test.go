package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/httpapi"
)

func TestTheNameOfAConversationInAContextServesAsItsID(t *testing.T) {
	b := setup(t)
	const first = "claude_code:4a7f0c52-0b5e-4f6e-9c3e-5a10d91ec3b9"
	b.begun(first, "shop", "Round half up?")
	last := b.begun("codex:rollout-00aa11bb", "shop", "Which voucher?")
	b.get(fmt.Sprintf("/v1/projects?at_least=%d", last), nil)

	require.Equal(t, first, b.show("d91ec3b9", 0).ID)
	session := strings.TrimPrefix(first, "claude_code:")
	var known httpapi.Conversation
	b.get("/v1/conversations/"+session, &known)
	require.Equal(t, first, known.ID)
	b.refused(http.StatusNotFound, http.MethodPatch, "/v1/conversations/"+session, nil, `{"title":"Rounding"}`)
	b.refused(http.StatusNotFound, http.MethodDelete, "/v1/conversations/"+session, nil, "")
	var text string
	b.get("/v1/conversations/d91ec3b9/context?format=markdown", &text)
	require.Contains(t, text, "Round half up?")
	b.refused(http.StatusNotFound, http.MethodGet, "/v1/conversations/d91ec3b0", nil, "")
	b.refused(http.StatusNotFound, http.MethodGet, "/v1/conversations/d91ec3b9?tenant=other", nil, "")
	b.refused(http.StatusNotFound, http.MethodGet, "/v1/conversations/1ec3b9", nil, "")

	w := b.write(http.StatusOK, http.MethodPatch, "/v1/conversations/d91ec3b9", "", `{"title":"Rounding"}`)
	require.Equal(t, "Rounding", b.show(first, w.Seq).Title)
	b.refused(http.StatusNotFound, http.MethodDelete, "/v1/conversations/d91ec3b9", nil, "")

	other := b.begun("gemini:1-d91ec3b9", "blog", "Hello")
	b.show("gemini:1-d91ec3b9", other)
	p := b.refused(http.StatusUnprocessableEntity, http.MethodGet, "/v1/conversations/d91ec3b9", nil, "")
	require.Contains(t, p.Detail, "several conversations are called d91ec3b9: gemini:1-d91ec3b9, "+first)
	require.Equal(t, "path.id", p.Errors[0].Location)
	require.Contains(t, p.Detail, p.Errors[0].Message, "the command line would print it a second time")
	for place, target := range map[string]string{
		"query.branch_of":    "/v1/conversations?branch_of=d91ec3b9",
		"query.conversation": "/v1/stream?until_end=true&conversation=d91ec3b9",
	} {
		p = b.refused(http.StatusUnprocessableEntity, http.MethodGet, target, nil, "")
		require.Contains(t, p.Detail, "several conversations are called d91ec3b9")
		require.Equal(t, place, p.Errors[0].Location)
	}
}

func TestAShortNameServesInFiltersToo(t *testing.T) {
	b := setup(t)
	const parent, branch = "claude_code:4a7f0c52-0b5e-4f6e-9c3e-5a10d91ec3b9", "claude_code:4a7f0c52-0b5e-4f6e-9c3e-5a10d91eaaaa"
	b.batch(parent, &events.ConversationStarted{}, message("m", "user", "Which voucher?"))
	last := b.batch(branch, &events.ConversationStarted{BranchedFrom: &events.BranchedAt{ConversationID: parent, MessageID: "m"}})
	b.show(parent, last) // a name is known once the conversation is
	var list struct{ Conversations []httpapi.Conversation }
	b.get(fmt.Sprintf("/v1/conversations?branch_of=d91ec3b9&at_least=%d", last), &list)
	require.Len(t, list.Conversations, 1)
	require.Equal(t, branch, list.Conversations[0].ID)
	var stream string
	b.get("/v1/stream?until_end=true&from=1&conversation=d91ec3b9", &stream)
	require.Equal(t, 2, strings.Count(stream, "event: event"), stream)
	b.get("/v1/stream?until_end=true&from=1&conversation=d91ec3b0", &stream)
	require.NotContains(t, stream, "event: event")
	var failed struct{ Failed []httpapi.FailedEvent }
	b.get("/v1/failed?tenant=default&conversation=d91ec3b9", &failed)
	require.Empty(t, failed.Failed)
	b.batch("d91ec3b9", message("m", "user", "It has an id like that name")) // perhaps not applied yet
	b.get("/v1/stream?until_end=true&from=1&conversation=d91ec3b9", &stream)
	require.Equal(t, 1, strings.Count(stream, "event: event"), stream)
}

func TestAnIDIsNeverTakenForTheNameOfAnotherConversation(t *testing.T) {
	b := setup(t)
	b.begun("shop:checkout", "shop", "Which price?")
	last := b.begun("checkout", "blog", "Which colour?")
	require.Equal(t, "checkout", b.show("checkout", last).ID)
	w := b.write(http.StatusOK, http.MethodDelete, "/v1/conversations/checkout", "", "")
	b.refused(http.StatusNotFound, http.MethodGet, fmt.Sprintf("/v1/conversations/checkout?at_least=%d", w.Seq), nil, "")
	b.refused(http.StatusNotFound, http.MethodDelete, "/v1/conversations/checkout", nil, "")
}

func TestATokenOfAProjectKnowsNamesOfItsConversationsAlone(t *testing.T) {
	g := setupGuarded(t)
	operator, _ := g.token(access.Rights{AllTenants: true, Role: access.Admin})
	token, _ := g.token(access.Rights{Tenant: "team", Role: access.Read, Project: "shop"})
	begin := func(id, source, project string) {
		body := fmt.Sprintf(`{"specversion":"1.0","type":"dev.mneme.conversation.started.v1","source":%q,"id":"start","subject":%q,"data":{"project":%q}}`, source, id, project)
		var answer struct{ Seq uint64 }
		g.do(http.StatusCreated, http.MethodPost, "/v1/events?tenant=team", with(bearer(operator), "Content-Type", "application/cloudevents+json"), []byte(body), &answer)
		g.do(http.StatusOK, http.MethodGet, fmt.Sprintf("/v1/projects?tenant=team&at_least=%d", answer.Seq), bearer(operator), nil, nil)
	}
	for i, project := range []string{"shop", "blog", "blog"} {
		begin(fmt.Sprintf("agent:%d-0000000%[1]d", i), "test", project)
	}
	g.do(http.StatusOK, http.MethodGet, "/v1/conversations/00000000", bearer(token), nil, nil)
	g.do(http.StatusNotFound, http.MethodGet, "/v1/conversations/00000001", bearer(token), nil, nil)
	g.do(http.StatusNotFound, http.MethodGet, "/v1/conversations/00000001?tenant=team&at_least=1", bearer(token), nil, nil)
	g.do(http.StatusOK, http.MethodGet, "/v1/conversations/00000001?tenant=team", bearer(operator), nil, nil)

	begin("agent:secret-00000000", "test", "shop")
	begin("agent:secret-00000000", "later", "blog") // it moves
	g.do(http.StatusOK, http.MethodGet, "/v1/conversations/00000000", bearer(token), nil, nil)
}
