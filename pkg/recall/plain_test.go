package recall

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/recall/static"
)

// plainSearch is [Index.Search] written as its definition reads: step by step, over every message, with slices of its
// own.
func plainSearch(x *Index, q Query) []Hit {
	n := x.until(q.AsOf)
	if n == 0 {
		return nil
	}
	r := plain{x: x, n: n, beside: make([]float64, n), sessionOf: make([][]int, len(x.newest))}
	for i := range n {
		r.sessionOf[x.messages[i].session] = append(r.sessionOf[x.messages[i].session], i)
	}
	r.dense(q.Vector, x.until(q.EmbeddedUpTo))
	r.lexical(queryTerms(q.Text))
	r.asked = x.asked(q.Text, n)
	var hits []Hit
	for i := range n {
		if h := r.hit(i); h.Score > h.Parts.Role {
			hits = append(hits, h)
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
	if q.Limit > 0 {
		hits = hits[:min(len(hits), q.Limit)]
	}
	return hits
}

// plain is a ranking.
type plain struct {
	x         *Index
	n         int
	sessionOf [][]int // the messages of each session

	bm25    []float64 // by passage
	topBM25 []float64 // by message
	maxBM25 float64
	counts  float64   // the share of BM25 that counts
	whole   float64   // the sum of the idfs of the query's terms
	cosines []float64 // by passage; nil without vectors
	topCos  []float64 // by message
	beside  []float64 // by message: what it borrows from its neighbors
	asked   asked
}

// around returns the messages near a message in its session, with the share that either
// borrows from the other.
func (r *plain) around(i int) map[int]float64 {
	all := r.sessionOf[r.x.messages[i].session]
	place := slices.Index(all, i)
	near := map[int]float64{}
	for d, share := range standard.nearness {
		if before := place - d - 1; before >= 0 {
			near[all[before]] = share
		}
		if after := place + d + 1; after < len(all) {
			near[all[after]] = share
		}
	}
	return near
}

func (r *plain) dense(query Vector, messages int) {
	x := r.x
	if query == nil || len(query) != x.width {
		return
	}
	cosines, sum, known := make([]float64, x.firsts[r.n]), 0.0, 0
	for p := range cosines {
		if cosines[p] = math.NaN(); int(x.passages[p].message) < messages && p < len(x.norms) && x.norms[p] != 0 {
			var product int
			for d := range query {
				product += int(query[d]) * int(x.vectors[p*x.width+d])
			}
			cosines[p] = float64(product) / float64(query.norm()*x.norms[p])
			sum += cosines[p]
			known++
		}
	}
	if known == 0 {
		return
	}
	r.cosines, r.topCos = cosines, make([]float64, r.n)
	for p := range cosines {
		if math.IsNaN(cosines[p]) {
			cosines[p] = sum / float64(known)
		}
		i := x.passages[p].message
		r.topCos[i] = max(r.topCos[i], cosines[p])
	}
	for i := range r.beside {
		most := 0.0
		for j, share := range r.around(i) {
			most = max(most, float64(share*(r.topCos[j]-r.topCos[i])))
		}
		r.beside[i] += float64(standard.dense() * most)
	}
}

func (r *plain) lexical(terms []string) {
	x, total := r.x, int(r.x.firsts[r.n])
	r.bm25, r.topBM25 = make([]float64, total), make([]float64, r.n)
	gained := make([]float64, r.n)
	for _, word := range terms {
		id, ok := x.termOf[word]
		if !ok {
			r.whole += idfOf(0, total)
			continue
		}
		list := slices.DeleteFunc(slices.Clone(x.postings[id]), func(p posting) bool { return int(p.passage) >= total })
		r.whole += idfOf(len(list), total)
		scores := make([]float64, r.n)
		for _, p := range list {
			passage := x.passages[p.passage]
			mean := float64(x.sums[total]) / float64(total)
			score := standard.bm25(idfOf(len(list), total), p.n, standard.norm(float64(passage.length), mean))
			r.bm25[p.passage] += score
			scores[passage.message] = max(scores[passage.message], score/r.penalty(int(passage.message)))
		}
		for i := range gained {
			most := 0.0
			for j, share := range r.around(i) {
				most = max(most, float64(share*(scores[j]-scores[i])))
			}
			gained[i] += most
		}
	}
	for p, score := range r.bm25 {
		i := x.passages[p].message
		r.topBM25[i] = max(r.topBM25[i], score/r.penalty(int(i)))
		r.maxBM25 = max(r.maxBM25, r.topBM25[i])
	}
	if r.cosines != nil {
		held := 0.0
		for i, cosine := range r.topCos {
			held = max(held, r.topBM25[i]/r.maxBM25*cosine)
		}
		agree := standard.agree
		if nearest := slices.Max(r.topCos); nearest > 0 {
			r.counts = min(1, max(0, (held/nearest-agree.least)/(agree.full-agree.least)))
		} else {
			r.counts = 1
		}
	}
	for i := range r.beside {
		r.beside[i] += r.relative(gained[i])
	}
}

func (r *plain) penalty(i int) float64 {
	first, end := r.x.span(i)
	return 1 + float64(standard.length*ln(float64(end-first)))
}

func (r *plain) relative(bm25 float64) float64 {
	switch {
	case r.maxBM25 == 0:
		return 0
	case r.cosines == nil:
		return bm25 / r.maxBM25
	}
	return float64(standard.lexical * (bm25 / (max(r.maxBM25, float64(standard.expect*r.whole)) / r.counts)))
}

func (r *plain) own(i int) (lexical, dense float64) {
	lexical = r.relative(r.topBM25[i])
	if r.cosines != nil {
		dense = float64(standard.dense() * r.topCos[i])
	}
	return lexical, dense
}

// session returns what a session adds to the scores of its messages.
func (r *plain) session(s int32) float64 {
	var scores []float64
	for _, i := range r.sessionOf[s] {
		lexical, dense := r.own(i)
		scores = append(scores, lexical+dense+r.beside[i])
	}
	slices.SortFunc(scores, func(a, b float64) int { return cmp.Compare(b, a) })
	scores = scores[:min(len(scores), sessionBest)]
	sum := 0.0
	for _, score := range scores {
		sum += score
	}
	return float64(standard.session * (sum / float64(len(scores))))
}

func (r *plain) hit(i int) Hit {
	m := r.x.messages[i]
	h := Hit{Seq: m.seq}
	h.Parts = Parts{Neighbours: r.beside[i], Session: r.session(m.session)}
	h.Parts.Lexical, h.Parts.Dense = r.own(i)
	if r.asked.speaker >= 0 && m.speaker == r.asked.speaker {
		h.Parts.Speaker = standard.speaker
	}
	if slices.ContainsFunc(r.asked.dates, m.date.Matches) {
		h.Parts.Date = standard.date
	}
	if m.speaker < 0 && m.role == r.asked.role {
		h.Parts.Role = standard.role
	}
	h.Score = h.Parts.Sum()
	first, end := r.x.span(i)
	best := math.Inf(-1)
	for p := first; p < end; p++ {
		h.BM25 = max(h.BM25, r.bm25[p])
		score := r.relative(r.bm25[p])
		if r.cosines != nil {
			score += float64(standard.dense() * r.cosines[p])
		}
		if score > best {
			best = score
			h.Passage, h.Start, h.End = p-first, int(r.x.passages[p].start), int(r.x.passages[p].end)
		}
	}
	if r.cosines != nil {
		h.Cosine = r.topCos[i]
	}
	return h
}

// The fast search finds what the plain one finds, to the bit: over sessions that take turns,
// long messages, missing vectors, positions in the past and limits.
func TestFastSearchEqualsThePlainOne(t *testing.T) {
	t.Parallel()
	words := strings.Fields("sprint schema migration deploy failing test parser index cache token the of Ann 8 May")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 300).Draw(t, "words"), " ")
		})
		width := rapid.SampledFrom([]int{3, 32, 128}).Draw(t, "width")
		vector := rapid.Custom(func(t *rapid.T) Vector {
			if rapid.IntRange(0, 5).Draw(t, "missing") == 0 {
				return nil
			}
			return Vector(rapid.SliceOfN(rapid.Int8(), width, width).Draw(t, "vector"))
		})
		x, seq := &Index{}, uint64(0)
		for range rapid.IntRange(1, 40).Draw(t, "messages") {
			seq += uint64(rapid.IntRange(1, 3).Draw(t, "gap"))
			b := NewBag(Message{
				Role: rapid.SampledFrom([]string{"user", "assistant", "system"}).Draw(t, "role"), Speaker: rapid.SampledFrom([]string{"", "Ann", "Bob"}).Draw(t, "speaker"),
				Session: rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "session"), Content: text.Draw(t, "text"),
				Time: time.Date(2023, 5, rapid.IntRange(1, 20).Draw(t, "day"), 0, 0, 0, 0, time.UTC),
			})
			require.NoError(t, x.Add(seq, b))
			var vectors []Vector
			for range b.Passages {
				vectors = append(vectors, vector.Draw(t, "vector"))
			}
			if rapid.Bool().Draw(t, "embedded") {
				require.NoError(t, x.SetVectors(seq, vectors))
			}
		}
		q := Query{
			Text: text.Draw(t, "query"), Vector: vector.Draw(t, "query vector"), Limit: rapid.IntRange(0, 30).Draw(t, "limit"),
			AsOf: rapid.Uint64Range(0, seq+1).Draw(t, "as of"), EmbeddedUpTo: rapid.Uint64Range(0, seq+1).Draw(t, "embedded up to"),
		}
		want := plainSearch(x, q)
		further := q
		further.Most = rapid.IntRange(0, 40).Draw(t, "most")
		requireFurther(t, x, further)
		for range 2 { // the second search uses slices of the first
			got := x.Search(q)
			require.Len(t, got, len(want))
			for i := range want {
				require.Equal(t, want[i], got[i])
			}
		}
	})
}

// requireFurther demands that a search says in short what a larger limit would find.
func requireFurther(t require.TestingT, x *Index, q Query) {
	hits, further := x.SearchFurther(q)
	all := q
	if all.Most = 0; q.Limit > 0 {
		all.Limit = max(q.Limit, q.Most)
	}
	want := plainSearch(x, all)
	require.GreaterOrEqual(t, len(want), len(hits))
	for i := range hits {
		require.Equal(t, want[i], hits[i])
	}
	if want = want[len(hits):]; len(hits) < q.Limit {
		require.Empty(t, want)
	}
	seqs, best := []uint64(nil), 0.0
	for _, h := range want {
		seqs, best = append(seqs, h.Seq), max(best, h.BM25)
	}
	require.ElementsMatch(t, seqs, further.Seqs)
	require.Equal(t, best, further.BM25)
}

// The same over recorded messages, which are enough for several goroutines and for all grades.
func TestFastSearchEqualsThePlainOneOnRecordings(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	x := recordedIndex(t, 12_000)
	for _, text := range []string{"fix the failing test of the session parser in pkg/store", "When did Caroline go to the support group?", "what did you say about May?"} {
		for _, limit := range []int{0, 1, 3_000} {
			q := Query{Text: text, Vector: Quantize(static.Embed(x.Unnamed(text, 0))), Limit: limit}
			require.Equal(t, plainSearch(x, q), x.Search(q))
		}
		requireFurther(t, x, Query{Text: text, Vector: Quantize(static.Embed(x.Unnamed(text, 0))), Limit: 1, Most: 5_000})
	}
}

func TestInnerProductsAreTheSameInAllImplementations(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.SampledFrom([]int{1, 7, 16, 32, 96, 128}).Draw(t, "width")
		n := rapid.IntRange(0, 5).Draw(t, "n")
		numbers := func(n int) []int8 {
			return rapid.SliceOfN(rapid.OneOf(rapid.Int8(), rapid.SampledFrom([]int8{-128, 127})), n, n).Draw(t, "numbers")
		}
		query, vectors := Vector(numbers(width)), numbers(n*width)
		got, plain := make([]int32, n), make([]int32, n)
		dots(widened(query), vectors, got)
		dotsPlain(widened(query), vectors, plain)
		require.Equal(t, plain, got)
		for i := range plain {
			require.Equal(t, dot(query, vectors[i*width:(i+1)*width]), plain[i])
		}
	})
}
