package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
)

type aboutScope struct {
	Scope         httpapi.NamedScope
	Conversations []httpapi.ScopeConversation
	More          bool
}

func (b *bundle) aboutScope(query string) (found aboutScope) {
	b.t.Helper()
	b.get(projectPath(indexedRoot, "/code/conversations?"+query), &found)
	return found
}

// mentionsOf formats mentions as "c: text upload/retry.go:12, reference a.go:3 f".
func mentionsOf(found aboutScope) []string {
	list := []string{}
	for _, c := range found.Conversations {
		one := c.ID + ":"
		for i, m := range c.Mentions {
			one += map[bool]string{true: " ", false: ", "}[i == 0] + m.By + " " + m.As
		}
		list = append(list, one)
	}
	return list
}

func TestConversationsThatNameAFunctionAreFound(t *testing.T) {
	b := setup(t)
	b.file("upload/retry.go", "Retry", retryText) // lines 10 to 17
	b.file("parse.go", "Parser.Close", "func (p *Parser) Close() {}")
	b.file("log.go", "Log.Close", "func (l *Log) Close() {}")
	b.scanned(true)
	start := func(id, cwd string, payloads ...events.Payload) uint64 {
		return b.tell(id, append([]events.Payload{&events.ConversationStarted{Cwd: cwd}}, payloads...)...)
	}
	start("place", indexedRoot, message("u", "user", "what does upload/retry.go:12 do?"), message("a", "assistant", "It is in a loop."))
	start("name", indexedRoot, message("u", "user", "why is it sent twice?"), message("a", "assistant", "`Retry` sends it again."), message("a2", "assistant", "So Retry(1) would do."))
	start("declared", indexedRoot, referring("u", events.Reference{File: "/w/cli/upload/retry.go", StartLine: 15, EndLine: 40}), referring("u2", events.Reference{File: "retry.go", Name: "Retry"}))
	start("prose", indexedRoot, message("u", "user", "Retry the upload of upload/retry.go"), message("a", "assistant", "os.Retry() in upload/retry.go:99"))
	start("elsewhere", "/w/other", message("u", "user", "`Retry` and upload/retry.go:12 of another project"))
	last := start("close", indexedRoot, message("u", "user", "Log.Close hangs"))
	b.get(projectPath(indexedRoot, fmt.Sprint("/code/files?at_least=", last)), nil)

	found := b.aboutScope(fmt.Sprint("name=Retry&at_least=", last))
	require.Equal(t, httpapi.NamedScope{Path: "upload/retry.go", Root: indexedRoot, Name: "Retry", Kind: "function", StartLine: 10, EndLine: 17}, found.Scope)
	want := []string{"declared: reference retry.go Retry, reference /w/cli/upload/retry.go:15-40", "name: text Retry, text Retry", "place: text upload/retry.go:12"}
	require.Equal(t, want, mentionsOf(found))
	require.False(t, found.More)
	for _, query := range []string{"file=retry.go&line=12", "file=/w/cli/upload/retry.go&line=17", "file=/home/else/cli-2/upload/retry.go&line=17", "file=upload/retry.go&name=Retry"} {
		require.Equal(t, want, mentionsOf(b.aboutScope(query)), query)
	}
	found = b.aboutScope("name=Retry&limit=1")
	require.Equal(t, want[:1], mentionsOf(found))
	require.True(t, found.More)
	require.Equal(t, []string{"close: text Log.Close"}, mentionsOf(b.aboutScope("name=Log.Close")))
	require.Empty(t, b.aboutScope("name=Close&file=parse.go").Conversations)

	// The function moves. What was said before was about where it stood then.
	b.file("upload/retry.go", "Retry", retryText+"\n}\n}\n}")
	moved := b.tell("code:"+indexedRoot, &events.CodeIndexed{Project: indexedRoot, Path: "upload/retry.go", Hash: fmt.Sprintf("%064d", 1), Language: "go", Lines: 99, Scopes: []events.CodeScope{
		{Name: "First", Kind: "function", StartLine: 10, EndLine: 17, Text: "func First() {}"}, {Name: "Retry", Kind: "function", StartLine: 50, EndLine: 57, Text: retryText},
	}})
	moved = max(moved, b.tell("place", message("u2", "user", "and upload/retry.go:52?")))
	b.get(projectPath(indexedRoot, fmt.Sprint("/code/files?at_least=", moved)), nil)
	require.Equal(t, []string{"place: text upload/retry.go:52, text upload/retry.go:12", want[0], want[1]}, mentionsOf(b.aboutScope(fmt.Sprint("name=Retry&at_least=", moved))))
	require.Empty(t, b.aboutScope("name=First").Conversations)
}

func TestARequestThatMeansNoFunctionOrSeveralSaysSo(t *testing.T) {
	b := setup(t)
	b.file("parse.go", "Parser.Close", "func (p *Parser) Close() {}")
	b.file("log.go", "Log.Close", "func (l *Log) Close() {}")
	b.file("old/log.go", "main", "func main() {}")
	last := b.scanned(true)
	b.get(projectPath(indexedRoot, fmt.Sprint("/code/files?at_least=", last)), nil)
	for query, want := range map[string]string{
		"": "name is missing, or file and line", "file=log.go": "name is missing, or file and line", "line=3": "name is missing, or file and line", "name=Close&line=3": "file is missing", "file=/&line=3": "not the path of a file",
		"name=Close": "2 places are meant, name one by its file and line: log.go:10 Log.Close, parse.go:10 Parser.Close", "file=log.go&line=10": "2 places are meant",
	} {
		p := b.refused(http.StatusUnprocessableEntity, http.MethodGet, projectPath(indexedRoot, "/code/conversations?"+query), nil, "")
		require.Contains(t, p.Detail, want, query)
	}
	for query, want := range map[string]string{"name=Nobody": "holds nothing named Nobody", "file=log.go&line=99": "holds no code at log.go:99"} {
		p := b.refused(http.StatusNotFound, http.MethodGet, projectPath(indexedRoot, "/code/conversations?"+query), nil, "")
		require.Contains(t, p.Detail, want, query)
	}
	p := b.refused(http.StatusNotFound, http.MethodGet, projectPath("/w/unknown", "/code/conversations?name=x"), nil, "")
	require.Contains(t, p.Detail, "not indexed: run mneme index")
}

func TestAMessageThatNamesAFunctionIsFoundBehindThoseThatOnlyUseTheWord(t *testing.T) {
	b := setup(t)
	b.file("upload/retry.go", "Retry", retryText)
	b.scanned(true)
	list := []events.Payload{&events.ConversationStarted{Cwd: indexedRoot}}
	for i := range 20 {
		list = append(list, message(fmt.Sprint("m", i), "user", "Retry"))
	}
	last := b.tell("c", append(list, message("named", "assistant", "Of all the functions that I have read so far, `Retry` is the one that sends each part again."))...)
	require.Equal(t, []string{"c: text Retry"}, mentionsOf(b.aboutScope(fmt.Sprint("name=Retry&at_least=", last))))
}
