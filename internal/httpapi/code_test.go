package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
)

// aboutCode queries conversations about code and returns their ids and the answer.
func (b *bundle) aboutCode(query string) (ids []string, list []httpapi.CodeConversation, more bool) {
	b.t.Helper()
	var answer struct {
		Conversations []httpapi.CodeConversation
		More          bool
	}
	b.get("/v1/code/conversations?"+query, &answer)
	require.NotNil(b.t, answer.Conversations, "an empty list is [], not null")
	for _, c := range answer.Conversations {
		require.NotNil(b.t, c.References)
		require.NotNil(b.t, c.Accesses)
		ids = append(ids, c.ID)
	}
	return ids, answer.Conversations, answer.More
}

// referring returns a message that refers to code.
func referring(id string, list ...events.Reference) *events.MessageCreated {
	return &events.MessageCreated{MessageID: id, Role: "user", Content: "x", References: list}
}

func TestConversationsAreFoundByReferencesAndAccesses(t *testing.T) {
	b := setup(t)
	parse := events.Reference{File: "pkg/parser.go", StartLine: 3, EndLine: 9, Name: "Parse"}
	b.batch("both", &events.ConversationStarted{Title: "A parser"}, referring("m1", parse), call("k1", "Edit", `{"file_path":"/w/pkg/parser.go"}`))
	b.batch("touched", message("m1", "user", "x"), call("k1", "Read", `{"file_path":"/w/pkg/parser.go"}`), call("k2", "Read", `{"file_path":"/w/pkg/parser.go"}`), result("k2", "text", true))
	b.batch("failed", call("k1", "Read", `{"file_path":"/w/pkg/parser.go"}`), result("k1", "no such file", false))
	last := b.batch("spoke", referring("m1", events.Reference{File: "/w/pkg/parser.go", StartLine: 40}))

	ids, list, more := b.aboutCode(fmt.Sprintf("file=pkg/parser.go&at_least=%d", last))
	require.Equal(t, []string{"spoke", "touched", "both"}, ids, "the newest mention first")
	require.False(t, more)
	require.Equal(t, "A parser", list[2].Title)
	require.Equal(t, 1, list[2].MessageCount)
	require.Equal(t, []httpapi.CodeReference{{Seq: 2, Turn: 1, MessageID: "m1", Reference: parse}}, list[2].References)
	require.Equal(t, []httpapi.CodeAccess{{Path: "/w/pkg/parser.go", Kind: "write", Tool: "Edit", Turn: 1, Seq: 3, Count: 1}}, list[2].Accesses)
	require.Equal(t, []httpapi.CodeAccess{{Path: "/w/pkg/parser.go", Kind: "read", Tool: "Read", Turn: 1, Seq: 6, Count: 2}}, list[1].Accesses)

	for query, want := range map[string][]string{
		"file=parser.go&line=5": {"touched", "both"}, "file=parser.go&line=40": {"spoke", "touched", "both"}, "file=/w/pkg/parser.go": {"spoke", "touched", "both"},
		"name=Parse": {"both"}, "file=parser.go&name=Parse": {"both"}, "file=parser.go&name=Parse&line=10": nil, "file=lexer.go": nil, "name=parse": nil, "file=parser.go&tenant=other": nil,
	} {
		ids, _, _ = b.aboutCode(query)
		require.Equal(t, want, ids, query)
	}
	_, list, _ = b.aboutCode("file=/w/pkg/parser.go&line=5")
	require.Empty(t, list[1].References, "the reference is to another path, its own access is not")
	ids, list, more = b.aboutCode("file=parser.go&limit=2")
	require.Equal(t, []string{"spoke", "touched"}, ids)
	require.True(t, more)
	require.Len(t, list[1].Accesses, 1)

	b.do(http.StatusOK, http.MethodDelete, "/v1/conversations/spoke", nil, nil, nil)
	ids, _, _ = b.aboutCode(fmt.Sprintf("file=pkg/parser.go&at_least=%d", last+1))
	require.Equal(t, []string{"touched", "both"}, ids)
}

func TestFoundConversationsShowReferencesAndAccesses(t *testing.T) {
	b := setup(t)
	file := events.Reference{File: "/a.go"}
	b.batch("c", referring("m1", file), call("k1", "Read", `{"file_path":"/a.go"}`))
	for i := range 3 { // with newer accesses than c's
		b.batch(fmt.Sprint("other", i), call("k1", "Read", `{"file_path":"/a.go"}`))
	}
	last := b.publish(structured("c", "late", referring("m2", file))).Seq
	ids, list, more := b.aboutCode(fmt.Sprintf("file=a.go&limit=1&at_least=%d", last))
	require.Equal(t, []string{"c"}, ids)
	require.True(t, more)
	require.Len(t, list[0].References, 2)
	require.Len(t, list[0].Accesses, 1)
}

func TestTheCodeETagCoversBothReadModels(t *testing.T) {
	b := setup(t)
	path := "/v1/code/conversations?file=a.go"
	var old string
	for i, p := range []events.Payload{referring("m1", events.Reference{File: "/a.go"}), call("k1", "Read", `{"file_path":"/a.go"}`)} {
		seq := b.publish(structured("c", fmt.Sprint(i), p)).Seq
		b.aboutCode(fmt.Sprintf("file=a.go&at_least=%d", seq))
		tag := b.tag(path)
		require.NotEqual(t, old, tag)
		old = tag
	}
}

func TestACodeSearchWithoutFileOrNameIsRefused(t *testing.T) {
	b := setup(t)
	for query, location := range map[string]string{
		"": "query.file", "line=3": "query.file", "line=3&name=Parse": "query.file", "file=/": "query.file", "file=.": "query.file", "file=": "query.file", "name=": "query.name",
		"file=a.go&line=0": "query.line", "file=a.go&line=x": "query.line", "file=a.go&limit=0": "query.limit", "file=a.go&limit=101": "query.limit",
		"file=" + strings.Repeat("x", 5000): "query.file", "file=a.go&as_of=1": "query.as_of", "file=a.go&at_least=99": "query.at_least",
	} {
		p := b.refused(http.StatusUnprocessableEntity, http.MethodGet, "/v1/code/conversations?"+query, nil, "")
		require.NotEmpty(t, p.Errors, query)
		require.Equal(t, location, p.Errors[0].Location, query)
	}
	p := b.refused(http.StatusUnprocessableEntity, http.MethodGet, "/v1/code/conversations", nil, "")
	require.Contains(t, p.Detail, "file or name is missing")
}
