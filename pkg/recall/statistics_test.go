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
	q.Among.Count(one, q)
	q.Among.Count(other, q)
	q.Among.Count(&Index{}, q)
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
