package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/pkg/window"
)

// learnt returns what was learnt in a project, by text, with the sequences.
func (b *bundle) learnt(name, query string) map[string]uint64 {
	b.t.Helper()
	var made window.Context
	b.get(projectPath(name, "/context?"+query), &made)
	list := map[string]uint64{}
	for _, s := range made.Sections {
		for _, it := range s.Items {
			if s.Name == "what_was_learnt" {
				list[it.Text] = it.Seq
			}
		}
	}
	return list
}

func lessonPath(project string, seq uint64) string {
	return projectPath(project, fmt.Sprintf("/lessons/%d", seq))
}

func note(id, text string) *events.MessageCreated {
	return &events.MessageCreated{MessageID: id, Role: "user", Content: text, Origin: events.OriginNote}
}

func TestOneWrongLineIsWithdrawn(t *testing.T) {
	b := setup(t)
	wrong, right := "Releases happen on Tuesdays.", "The staging host is called atlas."
	before := b.batch("notes:shop", &events.ConversationStarted{Project: "shop"}, note("n1", wrong), note("n2", right))
	lines := b.learnt("shop", fmt.Sprintf("at_least=%d", before))
	require.Len(t, lines, 2)

	b.write(http.StatusOK, http.MethodPut, projectPath("store", "/alias"), "", `{"into":"shop"}`)
	w := b.write(http.StatusOK, http.MethodDelete, lessonPath("store", lines[wrong])+"?reason=moved", "", "")
	require.Equal(t, "notes:shop", w.ConversationID)
	require.False(t, w.Duplicate)
	stored, err := b.Log.Get(t.Context(), w.Seq)
	require.NoError(t, err)
	require.JSONEq(t, `{"event_source":"test","event_id":"2","reason":"moved"}`, string(stored.Data), "not the sequence, which is another one in another log")
	require.Equal(t, map[string]uint64{right: lines[right]}, b.learnt("shop", fmt.Sprintf("at_least=%d", w.Seq)))
	require.Equal(t, lines, b.learnt("shop", fmt.Sprintf("as_of=%d", before)), "as of then nothing has changed")

	var now window.Context
	b.get(projectPath("shop", "/context?query=notes+releases+Tuesdays&max_chars=10000"), &now)
	require.Equal(t, w.Seq, now.AsOf, "as of an earlier sequence the context would be another one")
	require.NotContains(t, now.Markdown(), "Tuesdays", "nor is it relevant")

	again := b.write(http.StatusOK, http.MethodDelete, lessonPath("shop", lines[wrong])+"?reason=other", "", "")
	require.True(t, again.Duplicate)
	require.Equal(t, w.Seq, again.Seq)
	require.Equal(t, w.EventID, again.EventID)
}

func TestWhatIsNoLineCannotBeWithdrawn(t *testing.T) {
	b := setup(t)
	b.begun("other", "blog", "Always write short posts.")
	last := b.batch("c", &events.ConversationStarted{Project: "shop"}, message("u1", "user", "Fix the cart."), message("u2", "user", "Always run make check before you commit."))
	lines := b.learnt("shop", fmt.Sprintf("at_least=%d", last))
	require.Len(t, lines, 1)
	line := lines["Always run make check before you commit."]
	for path, says := range map[string]string{
		lessonPath("shop", line-1):    "taught nothing that is shown",
		lessonPath("blog", line):      `belongs to no conversation of project "blog"`,
		lessonPath("never", line):     `belongs to no conversation of project "never"`,
		lessonPath("shop", 1_000_000): "the log holds no event",
	} {
		require.Contains(t, b.refused(http.StatusNotFound, http.MethodDelete, path, nil, "").Detail, says, path)
	}
	b.refused(http.StatusUnprocessableEntity, http.MethodDelete, projectPath("shop", "/lessons/x"), nil, "")
	b.refused(http.StatusNotFound, http.MethodDelete, lessonPath("shop", line)+"?tenant=other", nil, "")
	require.Equal(t, lines, b.learnt("shop", ""))

	b.write(http.StatusOK, http.MethodDelete, "/v1/conversations/c", "", "")
	b.refused(http.StatusNotFound, http.MethodDelete, lessonPath("shop", line), nil, "")
}

func TestOnlyWritersOfTheTenantWithdrawLines(t *testing.T) {
	g := setupGuarded(t)
	writer, _ := g.token(access.Rights{Tenant: "team-a", Role: access.Write})
	reader, _ := g.token(access.Rights{Tenant: "team-a", Role: access.Read})
	of, _ := g.token(access.Rights{Tenant: "team-a", Role: access.Read, Project: "shop"})
	other, _ := g.token(access.Rights{Tenant: "team-b", Role: access.Write})
	var stored publishAnswer
	g.do(http.StatusCreated, http.MethodPost, "/v1/events", with(bearer(writer), "Content-Type", events.ContentTypeBatch),
		fmt.Appendf(nil, "[%s,%s]", structured("notes:shop", "1", &events.ConversationStarted{Project: "shop"}), structured("notes:shop", "2", note("n", "Prices are in cents."))), &stored)
	for _, c := range []struct {
		token  string
		status int
	}{{reader, http.StatusForbidden}, {of, http.StatusForbidden}, {other, http.StatusNotFound}, {writer, http.StatusOK}} {
		g.eventually(c.token, func(status int) bool { return status != http.StatusUnauthorized })
		g.do(c.status, http.MethodDelete, lessonPath("shop", stored.Seq), bearer(c.token), nil, nil)
	}
}
