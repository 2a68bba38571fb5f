package window_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/pkg/window"
)

// Contexts of recorded sessions of coding agents, one at a time, in the second read: the cost of a
// context apart from the API.
func BenchmarkContext(b *testing.B) {
	all := recordings(b)
	s := newStore(b)
	var ids []string
	for _, id := range sorted(all) {
		if strings.HasPrefix(id, "claude_code:") {
			ids = append(ids, id)
			s.apply(all[id])
		}
	}
	require.NotEmpty(b, ids)
	for _, strategy := range []string{window.StrategyHybrid, window.StrategyRecent} {
		b.Run(strategy, func(b *testing.B) {
			read := func(i int) {
				_, err := window.Build(b.Context(), s.source(), window.Request{Conversation: idOf(ids[i%len(ids)]), Strategy: strategy})
				require.NoError(b, err)
			}
			for i := range ids {
				read(i)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				read(i)
			}
		})
	}
}
