package recall

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// indexOf returns an index of one session's messages without speakers, with sequences 1, 2,
// 3, …
func indexOf(t testing.TB, texts ...string) *Index {
	x := &Index{}
	for i, text := range texts {
		require.NoError(t, x.Add(uint64(i+1), NewBag(Message{Role: "assistant", Content: text})))
	}
	return x
}

func seqs(hits []Hit) (seqs []uint64) {
	for _, h := range hits {
		seqs = append(seqs, h.Seq)
	}
	return seqs
}

func TestScoresFollowTheFormula(t *testing.T) {
	x := indexOf(t, "red apple apple", "green apple tree", "blue sky over green hills")
	hits := x.Search(Query{Text: "green apples, apples"})

	mean := (3.0 + 3 + 4) / 3 // "over" is a stop word
	idf := func(df float64) float64 { return math.Log(1 + (3-df+0.5)/(df+0.5)) }
	part := func(f, length float64) float64 { return f * 2.2 / (f + 1.2*(0.6+0.4*length/mean)) }
	want := []float64{idf(2) * part(2, 3), idf(2)*part(1, 3) + idf(2)*part(1, 3), idf(2) * part(1, 4)}
	require.Len(t, hits, 3)
	for _, h := range hits {
		assert.InDelta(t, want[h.Seq-1], h.BM25, 1e-12)
		assert.InDelta(t, want[h.Seq-1]/want[1], h.Parts.Lexical, 1e-12)
	}
}

func TestEmptyQueryOrNoMatchFindsNothing(t *testing.T) {
	x := &Index{}
	for i, text := range []string{"some words", "", "the"} {
		require.NoError(t, x.Add(uint64(i+1), NewBag(Message{Role: "user", Content: text})))
	}
	for _, query := range []string{"other", "", "the of a", "🎉🎉", "\xff"} {
		assert.Empty(t, x.Search(Query{Text: query}), query)
	}
	assert.Empty(t, (&Index{}).Search(Query{Text: "word", Vector: Vector{1}}))
	assert.Empty(t, indexOf(t, "the", "").Search(Query{Text: "word"}))
}

func TestAWordInsideAPhraseWithoutSpacesIsFound(t *testing.T) {
	for query, text := range map[string]string{
		"ฐานข้อมูล": "ย้ายฐานข้อมูลไปเครื่องใหม่แล้ว",
		"ຖານຂໍ້ມູນ": "ຍ້າຍຖານຂໍ້ມູນໄປເຄື່ອງໃໝ່ແລ້ວ",
		"ទិន្នន័យ":  "ផ្លាស់ទីមូលដ្ឋានទិន្នន័យរួចហើយ",
		"ဒေတာဘေ့စ်": "အဲဒီဒေတာဘေ့စ်ကိုရွှေ့ပြီးပါပြီ",
		"数据库":       "我们昨天迁移了数据库。",
		"サーバー":      "新しいサーバーに移しました",
	} {
		x := indexOf(t, "The weather is fine.", "วันนี้อากาศดีมาก", text)
		hits := x.Search(Query{Text: query})
		require.NotEmpty(t, hits, query)
		assert.EqualValues(t, 3, hits[0].Seq, query)
		spans := Highlights(text, query, nil)
		require.NotEmpty(t, spans, query)
		marked := ""
		for _, s := range spans {
			marked += text[s.Start:s.End]
		}
		assert.Contains(t, marked, query)
		assert.Less(t, len(marked), len(text), query)
	}
}

func TestMessageIsFoundByItsBestPassage(t *testing.T) {
	filler := strings.Repeat("Nothing of note happens here at all. ", 30)
	text := filler + "The zebra sleeps. " + filler
	x := indexOf(t, text, filler)
	hits := x.Search(Query{Text: "zebra", Limit: 1})
	require.Len(t, hits, 1)
	assert.Contains(t, text[hits[0].Start:hits[0].End], "The zebra sleeps.")
	assert.Equal(t, Passages(text)[hits[0].Passage], text[hits[0].Start:hits[0].End])
}

func TestNeighborsInTheSessionAreFoundToo(t *testing.T) {
	x := &Index{}
	for i, session := range []string{"1", "1", "1", "2", "1", "2", "1", "1"} {
		text := "something"
		if i == 2 {
			text = "zebra"
		}
		require.NoError(t, x.Add(uint64(i+1), NewBag(Message{Session: session, Content: text})))
	}
	near := map[uint64]float64{}
	for _, h := range x.Search(Query{Text: "zebra"}) {
		near[h.Seq] = h.Parts.Neighbours
	}
	assert.Equal(t, map[uint64]float64{1: 0.4, 2: 0.6, 3: 0, 5: 0.6, 7: 0.4, 8: 0}, near)
}

// A message borrows a term only as far as a neighbor has more of it.
func TestMessageBorrowsTheWordsItLacks(t *testing.T) {
	x := &Index{}
	for i, text := range []string{"zebra", "zebra", "-", "-", "-", "zebra", "lion", "-", "-", "-", "filler", "filler"} {
		require.NoError(t, x.Add(uint64(i+1), NewBag(Message{Session: strconv.Itoa(i / 5), Content: text})))
	}
	lent := map[uint64]float64{}
	for _, h := range x.Search(Query{Text: "a zebra and a lion"}) {
		lent[h.Seq] = h.Parts.Neighbours
	}
	assert.Zero(t, lent[1], "its neighbor says the same")
	assert.Equal(t, 0.6, lent[6], "its neighbor says the rest")
	assert.Greater(t, lent[3], 0.0, "it says nothing itself")
}

func TestMessageBorrowsItsNeighborsMeaning(t *testing.T) {
	x := indexOf(t, "one", "two", "three", "four")
	for seq, v := range []Vector{{0, 9}, {9, 0}, {9, 0}, nil} {
		require.NoError(t, x.SetVectors(uint64(seq+1), []Vector{v}))
	}
	hits := x.Search(Query{Vector: Vector{9, 0}})
	assert.Equal(t, []uint64{2, 3, 4, 1}, seqs(hits))
	for _, h := range hits {
		average := 2.0 / 3 // of the others; stands in for the missing vector
		assert.InDelta(t, map[uint64]float64{1: 0, 2: 1, 3: 1, 4: average}[h.Seq], h.Cosine, 1e-12)
		assert.InDelta(t, standard.dense()*map[uint64]float64{1: 0.6, 2: 0, 3: 0, 4: 0.6 * (1 - average)}[h.Seq], h.Parts.Neighbours, 1e-12)
	}
}

func TestBestOfManyPassagesCountsLess(t *testing.T) {
	long := "The zebra sleeps.\n" + strings.Repeat("It is very quiet here.\n", 100)
	x := indexOf(t, "The zebra sleeps.", "-", "-", "-", "-", long)
	hits := x.Search(Query{Text: "zebra"})
	require.Len(t, hits, 6, "the hits and their neighbors")
	passages := float64(len(Passages(long)))
	require.Greater(t, passages, 1.0)
	for _, h := range hits {
		if h.Seq == 6 {
			assert.InDelta(t, h.BM25/hits[0].BM25/(1+0.2*math.Log(passages)), h.Parts.Lexical, 1e-12)
		}
	}
}

// An assistant message that only calls a tool has no text.
func TestMessagesWithoutTextDoNotSeparateNeighbors(t *testing.T) {
	x := indexOf(t, "", "zebra", "", " ", "\n", "lion", "")
	assert.Equal(t, []uint64{2, 6}, seqs(x.Search(Query{Text: "zebra"})))
	assert.Equal(t, 2, x.Len())
	assert.EqualValues(t, 7, x.Last())
	assert.ErrorIs(t, x.Add(7, NewBag(Message{Content: "again"})), ErrOrder)
	require.NoError(t, x.SetVectors(4, nil))
}

func TestEarlierOfEqualMessagesIsFirst(t *testing.T) {
	x := indexOf(t, "zebra", "zebra", "zebra", "zebra", "zebra")
	assert.Equal(t, []uint64{1, 2, 3}, seqs(x.Search(Query{Text: "zebra", Limit: 3})))
	assert.Equal(t, []uint64{1, 2, 3, 4, 5}, seqs(x.Search(Query{Text: "zebra"})))
}

func TestMessagesMustBeAddedInOrder(t *testing.T) {
	x := indexOf(t, "one", "two")
	for _, seq := range []uint64{0, 1, 2} {
		assert.ErrorIs(t, x.Add(seq, NewBag(Message{Content: "again"})), ErrOrder)
	}
	assert.Equal(t, 2, x.Len())
	assert.Empty(t, x.Search(Query{Text: "again"}))
	require.NoError(t, x.Add(9, NewBag(Message{Content: "again"})))
	assert.EqualValues(t, 9, x.Last())
}

func TestSpeakerDateAndRoleBonuses(t *testing.T) {
	x := &Index{}
	add := func(seq uint64, role, speaker, date string) {
		at, err := time.Parse(time.DateOnly, date)
		require.NoError(t, err)
		require.NoError(t, x.Add(seq, NewBag(Message{Role: role, Speaker: speaker, Session: date, Time: at, Content: "a zebra"})))
	}
	add(1, "user", "Ann", "2023-05-08")
	add(2, "assistant", "Bob", "2023-05-09")
	add(3, "user", "", "2024-05-08")
	add(4, "assistant", "", "2024-05-09")
	parts := func(query string, seq uint64) Parts {
		for _, h := range x.Search(Query{Text: query}) {
			if h.Seq == seq {
				return h.Parts
			}
		}
		t.Fatalf("%q does not find %d", query, seq)
		return Parts{}
	}
	for name, c := range map[string]struct {
		query string
		seq   uint64
		want  Parts
	}{
		"the speaker is named":                     {"what did Ann say of a zebra", 1, Parts{Speaker: standard.speaker}},
		"another speaker is named":                 {"what did Ann say of a zebra", 2, Parts{}},
		"two speakers are named":                   {"Ann and Bob's zebra", 1, Parts{}},
		"part of a name":                           {"zebra Annual", 1, Parts{}},
		"a day":                                    {"zebra on 8 May 2023", 1, Parts{Date: standard.date}},
		"another day":                              {"zebra on 8 May 2023", 2, Parts{}},
		"a month":                                  {"zebra in May 2023", 2, Parts{Date: standard.date}},
		"what a user said":                         {"zebra", 3, Parts{Role: standard.role}},
		"a request does not ask about you":         {"could you tell me about the zebra", 3, Parts{Role: standard.role}},
		"the query does not ask for the user":      {"what did you say of a zebra", 3, Parts{}},
		"what the assistant said":                  {"what did you say of a zebra", 4, Parts{Role: standard.role}},
		"the query does not ask for the assistant": {"zebra", 4, Parts{}},
		"a message with a speaker has no role":     {"zebra", 1, Parts{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := parts(c.query, c.seq)
			got.Lexical, got.Neighbours, got.Session = 0, 0, 0
			assert.Equal(t, c.want, got)
		})
	}
}

// drawMessages draws messages from few words, speakers, sessions and days.
func drawMessages(t *rapid.T) []Message {
	word := rapid.SampledFrom([]string{"ant", "bee", "cow", "dog", "elk", "fox", "Ann", "the", "\n", ". " + strings.Repeat("gnu ", 160)})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Message {
		return Message{
			Role:    rapid.SampledFrom([]string{"user", "assistant"}).Draw(t, "role"),
			Speaker: rapid.SampledFrom([]string{"", "Ann", "Bob"}).Draw(t, "speaker"),
			Session: rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "session"),
			Time:    time.Date(2023, 5, rapid.IntRange(1, 3).Draw(t, "day"), 0, 0, 0, 0, time.UTC),
			Content: strings.Join(rapid.SliceOfN(word, 0, 8).Draw(t, "words"), " "),
		}
	}), 1, 14).Draw(t, "messages")
}

// drawVectors draws the vectors of a message's passages.
func drawVectors(t *rapid.T, b Bag) []Vector {
	vectors := make([]Vector, len(b.Passages))
	for i := range vectors {
		if rapid.IntRange(0, 4).Draw(t, "vector") > 0 {
			vectors[i] = Vector(rapid.SliceOfN(rapid.Int8Range(-127, 127), 3, 3).Draw(t, "values"))
		}
	}
	return vectors
}

// Messages added later change neither a score nor the order of a ranking as of an earlier
// sequence.
func TestRankingOfThePastDoesNotChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := drawMessages(t)
		asOf := uint64(rapid.IntRange(1, 3*len(messages)).Draw(t, "asOf"))
		withVectors := rapid.Bool().Draw(t, "withVectors")
		var past, all Index
		for i, m := range messages {
			seq, bag := uint64(3*i+1), NewBag(m)
			vectors := drawVectors(t, bag)
			for _, x := range []*Index{&past, &all} {
				if x == &past && seq > asOf {
					continue
				}
				require.NoError(t, x.Add(seq, bag))
				if withVectors {
					require.NoError(t, x.SetVectors(seq, vectors))
				}
			}
		}
		query := Query{Text: "did Ann see a fox, a bee or a cow on 2 May?", Limit: rapid.IntRange(0, 5).Draw(t, "limit")}
		if withVectors {
			query.Vector = Vector{3, -50, 127}
		}
		want := past.Search(query)
		query.AsOf = asOf
		assert.Equal(t, want, all.Search(query))
		assert.Equal(t, past.Unnamed(query.Text, 0), all.Unnamed(query.Text, asOf))
	})
}

func TestHitsAreOrderedAndScoresAreSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x Index
		for i, m := range drawMessages(t) {
			bag := NewBag(m)
			require.NoError(t, x.Add(uint64(i+1), bag))
			require.NoError(t, x.SetVectors(uint64(i+1), drawVectors(t, bag)))
		}
		query := Query{Text: "did Ann see a fox on 2 May?", Vector: Vector{1, 2, 3}}
		hits := x.Search(query)
		assert.True(t, slices.IsSortedFunc(hits, func(a, b Hit) int {
			if a.Score != b.Score {
				return int(math.Copysign(1, b.Score-a.Score))
			}
			return int(a.Seq) - int(b.Seq)
		}))
		for i, h := range hits {
			assert.Equal(t, h.Parts.Sum(), h.Score)
			query.Limit = i + 1
			assert.Equal(t, hits[:i+1], x.Search(query), fmt.Sprint("limit ", i+1))
		}
	})
}

func TestRankAgreesWithAnIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"storm", "storms", "the", "parse_args", "README.md", "1,000", "Zürich", "a"})
		text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(word, 0, 12).Draw(t, "words"), " ") })
		query, texts := text.Draw(t, "query"), rapid.SliceOfN(text, 0, 8).Draw(t, "texts")
		for i := range texts {
			texts[i] += " storm" // an index does not count empty texts
		}
		embed := func(text string) Vector { // "Zürich" has no embedding
			if strings.Contains(text, "Zürich") {
				return nil
			}
			return Vector{int8(strings.Count(text, "storm")), int8(len(text)) - 20, 3}
		}
		var vector Vector
		meant := rapid.Bool().Draw(t, "by meaning")
		if meant {
			vector = embed(query)
		}
		var x Index
		prepared := make([]Text, len(texts))
		for i, text := range texts {
			require.NoError(t, x.Add(uint64(i+1), NewBag(Message{Content: text})))
			prepared[i] = NewText(text)
			if meant {
				prepared[i].Vector = embed(text)
				require.NoError(t, x.SetVectors(uint64(i+1), []Vector{prepared[i].Vector}))
			}
		}
		want := make([]Parts, len(texts))
		for _, hit := range x.Search(Query{Text: query, Vector: vector}) {
			want[hit.Seq-1] = Parts{Lexical: hit.Parts.Lexical, Dense: hit.Parts.Dense}
		}
		asked := NewText(query)
		asked.Vector = vector
		scores, byMeaning := Rank(asked, prepared)
		require.Equal(t, asked.Vector != nil && slices.ContainsFunc(prepared, func(text Text) bool { return text.Vector != nil }), byMeaning)
		for i, got := range scores {
			assert.InDelta(t, want[i].Lexical, got.Lexical, 1e-9)
			assert.InDelta(t, want[i].Dense, got.Dense, 1e-9)
		}
	})
}
