package window_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/window"
)

// Contexts of recorded sessions of coding agents, one at a time, each built a second time: the cost of a context apart
// from the API.
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

// BenchmarkLength reads a conversation of 10,000 turns and a copy of its last 100, in turn: what
// the length of a conversation costs a context. It reports how many times the long one takes.
func BenchmarkLength(b *testing.B) {
	const long, short = 10_000, 100
	texts := map[string][]string{} // by role
	all := recordings(b)
	for _, id := range sorted(all) {
		for _, e := range all[id] {
			var m events.MessageCreated
			if strings.HasPrefix(e.Type, "dev.mneme.message.created.") && json.Unmarshal(e.Data, &m) == nil && m.Content != "" {
				texts[m.Role] = append(texts[m.Role], m.Content)
			}
		}
	}
	talks := map[int]*talk{}
	s := newStore(b)
	for _, turns := range []int{long, short} {
		c := newTalk(b, strconv.Itoa(turns))
		for turn := long - turns; turn < long; turn++ {
			c.user(texts["user"][turn%len(texts["user"])])
			c.assistant(texts["assistant"][turn%len(texts["assistant"])])
		}
		for part := range slices.Chunk(c.events, 1_000) {
			s.apply(part)
		}
		talks[turns] = c
	}
	read := func(turns int) time.Duration {
		began := time.Now()
		_, err := window.Build(b.Context(), s.source(), window.Request{Conversation: idOf(talks[turns].id)})
		require.NoError(b, err)
		return time.Since(began)
	}
	read(long)
	read(short)
	var ratios []float64
	for b.Loop() {
		ratios = append(ratios, float64(read(long))/float64(read(short)))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "long/short")
}
