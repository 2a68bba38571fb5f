package window_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/window"
)

// describing counts the searches of a context. If whole is set, each describes all hits at once.
type describing struct {
	window.Recall
	whole bool
	count int
}

func (s *describing) Search(ctx context.Context, id events.ConversationID, q recall.Query) (window.Found, error) {
	s.count++
	if s.whole {
		q.Limit = max(q.Limit, q.Most)
	}
	return s.Recall.Search(ctx, id, q)
}

// Most contexts describe only the best hits. One full of short messages needs more, and is the same as if all had been
// described at once.
func TestAContextIsTheSameHoweverManyHitsAreDescribedAtFirst(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	c := newTalk(t, "c")
	for i := range 1_500 {
		c.user(fmt.Sprintf("zebra %d", i)).assistant(fmt.Sprint("ok ", i))
	}
	s.apply(c.events)
	for _, tt := range []struct {
		name     string
		req      window.Request
		searches int
	}{
		{"short messages", window.Request{MaxChars: 60_000, Strategy: window.StrategyRelevant, Query: "zebra"}, 2},
		{"candidates", window.Request{MaxChars: 1_000, Strategy: window.StrategyRelevant, Query: "zebra", Candidates: true}, 0},
		{"few needed", window.Request{MaxChars: 3_000, Query: "zebra"}, 1},
	} {
		var shown []string
		for _, whole := range []bool{false, true} {
			src := s.source()
			counted := &describing{Recall: src.Recall, whole: whole}
			tt.req.Conversation, src.Recall = idOf("c"), counted
			got, err := window.Build(t.Context(), src, tt.req)
			require.NoError(t, err)
			text, err := json.Marshal([]any{got, got.Manifest})
			require.NoError(t, err)
			shown = append(shown, string(text))
			if !whole && tt.searches > 0 {
				require.Equal(t, tt.searches, counted.count, tt.name)
			}
		}
		require.Equal(t, shown[1], shown[0], tt.name)
	}
}
