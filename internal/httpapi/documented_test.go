package httpapi_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

// An operation whose answers have an ETag says so, and that it may answer 304.
func TestTheDescriptionSaysWhichAnswersHaveAnETag(t *testing.T) {
	b := setup(t)
	b.file("upload/retry.go", "Retry", retryText)
	b.scanned(true)
	last := b.tell("c", &events.ConversationStarted{Project: indexedRoot}, message("m", "user", "hello"),
		&events.ToolCalled{ToolCallID: "k", ToolName: "Read", Arguments: []byte(`{"file_path":"/a.go"}`)})
	var document struct {
		Paths map[string]struct {
			Get *struct {
				Parameters []struct{ Name, In string }
				Responses  map[string]struct{ Headers map[string]any }
			}
		}
	}
	b.get("/openapi.json", &document)
	values := strings.NewReplacer("{id}", "c", "{project}", url.PathEscape(indexedRoot), "{message_id}", "m", "{tool_call_id}", "k", "{summary_id}", "none", "{seq}", "1")
	var failed []string // there is no such thing
	for path, item := range document.Paths {
		if item.Get == nil || path == "/v1/stream" {
			continue
		}
		query := url.Values{}
		for _, p := range item.Get.Parameters {
			switch p.Name {
			case "at_least":
				query.Set("at_least", fmt.Sprint(last))
			case "query":
				query.Set("query", "retry")
			case "file":
				if !strings.HasSuffix(path, "/search") {
					query.Set("file", "retry.go")
				}
			case "line":
				query.Set("line", "10")
			}
		}
		response, body := b.send(http.MethodGet, values.Replace(path)+"?"+query.Encode(), nil, nil)
		has := response.Header.Get("ETag") != ""
		if response.StatusCode != http.StatusOK {
			require.False(t, has, "%s: %s", path, body)
			failed = append(failed, path)
			continue
		}
		_, unchanged := item.Get.Responses["304"]
		_, header := item.Get.Responses["200"].Headers["ETag"]
		require.Equal(t, []bool{has, has}, []bool{unchanged, header}, path)
	}
	require.ElementsMatch(t, []string{"/v1/conversations/{id}/contexts/{seq}", "/v1/conversations/{id}/summaries/{summary_id}", "/v1/failed/{seq}", "/v1/doctor"}, failed)
}

// A context has no member that its description does not allow, whatever is asked for.
func TestTheDescriptionHasAllMembersOfAContext(t *testing.T) {
	b := setup(t)
	last := b.tell("c", &events.ConversationStarted{Project: "shop"}, message("m", "user", "hello"))
	var document struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	b.get("/openapi.json", &document)
	described := document.Components.Schemas["Context"].Properties
	for _, path := range []string{"/v1/conversations/c/context", "/v1/projects/shop/context"} {
		for _, more := range []string{"", "&include_markdown=true", "&explain=true"} {
			var answer map[string]any
			b.get(fmt.Sprintf("%s?at_least=%d%s", path, last, more), &answer)
			require.Subset(t, slices.Collect(maps.Keys(described)), slices.Collect(maps.Keys(answer)), path+more)
			_, text := answer["markdown"]
			require.Equal(t, strings.Contains(more, "markdown"), text, path+more)
		}
	}
}
