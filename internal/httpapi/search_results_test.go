package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/view"
)

// ranIn publishes a conversation of a project in which tools ran, and returns the highest sequence.
func (b *bundle) ranIn(conversation, project string, more ...events.Payload) uint64 {
	b.t.Helper()
	return b.batch(conversation, append([]events.Payload{&events.ConversationStarted{Project: project, Title: "About " + conversation}, message("u", "user", "Make the parser work.")}, more...)...)
}

// resultsAnswer is the answer of a search among tool results of a project.
type resultsAnswer struct {
	Conversations []httpapi.FoundConversation `json:"conversations"`
	httpapi.FoundTools
}

func (b *bundle) results(parameters string) (a resultsAnswer, calls []string) {
	b.t.Helper()
	b.get("/v1/search?"+parameters, &a)
	require.NotNil(b.t, a.Conversations, "an empty list is [], not null")
	for _, r := range a.Results {
		calls = append(calls, r.Conversation+"/"+r.ToolCallID)
	}
	return a, calls
}

func TestASearchFindsToolResultsInAllConversationsOfAProject(t *testing.T) {
	b := setup(t)
	b.ranIn("one", "p", call("k1", "Bash", `{"command":"go test ./pkg/parser"}`), result("k1", "--- FAIL: TestQuotes, unexpected quote in the parser", false))
	b.ranIn("two", "p", call("k1", "Read", `{"file_path":"/w/pkg/parser.go"}`), result("k1", "package parser // quotes", true),
		call("k2", "Bash", `{"command":"ls"}`), result("k2", "README.md and other files", true))
	b.ranIn("elsewhere", "q", call("k1", "Bash", `{"command":"go test"}`), result("k1", "unexpected quote in the parser", false))
	last := b.ranIn("silent", "p")
	wait := fmt.Sprintf("&at_least=%d", last)

	a, calls := b.results("query=unexpected+quotes&project=p&kind=tool" + wait)
	require.Equal(t, []string{"one/k1", "two/k1"}, calls, "best first, of this project alone")
	require.Empty(t, a.Conversations)
	require.Equal(t, []int{2, 0}, []int{a.Searched, a.Left}, "conversations without results are none")
	r := a.Results[0]
	require.Equal(t, []any{"About one", "Bash", "go test ./pkg/parser", 1.0}, []any{r.Title, r.ToolName, r.Argument, r.Relevance})
	require.Less(t, a.Results[1].Relevance, 1.0)
	require.NotEmpty(t, r.Highlights)

	for parameters, want := range map[string][]string{
		"project=p&kind=tool":                                   {"two/k2", "two/k1", "one/k1"}, // newest first
		"project=p&kind=tool&limit=1":                           {"two/k2"},
		"project=p&tool=bash":                                   {"two/k2", "one/k1"},
		"project=p&tool=Bash&query=parser":                      {"one/k1"},
		"project=p&file=parser.go":                              {"two/k1"},
		"project=p&kind=tool&contains=unexpected+quote":         {"one/k1"},
		"project=p&kind=tool&without=quotes":                    {"two/k2", "one/k1"},
		"project=p&kind=tool&query=parser+-unexpected":          {"two/k1"},
		"project=p&kind=tool&query=%22other+files%22":           {"two/k2"},
		"project=p&kind=tool&query=-unexpected&syntax=plain":    {"one/k1"},
		"project=p&kind=tool&query=zebra":                       nil,
		"project=nobody&kind=tool&query=parser":                 nil,
		fmt.Sprint("project=p&kind=tool&from_seq=", r.Seq+1):    {"two/k2", "two/k1"},
		"project=p&kind=tool&since=2100-01-01T00:00:00Z":        nil,
		"project=p&kind=tool&until=1999-01-01T00:00:00Z":        nil,
		"project=p&kind=tool&query=parser&tenant=somebody-else": nil,
	} {
		_, calls := b.results(parameters)
		require.Equal(t, want, calls, parameters)
	}

	a, calls = b.results("query=parser&project=p&kind=all")
	require.Len(t, a.Conversations, 3)
	require.Len(t, calls, 2)
	a, calls = b.results("query=parser&project=p")
	require.NotEmpty(t, a.Conversations)
	require.Empty(t, calls, "not by default")
	require.Zero(t, a.Searched)
}

func TestABranchDoesNotShowTheToolResultsOfItsParentAgain(t *testing.T) {
	b := setup(t)
	last := b.ranIn("parent", "p", call("k1", "Bash", `{"command":"make"}`), result("k1", "zebra crossing", true), message("m", "assistant", "Done."))
	b.get(fmt.Sprintf("/v1/conversations/parent?at_least=%d", last), nil)
	last = b.batch("branch", &events.ConversationStarted{Project: "p", BranchedFrom: &events.BranchedAt{ConversationID: "parent", MessageID: "m"}},
		call("k2", "Bash", `{"command":"make again"}`), result("k2", "another zebra", true))
	_, calls := b.results(fmt.Sprintf("query=zebra&project=p&kind=tool&at_least=%d", last))
	require.ElementsMatch(t, []string{"parent/k1", "branch/k2"}, calls)
}

func TestASearchOfToolResultsSaysWhatItLeftOut(t *testing.T) {
	b := setup(t)
	var last uint64
	for i := range view.MaxToolConversations + 2 {
		last = b.ranIn(fmt.Sprint("c", i), "p", call("k", "Bash", `{"command":"make"}`), result("k", "zebra", true))
	}
	a, calls := b.results(fmt.Sprintf("query=zebra&project=p&kind=tool&limit=50&at_least=%d", last))
	require.Equal(t, []int{view.MaxToolConversations, 2}, []int{a.Searched, a.Left})
	require.Len(t, calls, 50)
	require.NotContains(t, calls, "c0/k", "the oldest ones")
	require.Contains(t, calls, fmt.Sprintf("c%d/k", view.MaxToolConversations+1))
}

func TestMessagesAndToolResultsOfAProjectAreListedByAFilterAlone(t *testing.T) {
	b := setup(t)
	last := b.ranIn("c", "p", message("m", "user", "hello"), call("k", "Bash", `{"command":"make"}`), result("k", "zebra", true), call("k2", "Read", `{"file_path":"a"}`), result("k2", "lion", true))
	_, calls := b.results(fmt.Sprintf("project=p&kind=all&tool=Bash&at_least=%d", last))
	require.Equal(t, []string{"c/k"}, calls)
}

func TestSearchesOfToolResultsThatMeanNothingAreRefused(t *testing.T) {
	b := setup(t)
	for parameters, location := range map[string]string{
		"": "query.query", "project=p": "query.query", "project=p&kind=all": "query.query",
		"query=x&kind=tool": "query.project", "query=x&kind=all": "query.project", "tool=Bash": "query.project",
		"query=x&project=p&kind=message&tool=Bash": "query.kind", "query=x&project=p&kind=tool&role=user": "query.kind", "query=x&project=p&tool=Bash&speaker=Ann": "query.kind",
		"query=x&kind=calls": "query.kind", "query=+": "query.query", "query=x&since=2026-02-01T00:00:00Z&until=2026-02-01T00:00:00Z": "query.until", "query=x&project=p&kind=tool&from_seq=2&to_seq=1": "query.to_seq", "query=x&role=system": "query.role",
	} {
		p := b.refused(http.StatusUnprocessableEntity, http.MethodGet, "/v1/search?"+parameters, nil, "")
		require.NotEmpty(t, p.Errors, parameters)
		require.Equal(t, location, p.Errors[0].Location, parameters)
	}
}
