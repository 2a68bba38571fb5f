package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
)

// foundConversations runs a search and returns the ids and the conversations found.
func (b *bundle) foundConversations(path string) (ids []string, list []httpapi.FoundConversation) {
	b.t.Helper()
	var answer struct {
		Conversations []httpapi.FoundConversation
		Model         string `json:"embedding_model"`
	}
	b.get(path, &answer)
	require.NotNil(b.t, answer.Conversations, "an empty list is [], not null")
	require.NotEmpty(b.t, answer.Model)
	for _, c := range answer.Conversations {
		require.NotNil(b.t, c.Messages)
		ids = append(ids, c.ID)
	}
	return ids, answer.Conversations
}

func TestSearchCoversAllConversationsOfATenant(t *testing.T) {
	b := setup(t)
	b.batch("rome", &events.ConversationStarted{Title: "A journey"}, message("m1", "user", "Where is the hotel in Rome?"), message("m2", "assistant", "Near the Tiber."))
	last := b.batch("garden", message("m1", "user", "Plan the garden."), message("m2", "assistant", "With a hotel for insects?"), call("k", "Read", `{"file_path":"/rome"}`), result("k", "zebra", true))

	ids, list := b.foundConversations(fmt.Sprintf("/v1/search?query=%s&at_least=%d", url.QueryEscape("the hotel in Rome"), last))
	require.Equal(t, []string{"rome", "garden"}, ids)
	require.Equal(t, "A journey", list[0].Title)
	require.Equal(t, 2, list[0].MessageCount)
	require.Equal(t, 1.0, list[0].Relevance)
	require.InDelta(t, list[0].Score, list[0].Parts.Sum(), 1e-9)
	require.Equal(t, "m1", list[0].Messages[0].MessageID)
	require.Equal(t, "user", list[0].Messages[0].Role)
	require.EqualValues(t, 2, list[0].Messages[0].Seq)
	require.Equal(t, "Where is the hotel in Rome?", list[0].Messages[0].Text)

	ids, list = b.foundConversations("/v1/search?query=hotel&limit=1&messages=0")
	require.Len(t, ids, 1)
	require.Empty(t, list[0].Messages)
	for _, nothing := range []string{"zebra", "the of and", "🎉🎊", strings.Repeat("zyx ", 25_000)} {
		ids, _ = b.foundConversations("/v1/search?query=" + url.QueryEscape(nothing))
		require.Empty(t, ids)
	}
	ids, _ = b.foundConversations("/v1/search?query=hotel&tenant=other")
	require.Empty(t, ids, "not of another tenant")

	b.do(http.StatusOK, http.MethodDelete, "/v1/conversations/rome", nil, nil, nil)
	ids, _ = b.foundConversations(fmt.Sprintf("/v1/search?query=hotel&at_least=%d", last+1))
	require.Equal(t, []string{"garden"}, ids)
}

func TestSearchHonorsAtLeast(t *testing.T) {
	b := setup(t)
	for i := range 20 { // in several partitions
		id := fmt.Sprint("c", i)
		last := b.batch(id, message("m", "user", fmt.Sprint("zebra", i)))
		ids, _ := b.foundConversations(fmt.Sprintf("/v1/search?query=zebra%d&at_least=%d", i, last))
		require.Equal(t, []string{id}, ids)
	}
}

func TestSimilarHonorsAtLeast(t *testing.T) {
	b := setup(t)
	b.batch("c", message("m", "user", "zebra"))
	for i := range 20 { // in several partitions
		last := b.batch(fmt.Sprint("c", i), message("m", "user", "zebra"))
		ids, _ := b.foundConversations(fmt.Sprintf("/v1/conversations/c/similar?limit=50&at_least=%d", last))
		require.Len(t, ids, i+1)
	}
}

func TestOnlySearchesWithAtLeastHaveAnETag(t *testing.T) {
	b := setup(t)
	last := b.batch("c", message("m1", "user", "zebra"))
	for _, path := range []string{"/v1/search?query=zebra", "/v1/conversations/c/similar?limit=1"} {
		waits := fmt.Sprintf("%s&at_least=%d", path, last)
		status, tag, _ := b.ask(waits, "")
		require.Equal(t, http.StatusOK, status)
		require.NotEmpty(t, tag)
		status, _, _ = b.ask(waits, tag)
		require.Equal(t, http.StatusNotModified, status)
		b.do(http.StatusOK, http.MethodGet, path, map[string]string{"If-None-Match": tag}, nil, nil) // a later answer may find more without a new event
	}
	status, old, _ := b.ask(fmt.Sprintf("/v1/search?query=zebra&at_least=%d", last), "")
	require.Equal(t, http.StatusOK, status)
	next := b.batch("d", message("m1", "user", "lion"))
	status, _, _ = b.ask(fmt.Sprintf("/v1/search?query=zebra&at_least=%d", next), old)
	require.Equal(t, http.StatusOK, status)
}

func TestSimilarExcludesTheConversationItself(t *testing.T) {
	b := setup(t)
	for _, id := range []string{"one", "two"} {
		b.batch(id, message("m1", "user", "The parser fails on paths with quotes, in "+id), message("m2", "assistant", "I fix the parser."))
	}
	last := b.batch("other", message("m1", "user", "Lunch?"), message("m2", "assistant", "At noon, once the parser is done."))
	ids, _ := b.foundConversations(fmt.Sprintf("/v1/conversations/one/similar?at_least=%d", last))
	require.Equal(t, "two", ids[0])
	require.NotContains(t, ids, "one")
	ids, _ = b.foundConversations("/v1/conversations/one/similar?limit=1")
	require.Equal(t, []string{"two"}, ids)

	b.do(http.StatusCreated, http.MethodPost, "/v1/events?tenant=other", map[string]string{"Content-Type": events.ContentTypeEvent},
		structured("three", "1", message("m1", "user", "The parser fails on paths with quotes")), nil)
	b.do(http.StatusOK, http.MethodDelete, "/v1/conversations/two", nil, nil, nil)
	ids, _ = b.foundConversations(fmt.Sprintf("/v1/conversations/one/similar?at_least=%d", last+2))
	require.Equal(t, []string{"other"}, ids, "no conversation of another tenant, and no deleted one")
	b.refused(http.StatusNotFound, http.MethodGet, "/v1/conversations/two/similar", nil, "")
}

func TestInvalidSearchesAreRefused(t *testing.T) {
	b := setup(t)
	b.batch("c", message("m1", "user", "hello"))
	for path, location := range map[string]string{
		"/v1/search": "query.query", "/v1/search?query=": "query.query", "/v1/search?query=+": "query.query", "/v1/search?query=" + strings.Repeat("x", 100_001): "query.query",
		"/v1/search?query=x&limit=0": "query.limit", "/v1/search?query=x&limit=51": "query.limit", "/v1/search?query=x&max_chars=1": "query.max_chars",
		"/v1/search?query=x&as_of=1": "query.as_of", "/v1/search?query=x&at_least=99": "query.at_least",
		"/v1/conversations/c/similar?limit=0": "query.limit", "/v1/conversations/c/similar?query=x": "query.query",
	} {
		p := b.refused(http.StatusUnprocessableEntity, http.MethodGet, path, nil, "")
		require.NotEmpty(t, p.Errors, path)
		require.Equal(t, location, p.Errors[0].Location, path)
	}
	b.refused(http.StatusNotFound, http.MethodGet, "/v1/conversations/nobody/similar", nil, "")
	b.refused(http.StatusNotFound, http.MethodGet, "/v1/conversations/c/similar?tenant=other", nil, "")
}

func TestFiltersNarrowDownASearchOverConversations(t *testing.T) {
	b := setup(t)
	b.batch("a", &events.ConversationStarted{Title: "The parser", Project: "p"}, message("m1", "user", "Why does the parser fail on quotes?"), message("m2", "assistant", "The parser reads a quote twice."))
	b.batch("b", &events.ConversationStarted{Project: "p"}, message("m1", "user", "The parser fails again, with -race"), &events.MessageCreated{MessageID: "m2", Role: "user", Speaker: "Ann", Content: "My parser works."})
	last := b.batch("c", message("m1", "user", "parser, parser, parser"), call("k", "Bash", `{"command":"parser"}`), result("k", "the parser", true))
	found := func(parameters string) (list []string) {
		t.Helper()
		_, conversations := b.foundConversations(fmt.Sprintf("/v1/search?at_least=%d&%s", last, parameters))
		for _, c := range conversations {
			for _, m := range c.Messages {
				list = append(list, c.ID+"/"+m.MessageID)
			}
		}
		return list
	}
	newest := func(parameters string) (list []string) {
		t.Helper()
		var answer struct {
			Conversations []httpapi.FoundConversation
		}
		b.get(fmt.Sprintf("/v1/search?at_least=%d&%s", last, parameters), &answer)
		for _, c := range answer.Conversations {
			for _, m := range c.Messages {
				list = append(list, c.ID+"/"+m.MessageID)
			}
		}
		return list
	}
	for parameters, want := range map[string][]string{
		"query=parser&role=user":                                 {"a/m1", "b/m1", "b/m2", "c/m1"},
		"query=parser&role=assistant":                            {"a/m2"},
		"query=parser&role=user&project=p":                       {"a/m1", "b/m1", "b/m2"},
		"query=parser&speaker=Ann":                               {"b/m2"},
		"query=parser&from_seq=3&to_seq=5":                       {"a/m2", "b/m1"},
		"query=parser&since=2100-01-01T00:00:00Z":                nil,
		"query=parser&contains=quote":                            {"a/m2"},
		"query=parser&contains=quo*":                             {"a/m1", "a/m2"},
		"contains=parser+fails":                                  {"b/m1"},
		"query=parser&without=parser+fails&role=user":            {"a/m1", "b/m2", "c/m1"},
		"query=" + url.QueryEscape(`"parser fails"`):             {"b/m1"},
		"query=" + url.QueryEscape(`parser quo*`):                {"a/m1", "a/m2"},
		"query=" + url.QueryEscape("parser -fails"):              {"a/m1", "a/m2", "b/m2", "c/m1"},
		"syntax=plain&query=again+-race":                         {"b/m1", "b/m2"},
		"query=nothing&role=user":                                nil,
		"query=parser&role=user&project=nobody":                  nil,
		"query=parser&role=user&project=p&messages=0":            nil,
		"query=parser&role=user&project=p&kind=all":              {"a/m1", "b/m1", "b/m2"},
		"query=the+title+of+a+parser&role=assistant":             {"a/m2"},
		"query=parser&role=user&until=" + "2000-01-01T00:00:00Z": nil,
	} {
		require.ElementsMatch(t, want, found(parameters), parameters)
	}
	require.Equal(t, []string{"b/m2", "b/m1", "a/m1"}, newest("role=user&project=p"), "without words, the newest first")
	require.Equal(t, []string{"c/m1", "b/m2", "a/m1"}, newest("role=user&messages=1"))
	require.Equal(t, []string{"c/m1", "b/m2"}, newest("role=user&messages=1&limit=2"))
	require.Equal(t, []string{"a/m2", "a/m1"}, newest("query=quo*"))
	require.Equal(t, []string{"b/m2", "a/m2", "a/m1"}, newest("project=p&query=-again"))
	require.Equal(t, []string{"b/m1"}, newest("from_seq=4&to_seq=5&role=user"))
	require.Empty(t, newest("role=user&since=2100-01-01T00:00:00Z"))

	_, list := b.foundConversations("/v1/search?role=assistant&query=" + url.QueryEscape(`parser "a quote"`))
	m := list[0].Messages[0]
	var lit []string
	for _, h := range m.Highlights {
		lit = append(lit, m.Text[h.Start:h.End])
	}
	require.Equal(t, []string{"parser", "quote"}, lit)
	var answer searchAnswer
	b.get("/v1/search?query="+url.QueryEscape(`parser "a quote" -race`), &answer)
	require.Equal(t, []string{"a quote"}, answer.Contains)
	require.Equal(t, []string{"race"}, answer.Without)
}
