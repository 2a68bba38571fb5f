package recall

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScoresAmongSeveralIndexesAreThoseOfOneThatHoldsEverything(t *testing.T) {
	texts := []string{"a rare zebra in the parser", "the parser fails", "the parser fails on quotes", "tests of the parser pass", "lunch"}
	all := indexOf(t, texts...)
	one, other := indexOf(t, texts[:1]...), indexOf(t, texts[1:]...)
	q := Query{Text: "zebra parser", Prefixes: []string{"fai"}, By: ByWords}
	q.Among = &Statistics{}
	q.Among.Count(one, q, 0)
	q.Among.Count(other, q, 0)
	q.Among.Count(&Index{}, q, 0)
	want := map[uint64]float64{}
	for _, h := range all.Search(Query{Text: q.Text, Prefixes: q.Prefixes, By: ByWords}) {
		want[h.Seq] = h.BM25
	}
	got := map[uint64]float64{}
	for _, h := range one.Search(q) {
		got[h.Seq] = h.BM25
	}
	for _, h := range other.Search(q) {
		got[h.Seq+1] = h.BM25
	}
	require.Len(t, got, 4)
	require.Equal(t, want, got)
	require.NotEqual(t, want[1], one.Search(Query{Text: q.Text, By: ByWords})[0].BM25, "alone, an index finds its own words common")
}

func TestStatisticsLeaveOutWhatIsNotAfterASequence(t *testing.T) {
	texts := []string{"a rare zebra in the parser", "the parser fails", "the parser fails on quotes", "tests of the parser pass", "lunch"}
	whole := indexOf(t, texts...)
	q := Query{Text: "zebra parser", Prefixes: []string{"fai"}}
	for after := range len(texts) + 2 {
		var got, want Statistics
		got.Count(whole, q, uint64(after))
		want.Count(indexOf(t, texts[min(after, len(texts)):]...), q, 0)
		require.Equal(t, []any{want.passages, want.length}, []any{got.passages, got.length}, "after %d", after)
		for _, word := range []string{"zebra", "parser", "fail"} {
			require.Equal(t, want.holding[word], got.holding[word], "%s after %d", word, after)
		}
	}
	var none Statistics
	none.Count(whole, Query{Text: "parser", AsOf: 2}, 3)
	require.Zero(t, none, "nothing is both after and up to")
}
