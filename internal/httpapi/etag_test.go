package httpapi_test

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/pkg/window"
)

// ask sends a GET with If-None-Match and returns the status, the ETag and the body.
func (b *bundle) ask(path, known string) (status int, tag, body string) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.HTTPURL()+path, nil)
	require.NoError(b.t, err)
	if known != "" {
		request.Header.Set("If-None-Match", known)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(b.t, err)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	if response.StatusCode < 400 {
		require.Equal(b.t, "private, no-cache", response.Header.Get("Cache-Control"))
	}
	return response.StatusCode, response.Header.Get("ETag"), string(raw)
}

// tag returns the ETag of an answer, which must have one, and checks that it gets a 304.
func (b *bundle) tag(path string) string {
	b.t.Helper()
	status, tag, body := b.ask(path, "")
	require.Equal(b.t, http.StatusOK, status, body)
	require.Regexp(b.t, `^W/"[0-9a-f]{32}"$`, tag)
	status, again, body := b.ask(path, tag)
	require.Equal(b.t, http.StatusNotModified, status)
	require.Equal(b.t, tag, again)
	require.Empty(b.t, body)
	return tag
}

func TestIfNoneMatchAnswers304(t *testing.T) {
	b := setup(t)
	seq := b.publish(structured("c1", "1", message("m1", "user", "hello"))).Seq
	seen := map[string]bool{}
	for _, path := range []string{
		"/v1/conversations/c1", "/v1/conversations/c1/files", "/v1/conversations/c1/context", "/v1/conversations/c1/context?format=markdown",
		"/v1/conversations/c1/export", "/v1/conversations", "/v1/conversations?limit=1",
	} {
		if path != "/v1/conversations" && path != "/v1/conversations?limit=1" {
			b.get(fmt.Sprintf("/v1/conversations/c1/context?at_least=%d", seq), nil)
		}
		tag := b.tag(path)
		require.False(t, seen[tag], "an ETag is of one path and query")
		seen[tag] = true
		for _, known := range []string{tag[2:], `"x", ` + tag + `, "y"`} {
			status, _, _ := b.ask(path, known)
			require.Equal(t, http.StatusNotModified, status, known)
		}
		status, _, _ := b.ask(path, `"x"`)
		require.Equal(t, http.StatusOK, status)
	}
	for _, path := range []string{"none", "c1/messages/none", "c1/tool-calls/none", "c1/summaries/none"} {
		status, tag, _ := b.ask("/v1/conversations/"+path, "*")
		require.Equal(t, http.StatusNotFound, status, "what is not there has no ETag")
		require.Empty(t, tag)
	}
}

func TestTheETagChangesWhenTheAnswerMayChange(t *testing.T) {
	b := setup(t)
	paths := []string{"/v1/conversations/c1", "/v1/conversations/c1/files", "/v1/conversations/c1/context", "/v1/conversations/c1/export", "/v1/conversations"}
	seq := b.publish(structured("c1", "0", message("m0", "user", "hello"))).Seq
	var old []string
	for i, p := range []events.Payload{
		message("m1", "assistant", "x"),
		&events.ToolCalled{ToolCallID: "t1", ToolName: "read_file", Arguments: []byte(`{"path":"/a"}`)},
		&events.ConversationUpdated{Title: new(string)},
		&events.ToolReturned{ToolCallID: "t1", Result: events.TextResult("x")},
	} {
		b.get(fmt.Sprintf("/v1/conversations/c1/context?at_least=%d", seq), nil)
		old = old[:0]
		for _, path := range paths {
			old = append(old, b.tag(path))
		}
		seq = b.publish(structured("c1", fmt.Sprint(i+1), p)).Seq
		b.get(fmt.Sprintf("/v1/conversations/c1/context?at_least=%d", seq), nil)
		for k, path := range paths {
			status, tag, _ := b.ask(path, old[k])
			require.Equal(t, http.StatusOK, status, "%s after event %d", path, i)
			require.NotEqual(t, old[k], tag)
		}
	}
}

// An agent asks for its context again and again while other agents work in the same project.
func TestTheETagOfAYoungConversationChangesOnlyWithWhatItSeesOfItsProject(t *testing.T) {
	b := setup(t)
	b.begun("first", "shop", "Round half up?")
	b.begun("second", "shop", "Round the vouchers")
	b.awaitAllOf("shop", b.head())
	before := b.tag("/v1/conversations/second/context")
	var text string
	b.get("/v1/conversations/second/context?format=markdown", &text)
	require.Contains(t, text, "Round half up?")

	b.begun("third", "shop", "Another one")
	b.publish(structured("first", "9", message("later", "user", "More")))
	b.awaitAllOf("shop", b.head())
	require.Equal(t, before, b.tag("/v1/conversations/second/context"), "what came later is no earlier session")

	b.write(http.StatusOK, http.MethodDelete, "/v1/conversations/first", "", "")
	b.awaitAllOf("shop", b.head())
	require.NotEqual(t, before, b.tag("/v1/conversations/second/context"))
	b.get("/v1/conversations/second/context?format=markdown", &text)
	require.NotContains(t, text, "Round half up?")
}

// awaitAllOf waits until a project and its conversations can be read as of a sequence.
func (b *bundle) awaitAllOf(project string, seq uint64) {
	b.t.Helper()
	b.get(projectPath(project, fmt.Sprintf("/context?at_least=%d", seq)), nil)
}

func TestTheETagDoesNotDependOnAtLeast(t *testing.T) {
	b := setup(t)
	seq := b.publish(structured("c1", "1", message("m1", "user", "hello"))).Seq
	waited := fmt.Sprintf("/v1/conversations/c1/context?at_least=%d&wait_ms=9000", seq)
	require.Equal(t, b.tag(waited), b.tag("/v1/conversations/c1/context"))
}

func TestAnAsOfAnswerKeepsItsETag(t *testing.T) {
	b := setup(t)
	then := b.publish(structured("c1", "1", message("m1", "user", "hello"))).Seq
	path := fmt.Sprintf("/v1/conversations/c1/context?as_of=%d", then)
	before := b.tag(path)
	now := b.publish(structured("c1", "2", message("m2", "user", "bye"))).Seq
	b.get(fmt.Sprintf("/v1/conversations/c1/context?at_least=%d", now), nil)
	require.Equal(t, before, b.tag(path))
	require.NotEqual(t, before, b.tag("/v1/conversations/c1/context"))
}

func TestABranchsETagChangesOnlyWhenAnAncestorIsDeleted(t *testing.T) {
	b := setup(t)
	b.publish(structured("old", "1", message("m1", "user", "hello")))
	b.publish(structured("mid", "1", &events.ConversationStarted{BranchedFrom: &events.BranchedAt{ConversationID: "old", MessageID: "m1"}}))
	seq := b.publish(structured("new", "1", &events.ConversationStarted{BranchedFrom: &events.BranchedAt{ConversationID: "mid", MessageID: "m1"}})).Seq
	b.get(fmt.Sprintf("/v1/conversations/new/context?at_least=%d", seq), nil)
	before := b.tag("/v1/conversations/new/context")
	seq = b.publish(structured("old", "2", message("m2", "user", "more"))).Seq
	b.get(fmt.Sprintf("/v1/conversations/old/context?at_least=%d", seq), nil)
	require.Equal(t, before, b.tag("/v1/conversations/new/context"))
	seq = b.publish(structured("old", "3", &events.ConversationDeleted{})).Seq
	b.refused(http.StatusNotFound, http.MethodGet, fmt.Sprintf("/v1/conversations/old/context?at_least=%d", seq), nil, "")
	require.NotEqual(t, before, b.tag("/v1/conversations/new/context"))
}

// A client keeps its answers while the server restarts with other settings.
func TestTheETagDependsOnHowLargeResultsAreShown(t *testing.T) {
	var mode atomic.Value // of conversations with the profile "any"
	f := setupFront(t, func(c *httpapi.Config) {
		c.Condense = func(profile string) string { return map[string]string{"any": mode.Load().(string)}[profile] }
	})
	mode.Store(window.CondenseOff)
	seq := f.publish(structured("c1", "1", &events.ConversationStarted{Profile: "any"})).Seq
	ask := func(path, known string) (int, string) {
		response, _ := raw(t, f.HTTPURL(), fmt.Sprintf("GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nIf-None-Match: %s\r\n\r\n", path, known))
		return response.StatusCode, response.Header.Get("ETag")
	}
	path := fmt.Sprintf("/v1/conversations/c1/context?at_least=%d", seq)
	chosen := path + "&condense=clear"
	status, tag := ask(path, "none")
	require.Equal(t, http.StatusOK, status)
	_, own := ask(chosen, "none")

	mode.Store(window.CondenseExtractive)
	status, other := ask(path, tag)
	require.Equal(t, http.StatusOK, status)
	require.NotEqual(t, tag, other)
	status, _ = ask(path, other)
	require.Equal(t, http.StatusNotModified, status)
	status, _ = ask(chosen, own)
	require.Equal(t, http.StatusNotModified, status, "the request itself says how")
}
