package window_test

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/window"
	"mneme.dev/mneme/pkg/window/chat"
)

var longBase64 = regexp.MustCompile(`[A-Za-z0-9+/]{200}`)

func data(size int) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x01\x9a\xf7", size/3)))
}

// pictures is a conversation with images in each kind of row. The images of its first turn are older than any result that
// is shown whole.
func pictures(t *testing.T) window.Source {
	t.Helper()
	c := newTalk(t, "c").user("A zebra waits. ![it](data:image/png;base64,"+data(30_000)+") The giraffe is at the login page.").
		assistant("I look.").
		call("k1", "screenshot", args{"page": "login"}).
		result("k1", true, []any{args{"type": "image", "source": args{"type": "base64", "media_type": "image/png", "data": data(45_000)}}, args{"type": "text", "text": "a caption"}}).
		call("k2", "send", args{"mimeType": "image/jpeg", "data": data(21_000)}).result("k2", true, "sent").
		assistant("It waits.").user("And now?").assistant("I look again.").
		call("k3", "screenshot", args{"page": "start"}).result("k3", true, args{"content": []any{args{"type": "image", "data": data(27_000), "mimeType": "image/webp"}}}).
		call("k4", "screenshot", args{"page": "large"}).result("k4", true, []any{args{"type": "image", "media_type": "image/png", "source": args{"data": data(150_000)}}})
	failed, image := false, "data:image/png;base64,"+data(6_000)
	c.call("k5", "screenshot", args{"page": "none"}).add(&events.ToolReturned{ToolCallID: "k5", Success: &failed, Result: events.TextResult(image), Error: image})
	c.call("k6", "screenshot", args{"page": "none"}).add(&events.ToolReturned{ToolCallID: "k6", Success: &failed, Result: events.TextResult("half"), Error: "half " + image})
	c.call("k7", "photograph", args{}).result("k7", true, "left, right: "+image)
	c.call("k8", "photograph", args{}).result("k8", true, "left, right: "+strings.Replace(image, "AZr3", "AZr4", 1))
	s := newStore(t)
	s.apply(c.events)
	rows := view.Source{Messages: s.graph, Rows: s.graph}
	return window.Source{Graph: s.indexes.Graph(s.graph, ""), Files: s.files, Recall: s.indexes.Of(rows)}
}

func TestAContextNamesImagesInsteadOfShowingTheirData(t *testing.T) {
	t.Parallel()
	src := pictures(t)
	for _, strategy := range []string{"hybrid", "recent", "relevant", "levels", "pruned"} {
		for _, query := range []string{"", "giraffe"} {
			for range 2 { // the second time from the cache
				c, err := window.Build(t.Context(), src, window.Request{
					Conversation: idOf("c"), Strategy: strategy, Query: query, MaxChars: 100_000, Condense: window.CondenseOff,
				})
				require.NoError(t, err)
				anthropic, err := json.Marshal(chat.Anthropic(c, chat.Inline))
				require.NoError(t, err)
				openAI, err := json.Marshal(chat.OpenAI(c, chat.Inline))
				require.NoError(t, err)
				for _, shown := range []string{c.Markdown(), string(anthropic), string(openAI)} {
					require.Empty(t, longBase64.FindString(shown), strategy)
					for _, want := range []string{"[image/png, 30 kB]", "[image/webp, 27 kB]", "The giraffe is"} {
						require.Contains(t, shown, want, strategy)
					}
					if strategy != "pruned" || query == "" {
						require.Contains(t, shown, "[image/png, 45 kB]", strategy)
						require.Contains(t, shown, "a caption", strategy)
						require.Contains(t, shown, "[image/jpeg, 21 kB]", strategy)
					}
				}
			}
		}
	}
}

func TestASearchNamesImagesInsteadOfShowingTheirData(t *testing.T) {
	t.Parallel()
	src := pictures(t)
	hits, _, _, err := window.Search(t.Context(), src, window.SearchQuery{Conversation: idOf("c"), Text: "giraffe", Limit: 1, MaxChars: 80, By: recall.ByWords})
	require.NoError(t, err)
	require.Len(t, hits, 1)
	require.Contains(t, hits[0].Text, "The giraffe is at the login page.", "the place that was found")
	require.Empty(t, longBase64.FindString(hits[0].Text))

	found, _, _, err := window.SearchTools(t.Context(), src, window.SearchQuery{Conversation: idOf("c"), Text: "caption", Limit: 5, MaxChars: 2_000})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Contains(t, found[0].Text, `"data":"[image/png, 45 kB]"`)
	require.Contains(t, found[0].Text, "a caption")

	found, _, _, err = window.SearchTools(t.Context(), src, window.SearchQuery{Conversation: idOf("c"), Text: "left right", Limit: 5, MaxChars: 2_000})
	require.NoError(t, err)
	require.Len(t, found, 2, "two images are two results, although they have the same name")

	found, _, _, err = window.SearchTools(t.Context(), src, window.SearchQuery{Conversation: idOf("c"), Text: "half", Limit: 5, MaxChars: 8_000})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, "half\nhalf [image/png, 6 kB]", found[0].Text)
}
