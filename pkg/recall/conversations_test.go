package recall

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// saying returns messages with these texts and with sequences from the given one on.
func saying(from uint64, texts ...string) (list []Said) {
	for i, text := range texts {
		list = append(list, Said{Seq: from + uint64(i), Bag: NewBag(Message{Role: "user", Content: text})})
	}
	return list
}

func order(hits []ConversationHit) (list []int) {
	for _, h := range hits {
		list = append(list, h.Conversation)
	}
	return list
}

func TestConversationScoreFollowsTheFormula(t *testing.T) {
	var c Conversations
	with := func(said []Said, vectors ...Vector) []Said {
		for i := range said {
			said[i].Vectors = []Vector{vectors[i]}
		}
		return said
	}
	require.NoError(t, c.Add(with(saying(1, "red apple"), Vector{3, 4}), with(saying(2, "green pear", "blue apple"), Vector{1, 0}, Vector{0, 1})))
	require.NoError(t, c.Add(with(saying(4, "white plum"), Vector{4, 3}), nil))
	hits := c.Search(Query{Text: "red pear", Vector: Vector{1, 0}})
	require.Equal(t, []int{0, 1}, order(hits))

	// "red" and "pear" each occur in one of four passages of two terms, so they tie for the best.
	require.Equal(t, ConversationParts{Lexical: 0.25, Dense: 0.25, OpeningLexical: 0.25, OpeningDense: 0.25 * 0.6}, round(hits[0].Parts))
	require.Equal(t, ConversationParts{Dense: 0.25 * 0.8, OpeningDense: 0.25 * 0.8}, round(hits[1].Parts))
	for _, h := range hits {
		require.InDelta(t, h.Parts.Sum(), h.Score, 1e-12)
	}
	require.Equal(t, []uint64{2, 1, 3}, seqs(hits[0].Messages))
	best := hits[0].Messages[0]
	require.InDelta(t, 1, best.Cosine, 1e-12)
	require.InDelta(t, math.Log(1+(4-1+.5)/1.5), best.BM25, 1e-12)
	require.Equal(t, []int{0, len("green pear")}, []int{best.Start, best.End})
	require.InDelta(t, 1, best.Score, 1e-12)

	words := c.Search(Query{Text: "red pear"})
	require.Equal(t, []int{0}, order(words), "without a vector only words count")
	require.Equal(t, ConversationParts{Lexical: 0.5, OpeningLexical: 0.5}, words[0].Parts)
}

func round(p ConversationParts) ConversationParts {
	for _, part := range []*float64{&p.Lexical, &p.Dense, &p.OpeningLexical, &p.OpeningDense} {
		*part = math.Round(*part*1e9) / 1e9
	}
	return p
}

func TestOpeningOfAConversationCountsMore(t *testing.T) {
	var c Conversations
	require.NoError(t, c.Add(saying(1, "hello there"), saying(2, "the zebra sleeps")))
	require.NoError(t, c.Add(saying(1, "the zebra sleeps"), saying(2, "hello there")))
	require.Equal(t, []int{1, 0}, order(c.Search(Query{Text: "zebra"})))
}

func TestTitleIsSearchedButIsNotAMessage(t *testing.T) {
	var c Conversations
	require.NoError(t, c.Add(append(saying(0, "Zebras"), saying(7, "hello")...), nil))
	require.NoError(t, c.Add(saying(1, "zebra and other animals"), nil))
	hits := c.Search(Query{Text: "zebra"})
	require.Equal(t, []int{0, 1}, order(hits))
	require.Equal(t, []uint64{7}, seqs(hits[0].Messages))
}

func TestMessagesOfAConversationSearchHaveNoNeighbors(t *testing.T) {
	var c Conversations
	require.NoError(t, c.Add(saying(1, "the zebra sleeps", "nothing else"), nil))
	hit := c.Search(Query{Text: "zebra"})[0]
	require.Equal(t, Parts{Lexical: 1}, hit.Messages[0].Parts)
	require.Zero(t, hit.Messages[1].Score)
}

func TestEqualConversationsKeepTheirOrderUpToTheLimit(t *testing.T) {
	var c Conversations
	require.Empty(t, c.Search(Query{Text: "zebra"}))
	require.NoError(t, c.Add(nil, saying(1, "lion")))
	for range 3 {
		require.NoError(t, c.Add(nil, saying(1, "zebra")))
	}
	require.NoError(t, c.Add(nil, nil))
	require.Equal(t, []int{1, 2, 3}, order(c.Search(Query{Text: "zebra"})))
	require.Equal(t, []int{1, 2}, order(c.Search(Query{Text: "zebra", Limit: 2})))
	for _, query := range []string{"", "the of", "nobody"} {
		require.Empty(t, c.Search(Query{Text: query}), query)
	}
}

func TestSpeakersNamesAreRemovedFromAQuery(t *testing.T) {
	var c Conversations
	require.NoError(t, c.Add([]Said{{Seq: 1, Bag: NewBag(Message{Speaker: "Ann", Content: "hello"})}}, nil))
	assert.Equal(t, "When was in Rome?", c.Unnamed("When was Ann in Rome?"))
}

func TestConversationsRefuseVectorsThatDoNotFit(t *testing.T) {
	var c Conversations
	said := saying(1, "hello")
	said[0].Vectors = []Vector{{1}, {2}}
	require.ErrorIs(t, c.Add(said, nil), ErrVectors)
}
