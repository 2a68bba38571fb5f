package recall

// weights are the constants of the ranking.
type weights struct {
	k1, b  float64 // of BM25
	length float64 // how much less the best passage counts for each e-fold increase in the passages of a message

	lexical float64   // BM25's share of what a message says, where there are vectors; the rest is the cosine's
	expect  float64   // the share of a query's words that a message must hold for BM25 to count in full
	agree   agreement // when BM25 counts

	nearness [reach]float64 // the share of a higher score that a message borrows from a direct neighbor, and from one two messages away
	session  float64        // of the mean of its session's best scores

	speaker, date, role float64 // added if the query names them
}

// agreement is how near a query the messages that hold its words must be for BM25 to count, in
// shares of the cosine of the nearest message: not at all up to least, in full from full on.
type agreement struct{ least, full float64 }

// of returns the share of BM25 that counts, by the score and the cosine of each message; best is the highest score.
//
// The query's words show where the answer is if the messages that hold them are also near the query by meaning. In a
// conversation that uses other words for the answer, these words occur elsewhere by chance.
func (a agreement) of(bm25, cosines []float64, best float64) float64 {
	held, nearest := 0.0, 0.0
	for i, score := range bm25 {
		nearest = max(nearest, cosines[i])
		if score > 0 {
			held = max(held, score/best*cosines[i])
		}
	}
	if nearest <= 0 {
		return 1
	}
	return min(1, max(0, (held/nearest-a.least)/(a.full-a.least)))
}

// standard is what all searches use. The numbers are round. make tune compares them with others: change one only if the
// mean over the sets gains and the worst set loses less than chance may.
//
// The usual b of 0.75 is for whole documents; passages are of similar length, so length says less. length is needed
// because one of many passages is good by chance. expect is for queries in other words than the conversation: only
// common words are in both, and the best message by these is not as good as one that holds the whole query. agree is
// for queries whose common words occur elsewhere.
var standard = weights{
	k1: 1.2, b: 0.4, length: 0.2,
	lexical: 0.35, expect: 0.35, agree: agreement{least: 0.3, full: 0.9},
	nearness: [reach]float64{0.6, 0.4}, session: 0.3,
	speaker: 0.1, date: 0.35, role: 0.15,
}

// dense is the cosine's share.
func (w *weights) dense() float64 { return 1 - w.lexical }

const (
	reach       = 2 // how many messages away a neighbor can be
	sessionBest = 3 // how many of its best messages a session is judged by
)
